"""How the cells of a column are handled, counted with noise: how many are clipped, missing or cannot be read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, NamedTuple, SupportsFloat

from dpselect.errors import expect, number
from dpselect.mechanisms import Mechanism
from dpselect.numerics.logs import fraction_up
from dpselect.ordered.order_statistics.one import parse_epsilon
from dpselect.ordered.sources.declared import Column, parse_rows_per_person, person_terms
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace

__all__ = ["CellCounts", "CountedCells", "count_cells", "count_epsilon"]

SHARES: Final = (0.01, 0.05)
"""The least and the largest part of epsilon that pays for counts."""
_DEVIATION: Final = 30.0
"""Rows: the standard deviation of a count at which no more of epsilon is spent on it."""
_BITS: Final = 8


class CountedCells(NamedTuple):
    """Noisy numbers of cells, at times below 0. Every row is in one of them.

    A count that the type of the column or its categories rule out is exactly 0, without noise.

    Args:
        inside: cells within the bounds, or in one of the categories.
        below: cells below the lower bound, which are clipped to it.
        above: cells above the upper bound, which are clipped to it.
        missing: cells that are empty, null, NaN or NaT.
        unreadable: cells that hold something else than the column is declared to hold, such as text in no category.
    """

    inside: int
    below: int
    above: int
    missing: int
    unreadable: int


@dataclass(frozen=True, kw_only=True)
class CellCounts(Mechanism):
    """A `CountedCells`: how many cells of a `Column` are handled in which way, with discrete Laplace noise.

    Claim: `epsilon`-DP for all five counts together. Source: docs/theory/lost-cells.md, Theorem 1.

    A row has one cell, which is in one of five counts. So a row more or less changes one count by 1, and a replaced row
    two. Each count has noise of scale 1/epsilon, or 2/epsilon for replaced rows. A person with k rows changes
    the counts by k altogether, so the noise is k times as large. Source: docs/theory/persons.md, Theorem 2.

    Attributes:
        epsilon: the price of all five counts.
        adjacency: which data sets are neighbours.
        rows_per_person: the most rows of a person that take part, or None if rows are protected. A run takes it from
            the column, but give it to `margin` and `mostly_lost` as well.

    >>> counts = CellCounts(epsilon=0.5)
    >>> counts.guarantee.epsilon(delta=0), counts.margin()
    (0.5, 6)
    >>> from dpselect.ordered import Column
    >>> type(counts(Column([1.0, 2.0, 99.0], lower=0, upper=9)).value).__name__
    'CountedCells'
    """

    epsilon: float
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        adjacency = parse_adjacency(self.adjacency)
        rows = parse_rows_per_person(self.rows_per_person, adjacency)
        self._parsed(epsilon=parse_epsilon(self.epsilon), adjacency=adjacency, rows_per_person=rows)

    @property
    def guarantee(self) -> Guarantee:
        """Pure."""
        pure = pure_dp(epsilon=fraction_up(Fraction(self.epsilon)), adjacency=self.adjacency)
        return replace(pure, terms={**pure.terms, **person_terms(self.rows_per_person)})

    @property
    def scale(self) -> Fraction:
        """Of the noise of each count."""
        return (self.rows_per_person or 1) * _moves(self.adjacency) / epsilon_used(self.epsilon)

    def bind(self, *data: Any) -> tuple[CellCounts, tuple[Column]]:
        """The values as a column, with the number of rows that one person has in it."""
        column = Column.of(data[0], {})
        return replace(self, rows_per_person=column.rows_for(self.adjacency, self.rows_per_person)), (column,)

    def prepared(self, column: Column) -> Callable[[RandomSource], CountedCells]:
        """The counts with noise, or exactly 0 if the type of the column or its categories leave nothing to count."""
        scale, possible = self.scale, column.possible

        def run(random: RandomSource) -> CountedCells:
            cells = zip(column.fates().tolist(), possible, strict=True)
            return CountedCells(*(count + discrete_laplace(scale, random) if can_be else 0 for count, can_be in cells))

        return run

    def margin(self, failure_probability: SupportsFloat = 0.05) -> int:
        """How far one count is off at most, except with this probability.

        P(|noise| > k) is 2 q**(k+1)/(1 + q) with q = exp(-1/scale).
        """
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        rate = 1.0 / float(self.scale)
        reach = (math.log(2.0) - math.log1p(math.exp(-rate)) - math.log(failure)) / rate
        return max(0, math.ceil(reach * (1.0 + 2.0**-40)) - 1)

    def mostly_lost(self, found: CountedCells, most: SupportsFloat = 0.2) -> bool:
        """Whether the counts show that more than this share of the cells that hold something cannot be read.

        Decided from the noisy counts alone. If the share is at most `most`, this is true with probability 0.05 at most.
        Source: docs/theory/lost-cells.md, Theorem 2.

        >>> counts = CellCounts(epsilon=0.5)
        >>> counts.mostly_lost(CountedCells(500, 0, 0, 90, 500)), counts.mostly_lost(CountedCells(5, 0, 0, 90, 5))
        (True, False)
        """
        expect("found", found, CountedCells)
        share = number("most", most, at_least=0.0, at_most=1.0)
        others = found.inside + found.below + found.above
        excess = (1.0 - share) * found.unreadable - share * others
        return (
            share < 1.0
            and found.unreadable > 0
            and excess > noise_above(1.0 / float(self.scale), (1.0 - share, share, share, share))
        )


def noise_above(rate: float, weights: tuple[float, ...], failure: float = 0.05) -> float:
    """A number that a weighted sum of discrete Laplace noises exceeds with this probability at most.

    The noises are independent and have scale 1/rate. By Chernoff's bound, at the best of 63 exponents: each of them
    gives one.
    """
    largest = max(weights)

    def log_moment(exponent: float) -> float:
        """Of one noise, below the rate."""
        q = -math.expm1(-rate)
        return 2.0 * math.log(q) - math.log(math.expm1(exponent - rate) * math.expm1(-exponent - rate))

    found = math.inf
    for step in range(1, 64):
        exponent = step / 64.0 * rate / largest
        total = sum(log_moment(weight * exponent) for weight in weights)
        found = min(found, (total - math.log(failure)) / exponent)
    return found * (1.0 + 2.0**-30)


def count_epsilon(epsilon: SupportsFloat, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> float:
    """Return the part of `epsilon` that pays for `CellCounts` next to another answer: a public rule.

    It is the least share between 0.01 and 0.05 at which a count has a standard deviation of 30 rows, or 0.05. It is
    rounded down to eight binary digits, so that the rest of epsilon is exact.

    Args:
        epsilon: the whole budget of the counts and the other answer, above 0.
        adjacency: which data sets are neighbours. Under "replace_one" the noise of a count is doubled.

    Raises:
        ArgumentError: if `epsilon` or `adjacency` does not fit.

    >>> count_epsilon(1.0), count_epsilon(10.0), count_epsilon(0.5)
    (0.047119140625, 0.099609375, 0.02490234375)
    """
    epsilon = number("epsilon", epsilon, above=0.0, rounding="down")
    wanted = math.sqrt(2.0) * _moves(adjacency) / _DEVIATION
    fraction, exponent = math.frexp(min(max(wanted, SHARES[0] * epsilon), SHARES[1] * epsilon))
    return math.ldexp(math.floor(math.ldexp(fraction, _BITS)), exponent - _BITS)


def _moves(adjacency: Adjacency | str) -> int:
    """The sum of the changes of the counts between neighbours."""
    return 1 if parse_adjacency(adjacency) is Adjacency.ADD_OR_REMOVE_ONE else 2


@options_of(CellCounts, Column)
def count_cells(
    values: Any,
    *,
    spender: Spender | None = None,
    label: str = "counts of cells",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return noisy counts of the cells of a column by how they are handled: a `CountedCells` as `value`.

    The counts tell you how many values a `quantile` with the same bounds clips, and how many cells it leaves out. In
    memory nothing is unreadable: a cell that is not a number is missing. Columns of `open_column` have cells that hold
    other text.

    Args:
        values: a `Column`, or the values that one takes, private.
        spender: pays the cost before the rows are read. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: `epsilon` and `adjacency` of `CellCounts`. If `values` is not a `Column`, also the attributes of one,
            such as `lower` and `upper`, or `categories`.

    Raises:
        ArgumentError: if an argument does not fit. No content of a row decides that.
        TypeError: if an argument or the type of the values does not fit.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> count_cells([1.0, 2.0, 99.0, None] * 250, lower=0, upper=10, epsilon=1.0, random=keyed_source(1)).value
    CountedCells(inside=500, below=0, above=250, missing=250, unreadable=0)
    """
    column = Column.of(values, options)
    return CellCounts(**options)(column, spender=spender, label=label, random=random)
