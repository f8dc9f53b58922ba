"""Ranking a few noisy numbers as real numbers, with as many bits of their noise as the order needs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from dpselect.randomness.lazy import LazyGumbel, LazyLaplace

__all__ = ["FEW_BITS", "WINDOW", "Contender", "ranking"]

WINDOW = 2.0**-6
"""Contenders estimated in double precision no further than this below the cut are ranked exactly.

The estimates are within a small part of it wherever their noise's word is not below `FEW_BITS`."""
FEW_BITS = 1 << 20
"""Words below this say too little about their logarithm for an estimate; they are always ranked exactly."""


_BITS = 64


@dataclass(frozen=True, repr=False)
class Contender:
    """A candidate whose noisy score is centre + scale * noise."""

    index: int
    centre: Fraction
    noise: LazyLaplace | LazyGumbel
    scale: Fraction = Fraction(1)

    def enclosure(self, bits: int) -> tuple[Fraction, Fraction]:
        """(low, high) around the noisy score."""
        low, high = self.noise.enclosure(bits)
        return self.centre + self.scale * low, self.centre + self.scale * high


def ranking(contenders: list[Contender], count: int) -> list[int]:
    """The indices of the `count` largest noisy scores, largest first. Noisy scores differ with probability one."""
    if len(contenders) == 1:
        return [contenders[0].index][:count]
    enclosures = [c.enclosure(_BITS) for c in contenders]
    widest = max((high - low for low, high in enclosures), default=Fraction(0))
    left = sorted(range(len(contenders)), key=lambda place: enclosures[place][0])  # the largest one last
    ranked: list[int] = []
    while left and len(ranked) < count:
        floor = enclosures[left[-1]][0]
        near = itertools.takewhile(lambda place: enclosures[place][0] >= floor - widest, reversed(left))  # noqa: B023
        leaders = sorted(place for place in near if enclosures[place][1] >= floor)
        if len(leaders) == 1:
            first = contenders[left.pop()]
        else:
            first = _largest([contenders[place] for place in leaders])
            left.remove(contenders.index(first))
        ranked.append(first.index)
    return ranked


def _largest(contenders: list[Contender]) -> Contender:
    bits = _BITS
    while len(contenders) > 1:
        bits *= 2  # searches: more bits of lazy numbers until their order is known
        enclosures = [c.enclosure(bits) for c in contenders]
        floor = max(low for low, _ in enclosures)
        contenders = [c for c, (_, high) in zip(contenders, enclosures, strict=True) if high >= floor]
    return contenders[0]
