"""The models of one run's folds as one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.metaestimators import available_if

from dpselect.integrations.sklearn.methods import answers, has_method

__all__ = ["FoldClassifier", "FoldRegressor", "average_of_folds"]


def _have_probabilities(model: FoldClassifier) -> bool:
    return all(has_method(each, "predict_proba") for each in model.models)


class _Folds(BaseEstimator):  # type: ignore[misc]
    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ARG002
        """Nothing: the models are fitted."""
        return self


class FoldClassifier(ClassifierMixin, _Folds):  # type: ignore[misc]
    """The average of fitted classifiers: of their probabilities, or of their votes where one has none.

    All of them were released by the run that trained them, so that averaging costs nothing.
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of all models, sorted."""
        return np.unique(np.concatenate([model.classes_ for model in self.models]))

    def _votes(self, X: Any, method: str) -> NDArray[np.float64]:
        """The mean of the models' probabilities or votes in the order of `classes_`, shape (rows, classes)."""
        classes = self.classes_
        found = []
        for model in self.models:
            given = np.asarray(answers(model, method, X))
            votes = np.zeros((len(given), len(classes)))
            places = np.searchsorted(classes, model.classes_)
            votes[:, places] = given if method == "predict_proba" else given[:, None] == model.classes_
            found.append(votes)
        return np.asarray(np.mean(found, axis=0))

    @available_if(_have_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean probabilities, shape (rows, classes)."""
        return self._votes(X, "predict_proba")

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest mean, shape (rows,)."""
        votes = self._votes(X, "predict_proba" if _have_probabilities(self) else "predict")
        return np.asarray(self.classes_[np.argmax(votes, axis=1)])


class FoldRegressor(RegressorMixin, _Folds):  # type: ignore[misc]
    """The mean of fitted regressors' predictions."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The mean prediction, shape (rows,) or (rows, outputs)."""
        return np.asarray(np.mean([model.predict(X) for model in self.models], axis=0))


def average_of_folds(models: Sequence[Any]) -> Any:
    """One model from the models of a run's folds."""
    return (FoldClassifier if is_classifier(models[0]) else FoldRegressor)(list(models))
