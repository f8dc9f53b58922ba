"""A public measure on the codes of a large domain: round numbers weigh more, since many rows often share one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import last_true
from dpselect.ordered.domains import Codes, Domain, Grid, WholeNumbers

__all__ = ["MOST_CODES", "CodeMeasure", "measure_of", "points_at_most"]

MOST_CODES: Final = 1 << 12
"""Domains of up to this many values count as small: all their values have the same weight."""
_EXACT: Final = 1 << 51
"""Multipliers of a granularity up to this many, and halves between them, are exact doubles."""
_MOST_ROUND: Final = 1 << 20
"""Numbers of a round spacing beyond this many are not more likely to be shared by many rows than others."""
_FADE: Final = 3
"""A spacing ten times as large has a share so many times smaller: its numbers are ten times fewer."""
_SHARE: Final = 2
"""All round numbers together weigh as much as one in so many of all codes."""


@dataclass(frozen=True)
class CodeMeasure:
    """Public integer weights of the codes 0 .. `size` - 1, each at least 1.

    A code of weight w stands for w points. The points of all codes are 0, 1, ... in order.

    Attributes:
        size: how many codes there are.
        first: the multiplier of the granularity at code 0.
        levels: for each round spacing, the granularity over it, and the weight that its multiples have on top.

    >>> tens = CodeMeasure(size=100, first=0, levels=((0.1, 5),))
    >>> tens.starts(np.array([10, 11, 12], dtype=np.uint64)).tolist(), tens.points
    ([15, 21, 22], 150)
    >>> [tens.code_at(point) for point in (14, 15, 20, 21)]
    [9, 10, 10, 11]
    """

    size: int
    first: int = 0
    levels: tuple[tuple[float, int], ...] = ()

    @property
    def points(self) -> int:
        """The weight of all codes."""
        return self.start(self.size)

    def start(self, code: int) -> int:
        """The weight of all codes below this one."""
        if not self.levels:  # of any size, also beyond the doubles
            return code
        place, low = code + (self.first - 0.5), self.first - 0.5
        return code + sum(weight * (math.ceil(place * ratio) - math.ceil(low * ratio)) for ratio, weight in self.levels)

    def starts(self, codes: Codes) -> Codes:
        """`start` of each code, the same on any machine: a code and a spacing have one rounded product."""
        if not self.levels:
            return codes
        exact = np.asarray(codes, dtype=np.uint64)
        places, found = exact.astype(np.float64) + (self.first - 0.5), exact.copy()
        for ratio, weight in self.levels:
            multiples = np.ceil(places * ratio) - np.ceil((self.first - 0.5) * ratio)
            found += multiples.astype(np.uint64) * np.uint64(weight)
        return found

    def weights(self, codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The weight of each code."""
        if not self.levels:
            return np.ones(len(codes), dtype=np.uint64)
        return np.asarray(self.starts(codes + np.uint64(1)), dtype=np.uint64) - np.asarray(self.starts(codes))

    def code_at(self, point: int) -> int:
        """The code that the point belongs to."""
        if not self.levels:
            return point
        found = last_true(lambda code: self.start(code) <= point, 0, self.size - 1)
        assert found is not None
        return found


def points_at_most(size: int) -> int:
    """A bound on `CodeMeasure.points` for a domain of this many values. Stated rank errors use it.

    Source: docs/theory/round-values.md, Theorem 3.

    >>> points_at_most(4096), points_at_most(1 << 20)
    (4096, 1572864)
    """
    return size if size <= MOST_CODES else size + size // _SHARE


def measure_of(domain: Domain) -> CodeMeasure:
    """The measure of a domain: by its public parameters alone.

    Numbers on a grid of more than 4096 values have round ones: the multiples of the powers of ten, such as 10 and 0.1.
    Each power with at most 2**20 multiples between the bounds has a share of half the number of codes, a third of that
    of the power below it. Timestamps, categories and the doubles of "float64" have equal weights.

    Source: docs/theory/round-values.md, Theorem 1.

    >>> from dpselect.ordered.domains import WholeNumbers
    >>> measure = measure_of(WholeNumbers(0, 10**6))
    >>> measure.points <= points_at_most(measure.size)
    True
    >>> measure.weights(np.array([0, 1, 40, 500_000], dtype=np.uint64)).tolist()
    [1691, 1, 4, 548]
    """
    if isinstance(domain, Grid):
        first, step = domain.first, domain.granularity
    elif isinstance(domain, WholeNumbers):
        first, step = domain.lower, Fraction(1)
    else:
        return CodeMeasure(domain.size)
    size = domain.size
    if size <= MOST_CODES or max(abs(first), abs(first + size)) > _EXACT:
        return CodeMeasure(size)
    return _with_round_values(first, size, step)


@lru_cache(maxsize=256)
def _with_round_values(first: int, size: int, step: Fraction) -> CodeMeasure:
    """The weights of the round spacings, rounded down."""
    ratios = _round_ratios(first, size, step)
    counts = [CodeMeasure(size, first, ((ratio, 1),)).points - size for ratio in ratios]
    shares = [_FADE**level for level in reversed(range(len(ratios)))]
    levels = (
        (ratio, size * share // (_SHARE * sum(shares) * count))
        for ratio, count, share in zip(ratios, counts, shares, strict=True)
    )
    return CodeMeasure(size, first, tuple(level for level in levels if level[1]))


def _round_ratios(first: int, size: int, step: Fraction) -> list[float]:
    """The granularity over each power of ten that has few enough multiples, up to one that has a single multiple."""
    power = 0
    while size * step > Fraction(10) ** power * _MOST_ROUND:
        power += 1
    while size * step <= Fraction(10) ** (power - 1) * _MOST_ROUND:
        power -= 1
    found: list[float] = []
    while True:
        ratio = float(step / Fraction(10) ** power)
        count = CodeMeasure(size, first, ((ratio, 1),)).points - size
        if ratio <= 0.25 and count > 0:
            found.append(ratio)
        if ratio <= 0.25 and count <= 1:
            return found
        power += 1
