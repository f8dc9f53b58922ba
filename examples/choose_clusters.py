"""Choose the number of clusters for a private k-means.

Each run draws a number of clusters, runs k-means with noisy sums and counts, and scores the result by a noisy
silhouette. Only the best of a random number of runs is released: its centres, with a guarantee that covers all runs,
those that lost as well. Trying seven numbers of clusters once each and keeping the best would cost all seven; here a
hundred runs on average cost less, and the several tries that k-means needs to find a good start are among them.

    python examples/choose_clusters.py

One person is one row, which is added or removed. The data are synthetic: five groups of points in the unit disc.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpselect.mechanisms import discrete_laplace
from dpselect.privacy import Guarantee, Release, compose, pure_dp, zcdp
from dpselect.randomness import RandomSource, discrete_gaussian_array, resolve
from dpselect.repetitions import Geometric
from dpselect.selection import PrivateCandidate, select_best, uniform_mixture

CLUSTERS = range(2, 9)
STEPS = 6
UNITS = 1 << 12  # coordinates and counts are whole multiples of 1/4096, so that sums are exact
DEVIATION = 14.0  # of the noise on every count and coordinate sum, in rows
SCORE_EPSILON = 0.02
NOMINAL_ROWS = 4000  # public; scales the score only
DELTA = 1e-6
PENALTY = 0.02  # for each cluster: an idle one should not win by the noise of the score


def clip_to_disc(rows: np.ndarray) -> np.ndarray:
    """Each row by itself: not a number becomes 0, and what is outside the unit disc is drawn back to it."""
    finite = np.nan_to_num(rows, nan=0.0, posinf=1e9, neginf=-1e9)
    length = np.maximum(np.hypot(finite[:, 0], finite[:, 1]), 1.0)
    return finite / length[:, None]


def distances(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Shape (rows, centres)."""
    return np.linalg.norm(rows[:, None, :] - centres[None, :, :], axis=2)


def private_k_means(rows: np.ndarray, clusters: int, random: RandomSource) -> np.ndarray:
    """Lloyd's steps on noisy sums and counts (Blum, Dwork, McSherry, Nissim 2005). `rows` are in the unit disc.

    In each step a row adds its two coordinates and a one to the entries of a single cluster. That vector has a squared
    length of at most 2, or 2 + 3/UNITS once the coordinates are rounded to the grid, so a step with discrete Gaussian
    noise is (2 + 3/UNITS) / (2 DEVIATION^2)-zCDP (Canonne, Kamath, Steinke 2020, Theorem 14).
    """
    centres = clip_to_disc(random.normal((clusters, 2)) / 2.0)
    contributions = np.column_stack([np.rint(rows * UNITS), np.full(len(rows), UNITS)]).astype(np.int64)
    for _ in range(STEPS):
        nearest = np.argmin(distances(rows, centres), axis=1)
        sums = np.zeros((clusters, 3), dtype=np.int64)
        np.add.at(sums, nearest, contributions)
        noisy = sums + discrete_gaussian_array((DEVIATION * UNITS) ** 2, sums.shape, random)
        counts = np.maximum(noisy[:, 2], UNITS * DEVIATION)
        centres = clip_to_disc(noisy[:, :2] / counts[:, None])
    return centres


def noisy_silhouette(rows: np.ndarray, centres: np.ndarray, random: RandomSource) -> float:
    """The sum over rows of 1 - (nearest centre's distance)/(second nearest's), with discrete Laplace noise.

    A row adds between 0 and 1, in whole units, so the sum of units has sensitivity `UNITS`.
    """
    near, second = np.sort(distances(rows, centres), axis=1)[:, :2].T
    share = 1.0 - near / np.maximum(second, 1e-12)
    units = int(np.floor(np.clip(share, 0.0, 1.0) * UNITS).astype(np.int64).sum())
    return (units + discrete_laplace(UNITS / Fraction(SCORE_EPSILON), random)) / (UNITS * NOMINAL_ROWS)


def price() -> Guarantee:
    """What one run costs: the k-means steps and the score, regardless of the number of clusters."""
    squared_length = 2.0 + 3.0 / UNITS
    return compose(zcdp(rho=STEPS * squared_length / (2.0 * DEVIATION**2)), pure_dp(epsilon=SCORE_EPSILON))


def candidate(rows: np.ndarray, clusters: int) -> PrivateCandidate:
    """K-means with this number of clusters, and its score."""

    def run(random: RandomSource) -> tuple[float, np.ndarray]:
        centres = private_k_means(rows, clusters, random)
        return noisy_silhouette(rows, centres, random) - PENALTY * clusters, centres

    return PrivateCandidate(run, price())


def synthetic_rows(seed: int = 1) -> np.ndarray:
    """Five groups on a circle of radius 0.7."""
    generator = np.random.default_rng(seed)
    angles = 2.0 * np.pi * np.arange(5) / 5.0
    middles = 0.7 * np.column_stack([np.cos(angles), np.sin(angles)])
    return middles[generator.integers(5, size=NOMINAL_ROWS)] + generator.normal(scale=0.06, size=(NOMINAL_ROWS, 2))


def main(random: RandomSource | None = None) -> Release:
    """Run the example; returns what it releases."""
    rows = clip_to_disc(synthetic_rows())
    proposal = uniform_mixture([candidate(rows, clusters) for clusters in CLUSTERS])
    release = select_best(
        proposal, repetitions=Geometric.with_mean(mean=100), guarantee=price(), random=resolve(random)
    )
    print(f"clusters: {len(release.value)}")
    for x, y in release.value:
        print(f"  centre ({x:+.2f}, {y:+.2f})")
    print(f"one run alone:    epsilon {price().epsilon(DELTA):.3f} at delta {DELTA:g}")
    print(f"the whole search: epsilon {release.guarantee.epsilon(DELTA):.3f} at delta {DELTA:g}")
    print(f"all seven once:   epsilon {compose(*[price()] * len(CLUSTERS)).epsilon(DELTA):.3f}")
    return release


if __name__ == "__main__":
    main()
