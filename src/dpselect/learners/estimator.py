"""What the private estimators share: rows by name and shape, and copies that leave their source of noise behind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.learners.rows import column_names, same_names, table_shape, unit_rows
from dpselect.privacy import Guarantee

__all__ = ["PrivateEstimator"]

Array = NDArray[np.float64]


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator with released weights for rows in the unit ball.

    A pickled copy leaves its `random` source behind and draws from the system's entropy where it arrives: a source
    that repeated its draws in two places would break the guarantee.
    """

    row_norm: float
    n_features_in_: int
    weights_: tuple[Array, ...]
    guarantee_: Guarantee
    _intercept: float
    _column_names: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "random": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags

    def _unit_rows(self, X: Any) -> Array:
        """The rows of X as the weights take them."""
        check_is_fitted(self)
        table_shape(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        same_names(self._column_names, X)
        return unit_rows(X, self.row_norm, intercept=self._intercept)

    def _prepare(self, X: Any) -> tuple[int, int]:
        """Record the table's columns; returns its shape. Raises for a container that cannot be used."""
        shape = table_shape(X)
        validate_data(self, X, skip_check_array=True)
        self._column_names = column_names(X)
        return shape
