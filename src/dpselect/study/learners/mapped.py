"""Rows that go through a map before they train: what the key `map` of a study means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from dpselect.numerics.search import Array
from dpselect.preprocessing import MAPS
from dpselect.preprocessing.maps.row_map import MapOfRows
from dpselect.privacy import Guarantee
from dpselect.study.columns.column import Column

__all__ = ["MappedLearner", "indicators_of", "map_for", "map_parameters", "texts_of"]

# follow from the columns that the study declares
_FROM_COLUMNS: Final = frozenset({"bounds", "indicators"})


@dataclass(frozen=True)
class Units:
    """The lower bound of each encoded column and the size of 1 in its units, shape (features,). Indicators keep theirs.

    A map sees the distance above the lower bound, in the column's own units.
    """

    zeros: Array
    sizes: Array


@dataclass
class MappedLearner:
    """A learner behind a map of the rows. The map is public, and only the learner learns."""

    rows_map: MapOfRows
    units: Units
    learner: Any

    def fit(self, X: Array, y: Any, **options: Any) -> MappedLearner:
        """Train on rows as a study encodes them. `options` go to the learner's `fit`."""
        self.rows_map.fit(X)
        self.learner.fit(self._images(X), y, **options)
        return self

    def predict(self, X: Array) -> Any:
        """The learner's answers for encoded rows."""
        return self.learner.predict(self._images(X))

    def predict_proba(self, X: Array) -> Any:
        """The learner's probabilities for encoded rows."""
        return self.learner.predict_proba(self._images(X))

    def guarantee(self) -> Guarantee:
        """The learner's: a map costs nothing."""
        return self.learner.guarantee()

    def get_params(self) -> dict[str, Any]:
        """The learner's parameters."""
        return self.learner.get_params()

    def set_params(self, **parameters: Any) -> None:
        """Set parameters of the learner."""
        self.learner.set_params(**parameters)

    @property
    def weights_(self) -> tuple[Array, ...]:
        """The learnt weights."""
        return self.learner.weights_

    @weights_.setter
    def weights_(self, weights: tuple[Array, ...]) -> None:
        self.learner.weights_ = weights

    def _images(self, X: Array) -> Array:
        return self.rows_map.transform((X - self.units.zeros) * self.units.sizes)


@cache
def map_parameters(*names: str) -> frozenset[str]:
    """The parameters of these maps that a study may set. Raises `ArgumentError` for an unknown name."""
    found = (MAPS[name]().get_params() for name in names)
    return frozenset[str]().union(*found) - _FROM_COLUMNS


def map_for(name: str, columns: Mapping[str, Column], settings: Mapping[str, Any]) -> tuple[MapOfRows, Units]:
    """The map of this name for the rows of a study with these columns, and the units of the columns.

    `settings` may hold other parameters too. Raises `ArgumentError` for an unknown name.
    """
    bounds: list[tuple[float, float]] = []
    zeros: list[float] = []
    sizes: list[float] = []
    for column in columns.values():
        half, end = column.half_width, len(zeros) + column.width
        if half is not None:
            bounds.append((0.0, min(2 * half, np.finfo(np.float64).max)))
            zeros.append(-1.0)
            sizes.append(half or 1.0)
        zeros += [0.0] * (end - len(zeros))
        sizes += [1.0] * (end - len(sizes))
    parameters = MAPS[name]().get_params()
    asked = {"bounds": bounds, "indicators": indicators_of(columns), **settings}
    made = MAPS[name](**{key: value for key, value in asked.items() if key in parameters})
    return made, Units(np.array(zeros), np.array(sizes))


def indicators_of(columns: Mapping[str, Column], *, of_texts: bool = True) -> list[list[int]]:
    """The places of the encoded columns that are indicators, a list for each column that has some.

    `of_texts`: hashed words are taken for indicators too.
    """
    found, end = [], 0
    for column in columns.values():
        start, end = end + (column.half_width is not None), end + column.width
        if not of_texts:
            start += column.n_features or 0
        if start < end:
            found.append(list(range(start, end)))
    return found


def texts_of(columns: Mapping[str, Column]) -> list[list[int]]:
    """The places of the encoded columns that are hashed words, a list for each column of text."""
    found, end = [], 0
    for column in columns.values():
        start, end = end, end + column.width
        if column.n_features is not None:
            found.append(list(range(start, start + column.n_features)))
    return found
