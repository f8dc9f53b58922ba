"""The binary search tree over an ordered domain of 2**bits codes, without building it.

Codes are sorted: uint64 arrays for up to 64 bits, lists of Python integers beyond. A node at depth q (the root has
depth 1) is given by its first q-1 bits. The heavy path goes from the root to the heavier child, to the left on ties
(Cohen et al. 2022, Section 3). Everything here is secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.domains import Codes
from dpselect.ordered.interior_points.draws import SecretDraws

__all__ = [
    "bit_lengths",
    "code_bits",
    "count_below",
    "draw_binary_search",
    "heavy_path",
    "interior_scores",
    "join",
    "node_weights",
    "path_labels",
    "shared_prefixes",
    "sort_codes",
]


def code_bits(size: int) -> int:
    """Bits of the codes 0 .. size - 1, at least one."""
    return max((size - 1).bit_length(), 1)


def sort_codes(codes: Codes) -> Codes:
    """Ascending."""
    return sorted(codes) if isinstance(codes, list) else np.sort(codes)


def count_below(codes: Codes, code: int, low: int = 0, high: int | None = None) -> int:
    """How many codes are smaller. The number is known to be between `low` and `high`."""
    high = len(codes) if high is None else high
    if isinstance(codes, list):
        return bisect_left(codes, code, low, high)
    if code >= 1 << 64:
        return high
    return low + int(np.searchsorted(codes[low:high], np.uint64(code), side="left"))


def draw_binary_search(codes: Codes, bits: int, noise_multiplier: float, draws: SecretDraws) -> int:
    """A code in 0 .. 2**bits - 1 by noisy binary search, for ascending codes: `bits` comparisons with Gaussian noise.

    The question at a middle is whether more points are at or below it than above. The difference of the two numbers
    moves by one when a point is added. An answer matters only if all points are on one side. The `bits` answers, each
    with noise of standard deviation `noise_multiplier` sqrt(bits), are one Gaussian mechanism with `noise_multiplier`
    at sensitivity one, for adding or removing a point.
    """
    start, total = 0, len(codes)
    for level in range(bits - 1, -1, -1):
        middle = start + (1 << level)
        below = count_below(codes, middle)
        if not draws.majority(2 * below - total, noise_multiplier * float(bits) ** 0.5 * (1.0 + 1e-15)):
            start = middle
    return start


def join(first: Codes, second: Codes) -> Codes:
    """Both, in this order."""
    return np.concatenate((first, second)) if isinstance(first, np.ndarray) else [*first, *second]


def heavy_path(codes: Codes, bits: int) -> tuple[int, int, list[tuple[int, int]]]:
    """(leaf of the heavy path, Gamma, [(smaller child's weight, rightmost code of the left child)] from the root down).

    Gamma is the largest of the smaller children's weights. Its sensitivity is one. Source: Cohen et al. 2022, Lemma
    3.5.
    """
    start, low, high, nodes = 0, 0, len(codes), []
    for level in range(bits - 1, -1, -1):
        middle = start + (1 << level)
        cut = count_below(codes, middle, low, high)
        nodes.append((min(cut - low, high - cut), middle - 1))
        if cut - low >= high - cut:
            high = cut
        else:
            start, low = middle, cut
    return start, max((weight for weight, _ in nodes), default=0), nodes


def bit_lengths(codes: Codes) -> NDArray[np.int64]:
    """`int.bit_length` of each."""
    if isinstance(codes, list):
        return np.array([code.bit_length() for code in codes], dtype=np.int64)
    upper, lower = (codes >> np.uint64(32)).astype(np.float64), (codes & np.uint64(0xFFFFFFFF)).astype(np.float64)
    return np.where(upper > 0.0, 32 + np.frexp(upper)[1], np.frexp(lower)[1]).astype(np.int64)


def path_labels(codes: Codes, leaf: int, bits: int) -> NDArray[np.int64]:
    """The embedding's labels 1 .. bits: the depth at which a point leaves the path to `leaf`, the leaf itself `bits`.

    Algorithm 4 walks the tree. The depth is that of the first bit in which point and leaf differ.
    """
    apart: Codes = [code ^ leaf for code in codes] if isinstance(codes, list) else codes ^ np.uint64(leaf)
    return np.minimum(bits, bits - bit_lengths(apart) + 1)


def shared_prefixes(codes: Codes, bits: int) -> NDArray[np.int64]:
    """How many leading bits neighbouring codes share, with one entry fewer than there are codes."""
    if isinstance(codes, list):
        apart: Codes = [a ^ b for a, b in pairwise(codes)]
    else:
        apart = codes[1:] ^ codes[:-1]
    return bits - bit_lengths(apart)


def node_weights(codes: Codes, bits: int, depth_bits: int) -> tuple[list[int], NDArray[np.int64]]:
    """The nodes given by `depth_bits` leading bits that hold points, ascending, and how many each holds."""
    if not len(codes):
        return [], np.zeros(0, dtype=np.int64)
    starts = np.concatenate(([0], np.flatnonzero(shared_prefixes(codes, bits) < depth_bits) + 1))
    weights = np.diff(np.append(starts, len(codes)))
    return [int(codes[place]) >> (bits - depth_bits) for place in starts.tolist()], weights


def interior_scores(codes: Codes, candidates: Sequence[int]) -> list[int]:
    """min(#{x <= z}, #{x >= z}) for each candidate z."""
    return [min(count_below(codes, z + 1), len(codes) - count_below(codes, z)) for z in candidates]
