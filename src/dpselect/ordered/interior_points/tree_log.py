"""TreeLog (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022, Algorithms 5, 7 and 8): an interior point through a search tree.

A level takes the smallest and the largest points aside (the border). It asks, noisily, whether the heavy path of the
others has a heavy sibling (Gamma). If so, it finds such a node by walking down the path (`one_heavy_round`), and an
interior point is between the node's two children. If not, each point is replaced by the depth at which it leaves the
path, a domain of `bits` values in place of 2**bits. The deepest points are taken aside before. An interior depth is
found recursively. It and the node at this depth that holds the deepest points give three candidates, and one of them
has the border on both sides. The path itself is never used: a node is chosen privately among the deepest points,
without their labels.

Its cost is in `tree_log_price`. A failed choice gives None, which is part of the private output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect.ordered.domains import Codes
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.search_tree import (
    heavy_path,
    interior_scores,
    join,
    node_weights,
    path_labels,
    sort_codes,
)
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice

__all__ = ["TreeLogParameters", "draw_tree_log", "level_bits", "one_heavy_round"]


@dataclass(frozen=True, kw_only=True)
class TreeLogParameters:
    """Public parameters of a run.

    Attributes:
        epsilon_threshold: of both noises in the test of Gamma; one threshold noise for the whole recursion.
        epsilon_heavy: of both noises in `one_heavy_round`.
        epsilon_border: the final draw has weights exp(epsilon_border score / 2).
        rate_base: the base case has weights exp(rate_base score).
        choice: chooses the node that holds the deepest points.
        border: points taken aside at each end.
        deepest: the deepest points taken aside.
        threshold: Gamma + noise is compared to it.
        heavy_threshold: what a smaller child's noisy weight is compared to.
        promise: Gamma from which on `one_heavy_round` is private.
        gate: a smaller child must weigh more than this to be tested at all, or None.
        base_bits: domains of at most 2**base_bits values go to the exponential mechanism.
        slice_epsilon: of the geometric noise on the sizes of what is taken aside, or None for fixed sizes.
    """

    epsilon_threshold: float
    epsilon_heavy: float
    epsilon_border: float
    rate_base: float
    choice: StableChoice | SupportChoice
    border: int
    deepest: int
    threshold: int
    heavy_threshold: int
    promise: int
    gate: int | None = None
    base_bits: int = 3
    slice_epsilon: float | None = None

    def levels(self, bits: int) -> int:
        """How often the domain is reduced before the base case."""
        count = 0
        while bits > self.base_bits:
            bits, count = level_bits(bits), count + 1
        return count


def level_bits(bits: int) -> int:
    """Bits of the next domain, the depths 1 .. bits, padded to a power of two.

    >>> [level_bits(b) for b in (4, 8, 9, 64, 256)]
    [2, 3, 4, 6, 8]
    """
    return (bits - 1).bit_length()


def draw_tree_log(codes: Codes, bits: int, parameters: TreeLogParameters, draws: SecretDraws) -> int | None:
    """A code in 0 .. 2**bits - 1, or None. `codes` must be ascending."""
    noise = draws.laplace(parameters.epsilon_threshold)
    return _level(codes, bits, 1, parameters, parameters.threshold + noise, draws)


def _level(
    codes: Codes, bits: int, level: int, parameters: TreeLogParameters, threshold: int, draws: SecretDraws
) -> int | None:
    if bits <= parameters.base_bits:
        draws.visit("base case")
        return draws.interior(codes, 1 << bits, parameters.rate_base)
    draws.visit(f"level {level}")
    # the smallest and the largest points, and the others; all there is if there are too few
    first = min(_size(parameters.border, parameters, draws), len(codes))
    last = max(len(codes) - _size(parameters.border, parameters, draws), first)
    border, rest = join(codes[:first], codes[last:]), codes[first:last]
    leaf, gamma, _ = heavy_path(rest, bits)
    if draws.reaches(gamma, threshold, parameters.epsilon_threshold):
        return one_heavy_round(rest, bits, parameters, draws)
    labels = path_labels(rest, leaf, bits)
    # deepest label first, then the largest point first; the points are ascending
    order = np.argsort(labels, kind="stable")[::-1]
    taken = _size(parameters.deepest, parameters, draws)
    deepest = _take(rest, order[:taken])
    depths = np.sort(labels[order[taken:]] - 1).astype(np.uint64)
    found = _level(depths, level_bits(bits), level + 1, parameters, threshold, draws)
    if found is None:
        return None
    depth = min(found + 1, bits)  # a padded domain may answer beyond the last depth
    nodes, weights = node_weights(sort_codes(deepest), bits, depth - 1)
    place = parameters.choice.choose(weights, level=level, draws=draws)
    if place is None:
        draws.visit("no stable choice")
        return None
    candidates = node_candidates(nodes[place], bits - depth + 1)
    scores = interior_scores(border, candidates)
    return candidates[draws.index(scores, parameters.epsilon_border / 2.0)]


def node_candidates(node: int, free_bits: int) -> list[int]:
    """The leftmost and the rightmost leaf under a node, and the rightmost one under its left child."""
    left = node << free_bits
    middle = left + (1 << (free_bits - 1)) - 1 if free_bits else left
    return [left, left + (1 << free_bits) - 1, middle]


def one_heavy_round(codes: Codes, bits: int, parameters: TreeLogParameters, draws: SecretDraws) -> int:
    """The split of the first node on the heavy path whose smaller child seems heavy, or the path's leaf if none does.

    Algorithm 7. It draws one more threshold noise, and a fresh noise for each node.
    """
    draws.visit("one heavy round")
    threshold = parameters.heavy_threshold + draws.laplace(parameters.epsilon_heavy)
    leaf, _, nodes = heavy_path(codes, bits)
    for weight, split in nodes:
        passes = parameters.gate is None or weight > parameters.gate
        if passes and draws.reaches(weight, threshold, parameters.epsilon_heavy):
            draws.visit("heavy node")
            return split
    draws.visit("heavy leaf")
    return leaf


def _size(size: int, parameters: TreeLogParameters, draws: SecretDraws) -> int:
    return size if parameters.slice_epsilon is None else size + draws.geometric(parameters.slice_epsilon)


def _take(codes: Codes, places: np.ndarray) -> Codes:
    return [codes[place] for place in places.tolist()] if isinstance(codes, list) else codes[places]
