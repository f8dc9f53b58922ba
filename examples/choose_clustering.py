"""Choose the number of clusters, then the algorithm, then ask how good the winner is: three adaptive questions.

A clustering is fitted on one half of a block and scored by the log-likelihood of the other half (one Gaussian for each
cluster, with a common spherical variance). Scored on the rows that it was fitted to, more clusters always look better,
and the number that the analyst then reports cannot be reached on new rows. Here `choose` ranks the candidates on
hundreds of small blocks, for the price of one question regardless of their number, and `estimate` answers how good the
winner is on new rows.

    python examples/choose_clustering.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.cluster import AgglomerativeClustering

from dpselect.adaptive import AdaptiveAnalysis
from dpselect.randomness import RandomSource

CLUSTERS = (2, 3, 4, 8)
BLOCK = 48


ALGORITHMS = ("ward", "average", "single")


def log_likelihood(fitted: np.ndarray, labels: np.ndarray, scored: np.ndarray) -> float:
    """Of `scored` per row, under the mixture that the labels of `fitted` define."""
    sizes = np.bincount(labels)
    centres = np.array([fitted[labels == label].mean(axis=0) for label in range(len(sizes))])
    variance = max(float(((fitted - centres[labels]) ** 2).sum()) / fitted.size, 1e-6)
    squares = ((scored[:, None, :] - centres[None]) ** 2).sum(axis=2)
    terms = np.log(sizes / len(labels)) - squares / (2.0 * variance)
    return float(np.mean(np.logaddexp.reduce(terms, axis=1)) - np.log(2.0 * np.pi * variance))


def score(rows: np.ndarray, *, algorithm: str, clusters: int) -> float:
    """Fitted on the first half of a block, scored on the second. Looks at its block only and keeps nothing."""
    fitted, scored = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    return log_likelihood(fitted, AgglomerativeClustering(clusters, linkage=algorithm).fit_predict(fitted), scored)


def synthetic_rows(count: int, seed: int) -> np.ndarray:
    """Three groups in the plane."""
    generator = np.random.default_rng(seed)
    middles = np.array([[0.0, 0.0], [5.0, 0.0], [2.0, 5.0]])
    return middles[generator.integers(3, size=count)] + generator.normal(size=(count, 2))


@dataclass(frozen=True)
class Study:
    """What each analyst chose and claims, and what the same choice scores on many fresh blocks (its quartiles)."""

    naive_clusters: int
    naive_claim: float
    naive_truth: float
    clusters: int
    algorithm: str
    claim: float
    quartiles: tuple[float, float]


def main(random: RandomSource | None = None) -> Study:
    """Run the example; returns what both analysts say."""
    rows = synthetic_rows(410 * BLOCK, seed=1)
    twice = np.tile(rows[: BLOCK // 2], (2, 1))  # scored on the rows that it was fitted to
    in_sample = {k: score(twice, algorithm="ward", clusters=k) for k in CLUSTERS}
    naive = max(in_sample, key=in_sample.__getitem__)

    analysis = AdaptiveAnalysis(
        rows, queries=3, subsample_size=BLOCK, failure_probability=0.1, grid_size=41, random=random
    )
    clusters = analysis.choose({k: partial(score, algorithm="ward", clusters=k) for k in CLUSTERS}).value
    algorithm = analysis.choose({one: partial(score, algorithm=one, clusters=clusters) for one in ALGORITHMS}).value
    winner = partial(score, algorithm=algorithm, clusters=clusters)
    claim = analysis.estimate(winner, lower=-6, upper=-2, granularity=0.1).value

    fresh = synthetic_rows(200 * BLOCK, seed=2).reshape(200, BLOCK, 2)
    scores = np.array([winner(block) for block in fresh])
    low, high = np.quantile(scores, [0.25, 0.75]).tolist()
    naive_truth = float(np.median([score(block, algorithm="ward", clusters=naive) for block in fresh]))
    found = Study(naive, in_sample[naive], naive_truth, clusters, algorithm, claim, (low, high))
    print("                         choice              claims   fresh blocks say")
    print(f"  fitted and scored at once  {naive} clusters         {in_sample[naive]:8.2f}   {naive_truth:.2f}")
    print(f"  ours                       {clusters} by {algorithm:8s} {claim:8.2f}   {low:.2f} to {high:.2f}")
    print(analysis.certificate.statement)
    return found


if __name__ == "__main__":
    main()
