"""The base of all maps, that of the maps of tables, and the registry of the maps that a study can name.

Nothing here needs scikit-learn. `dpselect.preprocessing.transformers` makes the public transformers of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

from dpselect.learners.encoding import TableEncoding
from dpselect.learners.parameters import Parameterised
from dpselect.learners.rows import doubles, number_table, unit_rows
from dpselect.numerics.search import Array
from dpselect.registry import Registry

__all__ = ["MAPS", "MapOfRows", "MapOfTables", "directions", "within_unit_ball"]


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


@dataclass(kw_only=True, eq=False, repr=False)
class MapOfTables(TableEncoding, MapOfRows):
    """A map of tables whose columns are numbers with public bounds, or indicators of public categories.

    Attributes:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them in order.
            Values beyond are clipped.
        indicators: the places of the columns that are indicators, a list for each categorical column.
    """

    def _width(self, columns: int) -> int:
        numbers, _ = self._places(columns)
        return self._columns_out(len(numbers), columns - len(numbers))

    def _columns_out(self, numbers: int, indicators: int) -> int:
        """How many columns become of so many."""
        return numbers + indicators


def within_unit_ball(values: Array) -> Array:
    """Rows of norm at most 1 exactly, in fixed point: longer ones are scaled down."""
    return unit_rows(values, 1.0, intercept=False)


def directions(values: Array) -> Array:
    """Rows scaled to norm 1 from below, in fixed point. A row of zeros stays one."""
    return unit_rows(values, 2.0**-1000, intercept=False)
