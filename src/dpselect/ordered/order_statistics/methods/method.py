"""A way to draw several quantiles of one column: what it needs, costs, draws, and how far it may be off."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final

from dpselect.ordered.order_statistics.by_slices import Slicing
from dpselect.ordered.order_statistics.intervals import PrefetchedColumn, RankedColumn
from dpselect.ordered.order_statistics.one import rank_error
from dpselect.ordered.order_statistics.recursive import Cut
from dpselect.ordered.order_statistics.tree import TreeAnswer
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import Adjacency, Guarantee
from dpselect.randomness import RandomSource
from dpselect.registry import Registry

__all__ = [
    "CHOICES",
    "METHODS",
    "AskedQuantiles",
    "DrawnCodes",
    "MethodPlan",
    "ProvedMethod",
    "QuantileMethod",
    "cut_errors",
    "read_around",
]

LARGEST: Final = 1 << 64
"""Values of a domain on which ties can be broken at random."""

CHOICES: Final = ("auto", "least_bound")
"""Names that choose among the methods, by public facts."""


@dataclass(frozen=True)
class AskedQuantiles:
    """Public facts. `qs` increase, a row counts at most `units` units of rank. `expected_rows` is a guess.

    Epsilon is for a person with at most `rows` rows.
    """

    qs: tuple[Fraction, ...]
    epsilon: float
    adjacency: Adjacency
    units: int = 1
    delta: float | None = None
    expected_rows: int = 1000
    rows: int = 1

    @property
    def row_epsilon(self) -> float:
        """The part of epsilon that one row has, to choose by."""
        return self.epsilon / self.rows


@dataclass(frozen=True)
class MethodPlan:
    """The rates of the exponential mechanisms, the guarantee of all, and the parts that a method works with."""

    rates: tuple[Fraction, ...]
    guarantee: Guarantee
    cuts: tuple[Cut, ...] = ()
    slicing: Slicing | None = None


@dataclass(frozen=True)
class DrawnCodes:
    """One code for each quantile. `rows` and `tree` are released too, if the method pays for them."""

    codes: list[int]
    rows: int | None = None
    tree: TreeAnswer | None = None


class QuantileMethod(ABC):
    """One method for one request. Its answers depend on the rows through private draws alone."""

    weights: ClassVar[bool] = True
    """Whether rows may have weights."""
    needs_delta: ClassVar[bool] = False
    most_values: ClassVar[float] = LARGEST
    """Values that the domain may have."""

    def __init__(self, asked: AskedQuantiles) -> None:
        self.asked = asked

    @property
    def quick(self) -> bool:
        """Whether it takes little time and memory."""
        return True

    @cached_property
    def planned(self) -> MethodPlan:
        """Rates and guarantee, from public facts."""
        return self.plan()

    @abstractmethod
    def plan(self) -> MethodPlan:
        """See `planned`."""

    @abstractmethod
    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """One private draw."""

    @abstractmethod
    def released_errors(self, drawn: DrawnCodes, size: int, failure: float) -> list[float]:
        """How many ranks each is off at most, except with probability `failure`, by what was released."""


class ProvedMethod(QuantileMethod):
    """A method whose errors are known before the draw."""

    @abstractmethod
    def rank_errors(self, size: int, failure: float) -> list[float]:
        """See `released_errors`."""

    def released_errors(self, drawn: DrawnCodes, size: int, failure: float) -> list[float]:  # noqa: ARG002
        """The draw adds nothing to what is known before."""
        return self.rank_errors(size, failure)


METHODS = Registry[type[QuantileMethod]]("method", room="dpselect.ordered.order_statistics.methods")


def cut_errors(method: QuantileMethod, fine: int, failure: float) -> list[float]:
    """How far each cut is off: its own error adds to a weighted mean of those of the cuts around it."""
    count, planned = len(method.asked.qs), method.planned
    found: dict[int | None, float] = {None: 0.0}
    for cut, rate in zip(planned.cuts, planned.rates, strict=True):
        share = float(cut.share)
        ends = (1.0 - share) * found[cut.low] + share * found[cut.high]
        error = rank_error(fine, rate, failure / count) / method.asked.units
        found[cut.index] = (error + ends) * (1.0 + 2.0**-48)
    return [found[index] for index in range(count)]


def read_around(column: RankedColumn, method: ProvedMethod, size: int) -> None:
    """Read in one pass the rows of a large file that will be looked at, most likely."""
    if isinstance(column, PrefetchedColumn):
        aside, total, spans = 100.0 / float(min(method.planned.rates)), column.total, []
        for q, error in zip(method.asked.qs, method.rank_errors(size, 0.05), strict=True):
            reach = math.ceil(error + aside)
            spans.append((math.floor(q * total) - reach, math.ceil(q * total) + reach))
        column.prefetch(spans)
