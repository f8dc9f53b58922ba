"""Counts, with noise, of how a study's cells are handled: one vector for all columns, and every row pays one share.

Each feature column and the label have five counts (`tables.fates.FATES`). If too many cells of a column cannot be
read, nothing is trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpselect.accounting import calibrate
from dpselect.learners.containers import numpy_kind
from dpselect.mechanisms.grid import gaussian_integers
from dpselect.numerics.logs import fraction_up
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, gaussian, pure_dp
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace
from dpselect.study.columns.column import TEXT, Column
from dpselect.study.schema import Study
from dpselect.study.target import Target
from dpselect.tables import Declared
from dpselect.tables.categories import positions
from dpselect.tables.fates import FATES, INSIDE, MISSING, UNREADABLE, lost_fates, number_fates, tally, text_fates

__all__ = ["CellPrice", "cell_price", "column_fates", "label_fates", "with_bounds"]

SHARES: Final = (0.01, 0.05)
"""Of the total, in squares of its Gaussian differential privacy parameter; without delta of epsilon."""
_DEVIATION: Final = 30.0
"""Rows: the standard deviation of a count at which no more is spent on it."""
_FAILURE: Final = 0.05
_LEAST: Final = 2.0**-20
_MOST: Final = 2**40
"""Rows: with more noise than that there is nothing to learn from a count."""
Rows = NDArray[np.int64] | None
"""How many rows have each cell. None for one each."""


@dataclass(frozen=True)
class CellPrice:
    """The public parameters of the counts of these columns' cells (the label last), and their cost.

    `deviation` is the standard deviation of Gaussian noise, or if `pure` the scale of Laplace noise. `most` is the
    share of unreadable cells above which nothing is trained. `bounded` are the columns of numbers. In other columns
    nothing is clipped, so that two of their counts are 0 without noise.

    Claim: one row changes one count by 1 in each column, or two by 1 if it is replaced. So all counts together are
    a Gaussian mechanism of sensitivity sqrt(columns), or sqrt(2 columns). With Laplace noise they are a mechanism of
    sensitivity columns, or 2 columns. Sensitivities are `per_person` times as large for a person with so many rows.
    Source: docs/theory/lost-cells.md, Theorem 3, and docs/theory/persons.md, Theorem 2.
    """

    columns: tuple[str, ...]
    deviation: float
    pure: bool
    adjacency: Adjacency
    most: float
    bounded: tuple[bool, ...]
    per_person: int = 1

    @cached_property
    def guarantee(self) -> Guarantee:
        """The price of all counts."""
        moved = _moved(len(self.columns), self.adjacency)
        if self.pure:
            epsilon = fraction_up(Fraction(self.per_person * moved) / Fraction(self.deviation))
            return pure_dp(epsilon=epsilon, adjacency=self.adjacency)
        noise = self.deviation / math.sqrt(self.per_person**2 * moved) * (1.0 - 2.0**-50)
        return gaussian(noise_multiplier=noise, adjacency=self.adjacency)

    def noisy(self, counts: NDArray[np.int64], random: RandomSource) -> NDArray[np.int64]:
        """The counts with noise, shape (columns, fates)."""
        if self.pure:
            drawn = [discrete_laplace(self.deviation, random) for _ in range(counts.size)]
            noise = np.array(drawn, dtype=np.int64).reshape(counts.shape)
        else:
            noise = gaussian_integers(self.deviation, counts.shape, random)
        noise[~np.array(self.bounded), FATES.index("below") : MISSING] = 0
        return np.asarray(counts + noise)

    @property
    def margin(self) -> int:
        """How far a count is off at most: all of them, except with probability 0.05."""
        failure = _FAILURE / (len(FATES) * len(self.columns))
        if self.pure:
            return math.ceil(-self.deviation * math.log(failure))
        return math.ceil(-self.deviation * float(ndtri(failure / 2.0))) + 1

    def withheld(self, noisy: NDArray[np.int64]) -> list[str]:
        """The columns with a larger share of unreadable cells than `most`, as these counts show. Usually none.

        If no column has more, one is named with probability 0.05 at most. Source: docs/theory/lost-cells.md, Theorem 4.
        """
        share, margin = self.most, self._excess_margin
        found = []
        for name, counts in zip(self.columns, noisy.tolist(), strict=True):
            lost, others = counts[UNREADABLE], sum(counts[:MISSING])
            if share < 1.0 and lost > 0 and (1.0 - share) * lost - share * others > margin:
                found.append(name)
        return found

    @property
    def _excess_margin(self) -> float:
        """A bound on (1 - most) times one noise less most times three others, in all columns but with `_FAILURE`."""
        failure = _FAILURE / len(self.columns)
        weights = (1.0 - self.most, self.most, self.most, self.most)
        if self.pure:
            from dpselect.ordered.order_statistics.cell_counts import noise_above  # which other studies need not load

            return noise_above(1.0 / self.deviation, weights, failure)
        return self.deviation * math.hypot(*weights) * math.sqrt(-2.0 * math.log(failure)) + 1.0

    def describe(self, delta: float) -> dict[str, Any]:
        """The cost of the counts and how exact they are."""
        return {
            "epsilon": self.guarantee.epsilon(delta),
            "margin_95": self.margin,
            "most_unreadable": self.most,
        }

    def released(self, noisy: NDArray[np.int64], delta: float) -> dict[str, Any]:
        """The released facts of the cells. None of the counts is below 0."""
        shown = {
            name: dict(zip(FATES, (max(0, count) for count in counts), strict=True))
            for name, counts in zip(self.columns, noisy.tolist(), strict=True)
        }
        return {**self.describe(delta), "columns": shown, "withheld": self.withheld(noisy)}


def cell_price(study: Study, columns: Mapping[str, Column], *, pure: bool = False) -> CellPrice | None:
    """The parameters and the cost of counts, by a public rule. None if the study wants no counts or says no total.

    The least share between 0.01 and 0.05 with which a count has a standard deviation of 30 rows, or 0.05. None too if
    that would say nothing: if counts may be off by as many rows as there are about (`privacy.nominal_rows`). Noise is
    Laplace's if delta is 0, or with `pure`, beside runs that need no delta.
    """
    data, privacy = study.data, study.privacy
    if not data.count_cells or privacy.epsilon is None:
        return None
    names = (*columns, data.label)
    bounded = (*(column.bounds is not None for column in columns.values()), data.target.bounds is not None)
    moved, rows, pure = _moved(len(names), privacy.adjacency), privacy.per_person, pure or privacy.delta == 0.0
    if pure:
        wanted = math.sqrt(2.0) * rows * moved / _DEVIATION / privacy.epsilon
        deviation = rows * moved / (min(max(wanted, SHARES[0]), SHARES[1]) * privacy.epsilon) * (1.0 + 2.0**-50)
    else:
        noise = calibrate(lambda each: gaussian(noise_multiplier=each), epsilon=privacy.epsilon, delta=privacy.delta)
        share = min(max(rows**2 * moved * (noise / _DEVIATION) ** 2, SHARES[0]), SHARES[1])
        deviation = rows * math.sqrt(moved / share) * noise
    deviation = max(deviation, _LEAST)  # less noise would not be exact, and more is as private
    found = CellPrice(names, deviation, pure, privacy.adjacency, data.most_unreadable, bounded, rows)
    return found if found.margin < (privacy.nominal_rows or _MOST) else None


def _moved(columns: int, adjacency: Adjacency) -> int:
    """How many counts differ by 1 between neighbours."""
    return columns * (1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2)


def column_fates(name: str, column: Column, cells: Any, rows: Rows = None) -> NDArray[np.int64]:
    """The counts of a feature, each cell's fate by itself. Of categories a cell may be in so many `rows`.

    If a column's bounds are private, the counts are those of the range that holds the bounds: see `with_bounds`. Raises
    what `Column.encode` does.
    """
    declared = column.declared
    if column.kind == TEXT:
        return tally(text_fates(cells, np.array([-declared.is_missing(cell) for cell in cells]), lambda _: True))
    if column.categories is not None:
        counts = _category_counts(cells, column.categories, declared, rows)
        if column.other:  # for anything that is none of them
            counts[INSIDE] += counts[UNREADABLE]
            counts[UNREADABLE] = 0
        return counts
    return _number_counts(column.numbers(name, cells), column.limits, cells, declared)


def label_fates(target: Target, cells: Any, rows: Rows = None) -> NDArray[np.int64]:
    """The counts of the label, likewise."""
    declared = target.declared
    if target.bounds is not None:
        return _number_counts(declared.read(cells), target.bounds, cells, declared)
    if declared.kind == "category":
        return _category_counts(cells, target.classes, declared, rows)
    places = positions(declared.read(cells), tuple(declared.read(target.classes)))
    return tally(text_fates(cells, places, declared.is_missing))


def with_bounds(counts: NDArray[np.int64], values: Array, column: Column) -> NDArray[np.int64]:
    """The counts of a column once its bounds are bought: its numbers, NaN where one is lost, are looked at again."""
    found = tally(number_fates(values, *column.limits))
    found[MISSING:] = counts[MISSING:]
    return found


def _number_counts(values: Array, limits: tuple[float, float], cells: Any, declared: Declared) -> NDArray[np.int64]:
    fates = number_fates(values, *limits)
    kind = numpy_kind(cells) or "O"
    # in an array of numbers or time stamps a cell without a value is missing; text tells
    return tally(lost_fates(fates, cells, declared.is_missing) if kind in "OTUS" else fates)


def _category_counts(cells: Any, categories: tuple[Any, ...], declared: Declared, rows: Rows) -> NDArray[np.int64]:
    fates = text_fates(cells, positions(cells, categories, declared.category), declared.is_missing)
    return tally(fates) if rows is None else np.bincount(fates, rows, len(FATES)).astype(np.int64)
