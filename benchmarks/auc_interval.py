"""How wide the interval of a released area under the curve is, by the number of positives that validate and by epsilon.

    python -m benchmarks.auc_interval [--seeds 7]

Made scores: log-odds of 19 negatives for a positive, both normal of variance 1 and 1.47 apart, so that the area is .85.
The medians over the seeds of the ends; without noise, the part of the width that the number of rows alone makes.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS
from dpselect.study.metrics.metric import ScoreNoise
from dpselect.study.target import Target

POSITIVES = (50, 100, 200, 500, 1000, 5000)
EPSILONS = (1.0, 3.0, 1000.0)


class Odds:
    """A model whose rows are their log-odds."""

    def predict_proba(self, X: Any) -> Any:
        """Shape (rows, 2)."""
        chance = 1.0 / (1.0 + np.exp(-X))
        return np.stack([1.0 - chance, chance], axis=1)


def ends(positives: int, epsilon: float, seed: int) -> tuple[float, float]:
    """One interval that fails with probability .05 at most."""
    random, negatives = np.random.default_rng(seed), 19 * positives
    odds = np.append(random.normal(-3.0, 1.0, negatives), random.normal(-1.53, 1.0, positives))
    labels = np.append(np.zeros(negatives, dtype=int), np.ones(positives, dtype=int))
    metric = METRICS["auc"](Target(("no", "yes")))
    noise = ScoreNoise(epsilon, Adjacency.ADD_OR_REMOVE_ONE)
    found = metric.noisy(metric.cells(Odds(), odds, labels), noise, keyed_source(seed))
    estimate = metric.estimate(found, noise=noise, failure=0.05)
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=7)
    seeds = parser.parse_args().seeds
    print("| positives that validate | epsilon 1 | epsilon 3 | hardly noise |\n|---|---|---|---|")
    for positives in POSITIVES:
        medians = [np.median([ends(positives, each, seed) for seed in range(seeds)], axis=0) for each in EPSILONS]
        print(f"| {positives} | {' | '.join(f'{low:.2f} to {high:.2f}' for low, high in medians)} |", flush=True)


if __name__ == "__main__":
    main()
