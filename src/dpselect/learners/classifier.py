"""What the private classifiers share: predictions from a model with scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dpselect.learners.learner import PrivateLearner
from dpselect.privacy import Guarantee

__all__ = ["ClassScorer", "Classifier"]

Array = NDArray[np.float64]


class ClassScorer(Protocol):
    """One real score a class from unit rows."""

    def scores(self, weights: tuple[Array, ...], rows: Array) -> Array:
        """Shape (rows, classes)."""
        ...


class Classifier(PrivateLearner, ABC):
    """Prediction from released weights. Predicting is free for the training data: it uses the weights only."""

    classes_: NDArray[Any]
    _scorer: ClassScorer

    def _scores(self, X: Any) -> Array:
        rows = self._unit_rows(X)
        return self._scorer.scores(self.weights_, rows)

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

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What one `fit` promises, from the parameters alone."""
