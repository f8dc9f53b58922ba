"""Tables of numbers and indicators in public units: what maps of tables and learners of tables read alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, expect, integer
from dpselect.learners.parameters import Parameterised
from dpselect.numerics.search import Array

__all__ = ["Encoded", "TableEncoding"]


@dataclass(frozen=True, eq=False)
class Encoded:
    """The cells of a table in public units.

    Attributes:
        numbers: of the columns with bounds, scaled to [-1, 1]; shape (rows, d). A missing cell is 0.
        present: whether a number is there; shape (rows, d).
        indicators: of the categories, in [0, 1]; shape (rows, all categories). A missing cell is 0.
        groups: the number of categorical columns that the indicators stand for, g.
    """

    numbers: Array
    present: NDArray[np.bool_]
    indicators: Array
    groups: int

    @property
    def columns(self) -> int:
        """d + g."""
        return self.numbers.shape[1] + self.groups


@dataclass(kw_only=True, eq=False, repr=False)
class TableEncoding(Parameterised):
    """The public facts about the columns of a table: numbers with bounds, and indicators of categories.

    Attributes:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them in order.
            Values beyond are clipped.
        indicators: the places of the columns that are indicators, a list for each categorical column.
    """

    bounds: Any = (-1.0, 1.0)
    indicators: Sequence[Sequence[int]] = ()

    def encoded(self, cells: Array) -> Encoded:
        """The cells in public units, each row by itself; `cells` has the shape (rows, columns)."""
        numbers, indicators = self._places(cells.shape[1])
        low, high = self._limits(len(numbers))
        values = cells[:, numbers]
        present = ~np.isnan(values)
        inside = np.clip(np.where(present, values, low), low, high)
        scaled = self._scaled(inside, low, high)
        flags = np.clip(np.nan_to_num(cells[:, indicators], nan=0.0), 0.0, 1.0)
        return Encoded(np.where(present, scaled, 0.0), present, flags, len(self.indicators))

    def _scaled(self, values: Array, low: Array, high: Array) -> Array:
        """Values within the bounds to [-1, 1], each by itself."""
        middle, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        return np.clip((values - middle) / half, -1.0, 1.0)

    def _places(self, columns: int) -> tuple[list[int], list[int]]:
        """The places of the numbers and of the indicators."""
        expect("indicators", self.indicators, list, tuple)
        for group in self.indicators:
            expect("each of indicators", group, list, tuple, range, np.ndarray)
        groups = [[integer("a place in indicators", place) for place in group] for group in self.indicators]
        flags = [place for group in groups for place in group]
        if not all(groups) or len(set(flags)) < len(flags) or not all(0 <= place < columns for place in flags):
            raise ArgumentError(
                f"indicators must hold a list of places for each categorical column, each place of the {columns} "
                f"columns once at most, got {self.indicators!r}"
            )
        others = set(flags)
        numbers = [place for place in range(columns) if place not in others]
        self._limits(len(numbers))
        return numbers, flags

    def _limits(self, columns: int) -> tuple[Array, Array]:
        try:
            pairs = np.array(self.bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(f"bounds must be pairs of numbers, got {self.bounds!r}") from None
        if pairs.shape == (2,):
            pairs = np.repeat(pairs[None, :], columns, axis=0)
        if pairs.shape != (columns, 2) and (columns or pairs.size):
            raise ArgumentError(
                f"bounds must be one pair, or one for each of the {columns} columns of numbers, got {self.bounds!r}"
                ". Write bounds=(0, 100)"
            )
        low, high = pairs.reshape(columns, 2).T
        if not (np.all(np.isfinite(pairs)) and np.all(low / 2.0 < high / 2.0)):
            raise ArgumentError(f"bounds must be finite, the lower one first, got {self.bounds!r}")
        return low, high
