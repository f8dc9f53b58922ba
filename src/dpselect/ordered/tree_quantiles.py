"""Very many quantiles of a coarse domain: noisy counts in a consistent tree (Hay, Rastogi, Miklau, Suciu 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.intervals import RankedColumn
from dpselect.ordered.small_domain import rows_below
from dpselect.privacy import Adjacency, Guarantee, pure_dp
from dpselect.randomness import RandomSource
from dpselect.randomness.whole_numbers import discrete_laplace_array

__all__ = ["node_counts", "tree_codes", "tree_guarantee", "tree_levels"]

Array = NDArray[np.float64]
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


def tree_guarantee(epsilon: float, adjacency: Adjacency) -> Guarantee:
    """Pure epsilon: whole-number Laplace noise on counts that one row moves by 1 a level (2 if it is replaced)."""
    return pure_dp(epsilon=epsilon, adjacency=adjacency)


def tree_codes(
    column: RankedColumn,
    qs: Sequence[Fraction],
    *,
    size: int,
    epsilon: Fraction,
    adjacency: Adjacency,
    random: RandomSource,
) -> list[int]:
    """Codes at which the estimated running counts reach their shares; `size` should be small.

    Everything after the noise is post-processing: least squares on the tree, then from the top downwards the nearest
    counts that are not negative.
    """
    nodes = node_counts(np.diff(rows_below(column, size)))
    moved = len(nodes) * (1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2)
    noisy = [
        (level + discrete_laplace_array(moved / epsilon, len(level), random)).astype(np.float64) for level in nodes
    ]
    running = np.cumsum(_not_negative(_consistent(noisy)))
    return [min(int(np.searchsorted(running, float(q) * running[-1], side="left")), size - 1) for q in qs]


def node_counts(counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows below every node, level by level from the top; each row is in one node of a level. Secret.

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
