"""Small sets of labelled points, with the exact distributions of their cuts."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import stats

from dpselect.ordered.labelled_rows.thresholds import (
    boundary_points,
    error_runs,
)
from dpselect.privacy import Adjacency

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
SIZE = 3
ROWS = [(x, y) for x in range(SIZE) for y in (0, 1)]


def codes(rows, label):
    return np.array([x for x, y in rows if y == label], dtype=np.uint64)


def depth(points, cut):
    return min(sum(p <= cut for p in points), sum(p >= cut for p in points))


def by_errors(rows):
    """The score of every cut as the code has it: minus its errors."""
    lengths, errors = error_runs(codes(rows, 1), codes(rows, 0), SIZE)
    return [-e for e, n in zip(errors.tolist(), lengths.tolist(), strict=True) for _ in range(n)]


def by_interior_point(rows, per_side=2):
    points = boundary_points(codes(rows, 1), codes(rows, 0), SIZE, per_side)
    return [depth(points, cut) for cut in range(SIZE + 1)]


def datasets(most):
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(ROWS, n)]


def neighbours(rows, adjacency):
    for row in ROWS:
        if adjacency is ADD:
            yield tuple(sorted((*rows, row)))
        else:
            for place in range(len(rows)):
                yield tuple(sorted((*rows[:place], row, *rows[place + 1 :])))


def law(scores, base):
    """Weights base**score with a rational base = exp(rate): every probability is a rational number."""
    weights = [base**score for score in scores]
    return [weight / sum(weights) for weight in weights]


def largest_ratio(scores_of, adjacency, base, most=3):
    return max(
        max(p / r, r / p)
        for rows in datasets(most)
        for other in neighbours(rows, adjacency)
        for p, r in zip(law(scores_of(rows), base), law(scores_of(other), base), strict=True)
    )


def check_law(found, weights, outcomes):
    # chi-square at 1e-6: a sound sampler fails so rarely; with 3000 draws a probability that is off by 0.08 fails
    # with probability above 0.997
    expected = np.array(weights) / sum(weights) * len(found)
    observed = np.array([found.count(outcome) for outcome in outcomes])
    assert observed.sum() == len(found)
    kept = expected >= 5
    assert np.all(observed[~kept] <= 40)
    statistic = np.sum((observed[kept] - expected[kept]) ** 2 / expected[kept])
    assert stats.chi2.sf(statistic, max(kept.sum() - 1, 1)) > 1e-6
