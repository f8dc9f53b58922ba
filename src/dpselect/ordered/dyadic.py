"""An interior point by dyadic intervals: a depth, a node at that depth, one of three points.

M_j is the largest number of points that share their first j bits, psi(j) = min(M_j, n - M_(j+1)). Adding a point
raises each M_j by 0 or 1, so psi moves by at most one, upwards only. (If M_j and M_(j+1) both rise, n - M_(j+1)
stays; if M_(j+1) does not, n - M_(j+1) rises by one.) The last depth with M_j >= n/2 has psi >= n/2. A depth is drawn
by the exponential mechanism, a node at that depth by stable choice, and a point by the exponential mechanism among
the node's ends and its middle. One level of the idea behind TreeLog, with no promise and no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.domains import Codes
from dpselect.ordered.interior_point_draws import SecretDraws
from dpselect.ordered.search_tree import interior_scores, node_weights, shared_prefixes
from dpselect.ordered.stable_choice import StableChoice
from dpselect.ordered.tree_log import node_candidates

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
    heaviest[: bits + 1] = min(count, 1)
    heaviest[0] = count
    shared = shared_prefixes(codes, bits) if count else np.zeros(0, dtype=np.int64)
    # the places where a new node begins, fewer and fewer towards the root
    starts = np.flatnonzero(shared < bits)
    for depth in range(bits, 0, -1):
        starts = starts[shared[starts] < depth]
        edges = np.concatenate(([-1], starts, [count - 1]))
        heaviest[depth] = int(np.max(np.diff(edges), initial=0))
    return np.minimum(heaviest[:-1], count - heaviest[1:])


def draw_dyadic(codes: Codes, bits: int, parameters: DyadicParameters, draws: SecretDraws) -> int | None:
    """A code in 0 .. 2**bits - 1, or None when no node is heavy enough; `codes` ascending."""
    depth = draws.index(depth_scores(codes, bits).tolist(), parameters.epsilon_depth)
    nodes, weights = node_weights(codes, bits, depth)
    place = parameters.choice.choose(weights, level=1, draws=draws)
    if place is None:
        draws.visit("no stable choice")
        return None
    candidates = node_candidates(nodes[place], bits - depth)
    return candidates[draws.index(interior_scores(codes, candidates), parameters.epsilon_point)]
