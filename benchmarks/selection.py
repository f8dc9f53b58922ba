"""Processor time of one repetition of a private selection, beside a bare loop and OpenDP.

    python benchmarks/selection.py [--runs 100000] [--repeats 3]

The candidate does nothing: what is measured is what a selection adds to a run. Every figure is the smallest of
`--repeats` runs of one process and a ratio to a bare Python loop over the same candidate, from the same run. OpenDP
(`make_select_private_candidate`, the first above a threshold, its candidate a Python function as well) is shown where
it is installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import Fixed
from dpselect.selection import private_mixture, select_above, select_best, uniform_mixture, weighted_mixture
from dpselect.selection.above import first_above
from dpselect.selection.best import best_outcome
from dpselect.selection.candidates import PrivateCandidate

BASE = pure_dp(epsilon=0.1)
MANY = 100_000


def candidate(_random: RandomSource) -> tuple[float, None]:
    return 0.0, None


def seconds(run: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def bare(runs: int) -> None:
    for _ in range(runs):
        candidate(None)  # type: ignore[arg-type]


def opendp_microseconds(runs: int, repeats: int) -> float | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib", "honest-but-curious")
    calls = 0

    def function(_argument: float) -> tuple[float, None]:
        nonlocal calls
        calls += 1
        return 0.0, None

    measurement = dp.m.make_user_measurement(
        dp.atom_domain(T=float, nan=False),
        dp.absolute_distance(T=float),
        dp.max_divergence(),
        function=function,
        privacy_map=lambda distance: distance,
        TO=(float, "ExtrinsicObject"),
    )
    select = dp.c.make_select_private_candidate(measurement, stop_probability=1.0 / runs, threshold=1.0)
    best = float("inf")
    for _ in range(repeats):
        before, start = calls, time.process_time()
        select(0.0)
        best = min(best, (time.process_time() - start) / max(calls - before, 1))
    return best * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    runs, repeats, source = arguments.runs, arguments.repeats, keyed_source(1)
    law = Fixed(count=runs)
    lazy = uniform_mixture(lambda _index: candidate, count=MANY)
    weighted = weighted_mixture(lambda _index: candidate, [1.0 + k % 3 for k in range(MANY)], count=MANY)
    priced = private_mixture([PrivateCandidate(candidate, BASE)] * 3)
    unit = seconds(lambda: bare(runs), repeats) / runs * 1e6
    print(f"one repetition of a candidate that does nothing, of {runs:,}: microseconds, and ratio to a bare loop")
    print(f"  {'a bare loop':<48} {unit:>8.3f}")
    ours: dict[str, Callable[[], Any]] = {
        "select_best": lambda: best_outcome(candidate, law, source),
        "select_above": lambda: first_above(candidate, 1.0, law, source),
        f"select_best, {MANY:,} candidates made when drawn": lambda: best_outcome(lazy, law, source),
        f"select_best, {MANY:,} candidates with weights": lambda: best_outcome(weighted, law, source),
        "select_best, a mixture of three with guarantees": lambda: best_outcome(priced, law, source),
    }
    for label, run in ours.items():
        spent = seconds(run, repeats) / runs * 1e6
        print(f"  {label:<48} {spent:>8.3f} {spent / unit:>8.1f}")
    peer = opendp_microseconds(runs, repeats)
    if peer is not None:
        print(f"  {'OpenDP make_select_private_candidate':<48} {peer:>8.3f} {peer / unit:>8.1f}")

    calls: dict[str, Callable[[], Any]] = {
        "select_best, 10 runs, with its price": lambda: select_best(
            candidate, repetitions=Fixed(count=10), guarantee=BASE, random=source
        ),
        "select_above, about 10 runs, with its price": lambda: select_above(
            candidate, threshold=1.0, stop_probability=0.1, guarantee=BASE, random=source
        ),
    }
    print("\na whole call, microseconds")
    for label, run in calls.items():
        print(f"  {label:<48} {seconds(lambda r=run: [r() for _ in range(100)], repeats) * 1e4:>8.1f}")


if __name__ == "__main__":
    main()
