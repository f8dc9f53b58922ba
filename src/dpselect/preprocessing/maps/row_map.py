"""The base of all maps, that of the maps of tables, and the registry of the maps that a study can name.

Nothing here needs scikit-learn. `dpselect.preprocessing.transformers` makes the public transformers of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, expect, integer
from dpselect.learners.parameters import Parameterised
from dpselect.learners.rows import doubles, number_table, unit_rows
from dpselect.numerics.search import Array
from dpselect.registry import Registry

__all__ = ["MAPS", "Encoded", "MapOfRows", "MapOfTables", "directions", "within_unit_ball"]


@dataclass(kw_only=True, eq=False, repr=False)
class MapOfRows(Parameterised, ABC):
    """A scikit-learn transformer that learns nothing: the result for a row depends on that row and public constants.

    So it is private at no price, regardless of the data. `fit` looks at the shape and the names of the columns only. No
    cell makes `fit` or `transform` fail: what is missing or not a number counts as nothing, and infinities are clipped.

    `transform` returns rows of norm at most 1 exactly, whose numbers are multiples of 2**-16. Private learners take
    such rows as they are: nothing is left to be clipped there.

    A subclass defines `_mapped`, which must treat each row by itself. Numbers of several cells are only summed if such
    sums are exact, so a row's image does not depend on the rows beside it. NumPy's functions of one number are taken to
    give the same result at every place of an array.
    """

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: ARG002
        """Learn nothing from X, of shape (rows, features). Raises `ArgumentError` for parameters that do not fit it."""
        _, columns = number_table(X)
        self._n_features_out = self._width(columns)
        return self

    def transform(self, X: Any) -> Array:
        """The rows' images, shape (rows, new features)."""
        _, columns = number_table(X)
        self._width(columns)
        return self._mapped(doubles(X))

    @abstractmethod
    def _width(self, columns: int) -> int:
        """The number of columns of an image. Raises `ArgumentError` for parameters that do not fit `columns`."""

    @abstractmethod
    def _mapped(self, cells: Array) -> Array:
        """The images of rows that may hold anything that a double can be."""


MAPS: Final = Registry[type[MapOfRows]]("map", room="dpselect.preprocessing.maps")
"""The maps by the name that a study gives them: `MAPS.register("name")(Map)`.

Who registers a map declares that it keeps what `MapOfRows` says; `PrivateSearchCV` charges nothing for it.
"""


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
class MapOfTables(MapOfRows):
    """A map of tables whose columns are numbers with public bounds, or indicators of public categories.

    Attributes:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them in order.
            Values beyond are clipped.
        indicators: the places of the columns that are indicators, a list for each categorical column.
    """

    bounds: Any = (-1.0, 1.0)
    indicators: Sequence[Sequence[int]] = ()

    def _width(self, columns: int) -> int:
        numbers, _ = self._places(columns)
        return self._columns_out(len(numbers), columns - len(numbers))

    def _columns_out(self, numbers: int, indicators: int) -> int:
        """How many columns become of so many."""
        return numbers + indicators

    def _encoded(self, cells: Array) -> Encoded:
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
        numbers = [place for place in range(columns) if place not in set(flags)]
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
            )
        low, high = pairs.reshape(columns, 2).T
        if not (np.all(np.isfinite(pairs)) and np.all(low < high)):
            raise ArgumentError(f"bounds must be finite, the lower one first, got {self.bounds!r}")
        return low, high


def within_unit_ball(values: Array) -> Array:
    """Rows of norm at most 1 exactly, in fixed point: longer ones are scaled down."""
    return unit_rows(values, 1.0, intercept=False)


def directions(values: Array) -> Array:
    """Rows scaled to norm 1 from below, in fixed point. A row of zeros stays one."""
    return unit_rows(values, 2.0**-1000, intercept=False)
