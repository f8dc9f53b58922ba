"""An interior point by dyadic intervals: a depth, a node at that depth, one of three points.

M_j is the largest number of points that share their first j bits, psi(j) = min(M_j, n - M_(j+1)). Adding a point raises
each M_j by 0 or 1, so psi moves by at most one, upwards only. If M_j and M_(j+1) both rise, n - M_(j+1) stays. If
M_(j+1) does not rise, n - M_(j+1) rises by one. The last depth with M_j >= n/2 has psi >= n/2. A depth is drawn by the
exponential mechanism, a node at that depth by stable choice, and a point by the exponential mechanism among the node's
ends and its middle. This is one level of the idea behind TreeLog, with no promise and no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.domains import Codes
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.search_tree import interior_scores, node_weights, shared_prefixes
from dpselect.ordered.interior_points.stable_choice import StableChoice
from dpselect.ordered.interior_points.tree_log import node_candidates

__all__ = ["DyadicParameters", "depth_scores", "draw_dyadic"]


@dataclass(frozen=True, kw_only=True)
class DyadicParameters:
    """Epsilons of the depth, of the node (with a delta) and of the point. They add up, by basic composition."""

    epsilon_depth: float
    choice: StableChoice
    epsilon_point: float


def depth_scores(codes: Codes, bits: int) -> NDArray[np.int64]:
    """psi(0), ..., psi(bits) for ascending codes.

    >>> depth_scores(np.array([0, 1, 6, 7], dtype=np.uint64), 3).tolist()
    [2, 2, 2, 1]
    """
    count = len(codes)
    heaviest = np.zeros(bits + 2, dtype=np.int64)
    if count:
        heaviest[: bits + 1] = np.maximum.accumulate(_merged_weights(codes, bits)[::-1])[::-1]
    return np.minimum(heaviest[:-1], count - heaviest[1:])


def _merged_weights(codes: Codes, bits: int) -> NDArray[np.int64]:
    """At each depth 0 .. bits, the weight of the largest node that merges smaller ones there, or 1 if there is none.

    It closes the gaps between neighbours in a doubly linked list, from the gap that shares most bits to the one that
    shares least. All gaps of one depth are closed at once. Every gap is touched once, regardless of the number of bits.
    """
    count = len(codes)
    shared = shared_prefixes(codes, bits)
    before, after = np.arange(-1, count), np.arange(1, count + 2)
    largest = np.ones(bits + 1, dtype=np.int64)
    # gap g is between codes g - 1 and g; gaps 0 and count stay
    order = np.argsort(shared.astype(np.uint16 if bits < 1 << 16 else np.int64), kind="stable") + 1
    ends = np.searchsorted(shared[order - 1], np.arange(bits + 2))
    for depth in range(bits, -1, -1):
        gaps = order[ends[depth] : ends[depth + 1]]
        if not len(gaps):
            continue
        # chains of gaps that follow each other are closed together
        breaks = np.flatnonzero(after[gaps[:-1]] != gaps[1:])
        left = before[gaps[np.append(0, breaks + 1)]]
        right = after[gaps[np.append(breaks, len(gaps) - 1)]]
        after[left], before[right] = right, left
        largest[depth] = int(np.max(right - left))
    return largest


def draw_dyadic(codes: Codes, bits: int, parameters: DyadicParameters, draws: SecretDraws) -> int | None:
    """A code in 0 .. 2**bits - 1, or None when no node is heavy enough. `codes` must be ascending."""
    depth = draws.index(depth_scores(codes, bits).tolist(), parameters.epsilon_depth)
    nodes, weights = node_weights(codes, bits, depth)
    place = parameters.choice.choose(weights, level=1, draws=draws)
    if place is None:
        draws.visit("no stable choice")
        return None
    candidates = node_candidates(nodes[place], bits - depth)
    return candidates[draws.index(interior_scores(codes, candidates), parameters.epsilon_point)]
