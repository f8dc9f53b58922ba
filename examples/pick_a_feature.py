"""Pick the most telling of 5,000 yes-or-no features, by a private score.

The score of a feature is the number of rows where it agrees with the label. Two ways to the same end, at the same total
price:

- Draw a feature, score it with noise, and repeat a random number of times; release the best draw and its noisy score.
  Works for any private score and makes only the candidates that it draws, but it needs several times as many draws as
  there are features, and each has to be three times as private as the whole.
- Where every score is a count of rows and all of them fit in memory, permute-and-flip on the whole vector is better:
  one exact draw. It releases the index alone.

    python examples/pick_a_feature.py

One person is one row, which is added or removed. The data are synthetic: feature 1234 agrees with the label for 90 per
cent of the rows, all others are coins.
"""

from __future__ import annotations

import numpy as np

from dpselect.accounting import best_of, calibrate
from dpselect.mechanisms import NoisyCount, PermuteAndFlip, noisy_count
from dpselect.privacy import Release
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions import Geometric
from dpselect.selection import PrivateCandidate, select_best, uniform_mixture

FEATURES = 5000
TELLING = 1234
TOTAL_EPSILON = 1.0
DRAWS = Geometric.with_mean(mean=20_000)


def synthetic_table(rows: int = 2000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Features of shape (rows, FEATURES) and labels of shape (rows,), all True or False."""
    generator = np.random.default_rng(seed)
    features = np.asfortranarray(generator.random((rows, FEATURES)) < 0.5)
    labels = generator.random(rows) < 0.5
    features[:, TELLING] = labels ^ (generator.random(rows) < 0.1)
    return features, labels


def agreement(features: np.ndarray, labels: np.ndarray, epsilon: float) -> PrivateCandidate:
    """One draw: a feature and the noisy number of rows that agree with it, which a row changes by at most one."""

    def make(index: int) -> PrivateCandidate:
        def run(random: RandomSource) -> tuple[float, tuple[int, int]]:
            score = noisy_count(np.count_nonzero(features[:, index] == labels), epsilon=epsilon, random=random)
            return score, (index, score)

        return PrivateCandidate(run, price)

    price = NoisyCount(epsilon=epsilon).guarantee
    return PrivateCandidate(uniform_mixture(make, count=FEATURES), price)


def main(random: RandomSource | None = None) -> Release:
    """Run the example; returns what the search releases."""
    source = resolve(random)
    features, labels = synthetic_table()
    scale = calibrate(
        lambda scale: best_of(NoisyCount(epsilon=1.0 / scale).guarantee, DRAWS), epsilon=TOTAL_EPSILON, delta=0.0
    )
    search = agreement(features, labels, 1.0 / scale)
    release = select_best(search, repetitions=DRAWS, guarantee=search.guarantee, random=source)
    if release.value is not None:
        index, score = release.value
        print(f"best of about {DRAWS.mean:,.0f} draws: feature {index}, agreeing with {score} rows (noisy)")
    print(f"one draw: epsilon {search.guarantee.epsilon(0.0):.3f}; the search: {release.guarantee.epsilon(0.0):.3f}")
    print(f"chance that the telling feature is drawn at all: {DRAWS.success_probability(1 / FEATURES):.2f}")

    mechanism = PermuteAndFlip(sensitivity=1.0, epsilon=TOTAL_EPSILON)
    chosen = mechanism(np.count_nonzero(features == labels[:, None], axis=0), random=source).value
    print(f"permute-and-flip: feature {chosen}, epsilon {mechanism.guarantee.epsilon(0.0):.3f}")
    return release


if __name__ == "__main__":
    main()
