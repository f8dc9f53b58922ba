"""What the private classifiers share: the public face of a scikit-learn classifier over a model with scores."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.learners.rows import column_names, same_names, table_shape, unit_rows
from dpselect.privacy import Guarantee

__all__ = ["ClassScorer", "PrivateClassifier"]

Array = NDArray[np.float64]


class ClassScorer(Protocol):
    """One real score a class from unit rows."""

    def scores(self, weights: tuple[Array, ...], rows: Array) -> Array:
        """Shape (rows, classes)."""
        ...


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction from released weights. Predicting is free for the training data: it uses the weights only.

    A pickled copy leaves its `random` source behind and draws from the system's entropy where it arrives: a source
    that repeated its draws in two places would break the guarantee.
    """

    row_norm: float
    classes_: NDArray[Any]
    n_features_in_: int
    weights_: tuple[Array, ...]
    guarantee_: Guarantee
    _scorer: ClassScorer
    _intercept: bool
    _column_names: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "random": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        table_shape(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        same_names(self._column_names, X)
        return self._scorer.scores(self.weights_, unit_rows(X, self.row_norm, intercept=self._intercept))

    def decision_function(self, X: Any) -> Array:
        """Scores, shape (rows,) for two classes (positive: the second) and (rows, classes) otherwise."""
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """The softmax of the scores, shape (rows, classes)."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score, shape (rows,)."""
        best = np.argmax(self._scores(X), axis=1)
        return np.asarray(self.classes_[best])

    def guarantee(self) -> Guarantee:
        """What one `fit` promises, from the parameters alone."""
        raise NotImplementedError

    def _prepare(self, X: Any) -> tuple[int, int]:
        """Record the table's columns; returns its shape. Raises for a container that cannot be used."""
        shape = table_shape(X)
        validate_data(self, X, skip_check_array=True)
        self._column_names = column_names(X)
        return shape
