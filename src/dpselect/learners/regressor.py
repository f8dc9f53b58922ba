"""What the private regressors share: answers between the public bounds of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, number
from dpselect.learners.fixed_point import exact_products
from dpselect.learners.learner import PrivateLearner

__all__ = ["Regressor", "public_bounds"]

Array = NDArray[np.float64]


class Regressor(PrivateLearner):
    """Prediction from released weights of shape (features [+ 1], 1). Predicting is free for the training data."""

    _bounds: tuple[float, float]

    def predict(self, X: Any) -> Array:
        """The expected label of each row, between the bounds; shape (rows,)."""
        rows = self._unit_rows(X)
        low, high = self._bounds
        place = np.clip(exact_products(rows, self.weights_[0])[:, 0], -1.0, 1.0)
        return np.asarray(np.clip((low / 2.0 + high / 2.0) + place * (high / 2.0 - low / 2.0), low, high))


def public_bounds(label_bounds: Any) -> tuple[float, float]:
    """The bounds of the labels; raises `ArgumentError` where they are none."""
    if label_bounds is None:
        raise ArgumentError("label_bounds must be given: the least and the largest label, public, not from y itself")
    try:
        low, high = label_bounds
    except (TypeError, ValueError):
        raise ArgumentError(f"label_bounds must be two numbers, got {label_bounds!r}") from None
    low = number("the lower of label_bounds", low, at_least=-1e300, at_most=1e300)
    return low, number("the upper of label_bounds", high, above=low, at_most=1e300)
