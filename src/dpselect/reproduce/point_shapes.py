"""Shapes of points that interior-point methods find hard: ties, gaps, clusters, and paths down a search tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from dpselect.randomness import RandomSource

__all__ = ["SHAPES"]

Shape = Callable[[int, int, RandomSource], list[int]]


def _uniform(count: int, bits: int, random: RandomSource) -> list[int]:
    return [random.bits(bits) for _ in range(count)]


def _constant(count: int, bits: int, random: RandomSource) -> list[int]:
    return [random.bits(bits)] * count


def _run(count: int, bits: int, random: RandomSource) -> list[int]:
    start = random.below((1 << bits) - count)
    return list(range(start, start + count))


def _ends(count: int, bits: int, _random: RandomSource) -> list[int]:
    return [0, (1 << bits) - 1] * (count // 2)


def _powers(count: int, bits: int, random: RandomSource) -> list[int]:
    return [(1 << random.below(bits)) - random.below(2) for _ in range(count)]


def _straddle(count: int, bits: int, _random: RandomSource) -> list[int]:
    return [(1 << bits - 1) - 1, 1 << bits - 1] * (count // 2)


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
    "uniform": _uniform,
    "constant": _constant,
    "run": _run,
    "ends": _ends,
    "powers": _powers,
    "straddle": _straddle,
    "path": _path,
    "steep path": _steep,
}
"""`SHAPES[name](count, bits, random)`: an even number of points below 2**bits, in any order."""
