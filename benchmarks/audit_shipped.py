"""What audits of this library's own mechanisms show: the second table of docs/evidence/audit-power.md.

    python -m benchmarks.audit_shipped

A row per entry of `tests.audits.shipped_mechanisms`, on the draws that its slow test makes: the claim, what the
audit measures at the same delta, and whether the planted claim is refuted at confidence .99. What is measured holds for
all entries together at confidence .99: each of them has its share of the error.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from tests.audits.shipped import Shipped
from tests.audits.shipped_mechanisms import SHIPPED

from dpselect.audit import audit_outputs
from dpselect.randomness import keyed_source

CONFIDENCE = 1.0 - 0.01 / len(SHIPPED)


def row(entry: Shipped) -> str:
    """In Markdown."""
    claim, drawn = entry.make().claim, entry.sample()
    delta = abs(claim.failure) if math.isfinite(claim.pure_epsilon) else 1e-3  # not -0
    found = audit_outputs(*drawn, claim, delta=delta, confidence=CONFIDENCE, random=keyed_source("claim"))
    planted = "none"
    if entry.planted is not None:
        refuted = audit_outputs(
            *drawn, entry.planted_claim(claim), confidence=0.99, random=keyed_source("planted")
        ).violated
        planted = f"{entry.planted} of {'delta' if entry.of_delta else 'epsilon'}{'' if refuted else ', MISSED'}"
    numbers = f"{claim.epsilon(delta):.4g} | {delta:.3g} | {found.epsilon_lower:.3g} | {entry.many:,}"
    return f"| `{entry.name}` | {numbers} | {planted} |{' CLAIM REFUTED' if found.violated else ''}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("entry", nargs="*", help="which, by name; all by default")
    chosen = parser.parse_args()
    print("| entry | claim | at delta | measured | draws | planted claim refuted |")
    print("|---|---|---|---|---|---|")
    for entry in SHIPPED:
        if not chosen.entry or entry.name in chosen.entry:
            start = time.process_time()
            print(row(entry), flush=True)
            print(f"{entry.name}: {time.process_time() - start:.1f} s of processor time", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
