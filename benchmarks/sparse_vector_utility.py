"""What a sparse vector finds among a million real counts at epsilon 1 and delta 1e-6, by how its positives are paid.

    python -m benchmarks.sparse_vector_utility [--repeats 20] [--json]

The rows are the lines of Python's own standard library, the queries how many of them hold a pair of neighbouring
words; adding a row raises counts by 1 at most (monotonic). Every pair up to a million is asked about in an order that
has nothing to do with counts, against the threshold that just so many pairs reach. Paid by

- the game: the split of `plan_sparse_vector`;
- the pure price: `balanced_split`;
- restarts: above-threshold once for each positive, each with half of its epsilon for the threshold, composed as so many
  randomised responses, which is optimal for pure runs. That is how a library does it that has above-threshold alone.

Precision is the share of what was found that is above the threshold, recall the share of those above that were found.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms import SparseVector, balanced_split, plan_sparse_vector
from dpselect.numerics.search import root_between
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source

EPSILON, DELTA, QUERIES = 1.0, 1e-6, 1_000_000
Counts = NDArray[np.float64]
Found = NDArray[np.intp]


def counts_of_pairs(seed: int = 0) -> Counts:
    """How many lines hold each pair of words: a million pairs, shuffled; pairs that no line holds make up the rest."""
    held: Counter[tuple[str, str]] = Counter()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts:
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                held.update(set(pairwise(re.findall(r"\w+", line))))
    found = np.array(sorted(held.values(), reverse=True)[:QUERIES], dtype=np.float64)
    counts = np.concatenate([found, np.zeros(QUERIES - len(found))])
    return np.asarray(np.random.default_rng(seed).permutation(counts))


def by_sparse_vector(options: dict[str, object]) -> Callable[[Counts, float, int], Found]:
    """The places of the positives of one session."""

    def run(counts: Counts, threshold: float, seed: int) -> Found:
        session = SparseVector(**options, random=keyed_source(seed))  # type: ignore[arg-type]
        return np.flatnonzero(session.above_many(counts, threshold))

    return run


def by_restarts(positives: int) -> Callable[[Counts, float, int], Found]:
    """Above-threshold, again and again; each run has the largest epsilon at which all of them cost `EPSILON`."""

    def fits(each: float) -> bool:
        return compose(*[pure_dp(epsilon=each)] * positives).epsilon(DELTA) <= EPSILON

    each = root_between(fits, safe=EPSILON / positives, unsafe=EPSILON, relative=1e-4)

    def run(counts: Counts, threshold: float, seed: int) -> Found:
        generator, found, start = np.random.default_rng(seed), [], 0
        noisy = counts + generator.laplace(0.0, 2.0 / each, len(counts))
        while len(found) < positives:
            level = threshold + generator.laplace(0.0, 2.0 / each)
            places = np.flatnonzero(noisy[start : start + 100_000] >= level)
            while not places.size and start < len(counts):
                start += 100_000
                places = np.flatnonzero(noisy[start : start + 100_000] >= level)
            if not places.size:
                break
            found.append(start + int(places[0]))
            start = found[-1] + 1
        return np.array(found, dtype=np.intp)

    return run


def measured(positives: int, counts: Counts, repeats: int) -> list[dict[str, float | str]]:
    """Precision and recall of each way, means over sessions."""
    threshold = float(np.sort(counts)[-positives])
    above = counts >= threshold
    plan = plan_sparse_vector(positives=positives, delta=DELTA, epsilon=EPSILON, monotonic=True)
    first, second = balanced_split(epsilon=EPSILON, max_positives=positives, monotonic=True)
    pure = {"epsilon_threshold": first, "epsilon_queries": second, "max_positives": positives, "monotonic": True}
    ways = {
        "the game": by_sparse_vector(dict(plan.options)),
        "the pure price": by_sparse_vector(pure),
        "restarts": by_restarts(positives),
    }
    rows: list[dict[str, float | str]] = []
    for name, run in ways.items():
        right = [
            (np.count_nonzero(above[found]), len(found))
            for found in (run(counts, threshold, i) for i in range(repeats))
        ]
        rows.append({
            "positives": positives,
            "threshold": threshold,
            "way": name,
            "precision": float(np.mean([hits / max(number, 1) for hits, number in right])),
            "recall": float(np.mean([hits for hits, _ in right])) / int(np.count_nonzero(above)),
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    counts = counts_of_pairs()
    rows = [row for positives in (10, 100, 500) for row in measured(positives, counts, arguments.repeats)]
    if arguments.json:
        json.dump(rows, sys.stdout)
        return
    print("| positives | threshold | paid by | precision | recall |\n|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['positives']} | {row['threshold']:.0f} | {row['way']} | {row['precision']:.2f} | "
            f"{row['recall']:.2f} |"
        )


if __name__ == "__main__":
    main()
