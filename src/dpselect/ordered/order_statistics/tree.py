"""Very many quantiles of a coarse domain: noisy counts in a consistent tree (Hay, Rastogi, Miklau, Suciu 2010)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array
from dpselect.ordered.order_statistics.intervals import RankedColumn
from dpselect.ordered.order_statistics.small_domain import rows_below
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace_array

__all__ = ["TreeAnswer", "node_counts", "sum_of_noise", "tree_codes", "tree_levels"]

_BRANCHING = 16


def tree_levels(size: int) -> int:
    """Levels below the root, from public parameters: the last one has a node for each code.

    >>> tree_levels(16), tree_levels(17)
    (1, 2)
    """
    levels = 1
    while _BRANCHING**levels < size:
        levels += 1
    return levels


@dataclass(frozen=True)
class TreeAnswer:
    """The estimates from the noisy counts. All of it is released.

    `rows`: how many rows there are. `off[i]`: how many ranks code i is away from its quantile by the noisy counts. Each
    count has noise of this `scale`.
    """

    codes: list[int]
    rows: int
    off: list[float]
    scale: Fraction

    def rank_errors(self, qs: Sequence[Fraction], size: int, failure_probability: float) -> list[float]:
        """How many ranks each code is off at most, all together except with this probability, regardless of the rows.

        A running count is a sum of at most 15 nodes a level and one more. So no sum of that many noises above
        `sum_of_noise` makes all of them right up to that, that of all rows too.
        """
        most = sum_of_noise(15 * tree_levels(size) + 1, float(self.scale), failure_probability / size)
        return [(off + (1.0 + float(q)) * most) * (1.0 + 2.0**-40) for off, q in zip(self.off, qs, strict=True)]


def sum_of_noise(count: int, scale: float, failure: float) -> float:
    """A Chernoff bound that `count` discrete Laplace numbers' sum exceeds in magnitude with at most this probability.

    >>> round(sum_of_noise(1, 10.0, 0.05)), round(sum_of_noise(46, 10.0, 0.05))
    (58, 265)
    """
    decay = math.exp(-1.0 / scale)
    slopes = np.arange(1, 400) / (400.0 * scale)
    moments = 2.0 * math.log(-math.expm1(-1.0 / scale)) - np.log1p(-decay * np.exp(slopes))
    moments -= np.log1p(-decay * np.exp(-slopes))
    return float(np.min((count * moments + math.log(2.0 / failure)) / slopes))


def tree_codes(
    column: RankedColumn,
    qs: Sequence[Fraction],
    *,
    size: int,
    epsilon: Fraction,
    adjacency: Adjacency,
    random: RandomSource,
    units: int = 1,
) -> TreeAnswer:
    """Codes at which the estimated running counts reach their shares. `size` should be small.

    Everything after the noise is post-processing: least squares on the tree, then from the top downwards the nearest
    counts that are not negative. A row counts at most `units` units of rank.

    Pure epsilon: integer Laplace noise on counts that one row moves by 1 a level (2 if it is replaced).
    """
    nodes = node_counts(np.diff(rows_below(column, size)))
    moved = len(nodes) * units * (1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2)
    counts = [level + discrete_laplace_array(moved / epsilon, len(level), random) for level in nodes]
    running = np.cumsum(_not_negative(_consistent([level.astype(np.float64) for level in counts])))
    codes = [min(int(np.searchsorted(running, float(q) * running[-1], side="left")), size - 1) for q in qs]
    rows = _below(counts, size)
    off = [
        max(float(q * rows - _below(counts, code + 1)), float(_below(counts, code) - q * rows), 0.0)
        for code, q in zip(codes, qs, strict=True)
    ]
    return TreeAnswer(codes, rows, off, moved / epsilon)


def _below(counts: Sequence[NDArray[np.int64]], code: int) -> int:
    """The noisy number of rows with smaller codes, from the largest nodes."""
    total, done = 0, 0
    for level, nodes in enumerate(counts, start=1):
        width = _BRANCHING ** (len(counts) - level)
        stop = code // width
        total += int(nodes[done // width : stop].sum())
        done = stop * width
    return total


def node_counts(counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows below every node, level by level from the top. Each row is in one node of a level. Secret.

    >>> [level.tolist() for level in node_counts(np.arange(18))]
    [[120, 33], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]]
    """
    levels = tree_levels(len(counts))
    widths = [_BRANCHING**level for level in reversed(range(levels))]
    return [np.add.reduceat(counts, np.arange(0, len(counts), width)) for width in widths]


def _consistent(noisy: Sequence[Array]) -> list[Array]:
    """Least squares: means weighted by variance on the way up, differences shared out on the way down."""
    estimates, variances = [noisy[-1]], [np.ones(len(noisy[-1]))]
    for own in reversed(noisy[:-1]):
        firsts = np.arange(0, len(estimates[0]), _BRANCHING)
        below, spread = np.add.reduceat(estimates[0], firsts), np.add.reduceat(variances[0], firsts)
        estimates.insert(0, (own * spread + below) / (spread + 1.0))
        variances.insert(0, spread / (spread + 1.0))
    for level in range(1, len(estimates)):
        firsts = np.arange(0, len(estimates[level]), _BRANCHING)
        missing = estimates[level - 1] - np.add.reduceat(estimates[level], firsts)
        parents = np.arange(len(estimates[level])) // _BRANCHING
        share = variances[level] / np.add.reduceat(variances[level], firsts)[parents]
        estimates[level] = estimates[level] + share * missing[parents]
    return estimates


def _not_negative(estimates: Sequence[Array]) -> Array:
    """Leaves: in each family the nearest counts >= 0 that add up to what their parent has become."""
    parents = np.maximum(estimates[0].sum(keepdims=True), 0.0)
    for own in estimates:
        families = np.full((len(parents), _BRANCHING), -1e300)
        families.ravel()[: len(own)] = own
        ordered = np.sort(families, axis=1)[:, ::-1]
        excess = (np.cumsum(ordered, axis=1) - parents[:, None]) / np.arange(1, _BRANCHING + 1)
        last = np.maximum(np.count_nonzero(ordered > excess, axis=1) - 1, 0)
        level = excess[np.arange(len(parents)), last]
        parents = np.maximum(families - level[:, None], 0.0).ravel()[: len(own)]
    return parents
