"""Shapes of points that interior-point methods find hard: ties, gaps, clusters, and paths down a search tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from dpselect.randomness import RandomSource

__all__ = ["SHAPES"]

Shape = Callable[[int, int, RandomSource], list[int]]


def _run(count: int, bits: int, random: RandomSource) -> list[int]:
    start = random.below((1 << bits) - count)
    return list(range(start, start + count))


def _path(count: int, bits: int, random: RandomSource) -> list[int]:
    """A leaf with one random bit flipped: points leave its path at every depth."""
    leaf = random.bits(bits)
    return [leaf ^ (1 << random.below(bits)) for _ in range(count)]


def _steep(count: int, bits: int, random: RandomSource) -> list[int]:
    """The same with bits near the top: most points leave the path early."""
    leaf = random.bits(bits)
    depths = random.exponential(count) / 0.7
    return [leaf ^ (1 << max(0, bits - 1 - math.floor(depth))) for depth in depths.tolist()]


SHAPES: Final[Mapping[str, Shape]] = {
    "uniform": lambda count, bits, random: [random.bits(bits) for _ in range(count)],
    "constant": lambda count, bits, random: [random.bits(bits)] * count,
    "run": _run,
    "ends": lambda count, bits, _: [0, (1 << bits) - 1] * (count // 2),
    "powers": lambda count, bits, random: [(1 << random.below(bits)) - random.below(2) for _ in range(count)],
    "straddle": lambda count, bits, _: [(1 << bits - 1) - 1, 1 << bits - 1] * (count // 2),
    "path": _path,
    "steep path": _steep,
}
"""`SHAPES[name](count, bits, random)`: an even number of points below 2**bits, in any order."""
