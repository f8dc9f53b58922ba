"""How often an audit by samples catches each specimen of the zoo: the table of docs/evidence/audit-power.md.

    python -m benchmarks.audit_power --runs 100

Each cell is the share of so many runs (a fifth of them at a million draws), each with its own key, in which the audit
refutes the claim at confidence .99. A specimen that all runs of a size caught is not run at larger ones.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from tests.audits.zoo import ZOO, Specimen

from dpselect.audit import audit, exact_audit, sampled
from dpselect.randomness import keyed_source

SIZES = (1_000, 10_000, 100_000, 1_000_000)
CONFIDENCE = 0.99


def caught(specimen: Specimen, draws: int, runs: int) -> float:
    """The share of runs that refute the claim."""
    subject = sampled(specimen.broken())
    runs = runs if draws < SIZES[-1] else max(runs // 5, 1)
    keys = (keyed_source(f"{specimen.name} {draws} {run}") for run in range(runs))
    return sum(audit(subject, draws=draws, confidence=CONFIDENCE, random=key).violated for key in keys) / runs


def measure(specimen: Specimen, runs: int, largest: int) -> dict[str, object]:
    """A row: the exact audit's epsilon and excess, and the power at each size until it is one."""
    exact = exact_audit(specimen.broken())
    violation = exact.shown["violation"]
    powers: dict[str, float] = {}
    for draws in SIZES:
        if draws > largest:
            break
        powers[str(draws)] = caught(specimen, draws, runs)
        if powers[str(draws)] == 1.0:
            break
    return {
        "specimen": specimen.name,
        "exact": exact.violated,
        "delta": exact.delta,
        "claimed": exact.claimed_epsilon,
        "attained": exact.epsilon_lower,
        "excess": violation["delta"] - violation["claimed_delta"],
        "power": powers,
    }


def row(found: dict[str, object]) -> str:
    """In Markdown."""
    powers = found["power"]
    assert isinstance(powers, dict)
    shares = [f"{powers[str(size)]:.2f}" if str(size) in powers else "" for size in SIZES]
    full = [size for size in SIZES if powers.get(str(size), 0.0) == 1.0]
    least = f"{full[0]:,}" if full else "exact only"
    numbers = f"{found['claimed']:.4g} | {found['attained']:.4g} | {found['delta']:.4g} | {found['excess']:.2g}"
    return f"| `{found['specimen']}` | {numbers} | {' | '.join(shares)} | {least} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specimen", nargs="*", help="which, by name; all by default")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="the largest number of draws")
    parser.add_argument("--json", type=Path, help="also write the measurements here")
    chosen = parser.parse_args()
    start, rows = time.process_time(), []
    print("| specimen | claim | attains | at delta | above the claim | 1e3 | 1e4 | 1e5 | 1e6 | draws |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for specimen in ZOO:
        if chosen.specimen and specimen.name not in chosen.specimen:
            continue
        rows.append(measure(specimen, chosen.runs, chosen.largest))
        print(row(rows[-1]), flush=True)
    print(f"\n{time.process_time() - start:.0f} s of processor time, {os.cpu_count()} cores", file=sys.stderr)
    if chosen.json:
        chosen.json.write_text(json.dumps({"runs": chosen.runs, "confidence": CONFIDENCE, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
