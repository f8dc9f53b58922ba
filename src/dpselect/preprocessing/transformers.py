# ruff: noqa: D101 - the docstrings are those of the maps
"""The maps as transformers of scikit-learn, which they can be used without."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.learners.rows import number_table
from dpselect.preprocessing.maps.bins import Bins
from dpselect.preprocessing.maps.cosines import DirectionAndWaves, Waves
from dpselect.preprocessing.maps.directions import DirectionOfRow, Standardized
from dpselect.preprocessing.maps.gradients import EdgeDirections
from dpselect.preprocessing.maps.row_map import MAPS, MapOfRows, MapOfTables
from dpselect.preprocessing.maps.scales import Centered, Logarithms

__all__ = [
    "EXPECTED_FAILED_CHECKS",
    "CenteredScale",
    "Cosines",
    "DirectionAndCosines",
    "LogScale",
    "OrientedGradients",
    "PublicBins",
    "PublicMap",
    "RowDirection",
    "RowStandardization",
    "TableMap",
    "is_known_map",
]

EXPECTED_FAILED_CHECKS: Final = {
    "check_dtype_object": (
        "a cell that is not a number counts as missing: an error would reveal that some row holds such a cell"
    ),
    "check_estimators_empty_data_messages": "no rows are a table like another: whether there is one is private",
}
"""For `sklearn.utils.estimator_checks.check_estimator(..., expected_failed_checks=EXPECTED_FAILED_CHECKS)`."""


class PublicMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, MapOfRows):  # type: ignore[misc]
    __doc__ = MapOfRows.__doc__

    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = cls.__doc__ or cls.__bases__[-1].__doc__  # the map's

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing from X, of shape (rows, features). Raises `ArgumentError` for parameters that do not fit it."""
        MapOfRows.fit(self, X, y)
        validate_data(self, X, skip_check_array=True)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The rows' images, shape (rows, new features)."""
        check_is_fitted(self)
        number_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return MapOfRows.transform(self, X)

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class TableMap(PublicMap, MapOfTables): ...


class PublicBins(TableMap, Bins): ...


class CenteredScale(TableMap, Centered): ...


class LogScale(TableMap, Logarithms): ...


class Cosines(TableMap, Waves): ...


class DirectionAndCosines(TableMap, DirectionAndWaves): ...


class RowDirection(TableMap, DirectionOfRow): ...


class OrientedGradients(PublicMap, EdgeDirections): ...


class RowStandardization(PublicMap, Standardized): ...


# those above: anything that inherits from them is made later
_TRANSFORMERS: Final = frozenset({*PublicMap.__subclasses__(), *TableMap.__subclasses__()} - {TableMap})


def is_known_map(node: Any) -> bool:
    """Whether this is one of these or a registered map. Of the exact types: what inherits from them may learn."""
    return type(node) in _TRANSFORMERS or type(node) in (MAPS[name] for name in MAPS)
