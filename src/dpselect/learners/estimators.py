# ruff: noqa: D101 - the docstrings are those of what trains
"""The private learners as estimators of scikit-learn.

They are made here, apart from what trains: a study, its workers and its model need no scikit-learn, which takes a
second to import.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.learners.boosted_trees import BoostedTreesClassification, BoostedTreesRegression
from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.learners.dp_sgd_regressor import DPSGDRegression
from dpselect.learners.least_squares import LeastSquares
from dpselect.learners.naive_bayes import NaiveBayes
from dpselect.learners.output_perturbation import OutputPerturbation
from dpselect.learners.ridge import RidgeClassification, RidgeRegression
from dpselect.learners.rows import number_table

__all__ = [
    "DPSGDClassifier",
    "DPSGDRegressor",
    "OutputPerturbationClassifier",
    "PrivateBoostingClassifier",
    "PrivateBoostingRegressor",
    "PrivateLeastSquares",
    "PrivateNaiveBayes",
    "PrivateRidge",
    "PrivateRidgeClassifier",
]


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that scikit-learn asks for. A `PrivateLearner` must follow it."""

    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _unit_rows(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        number_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        rows: NDArray[np.float64] = super()._unit_rows(X)
        return rows

    def _prepare(self, X: Any) -> tuple[int, int]:
        shape: tuple[int, int] = super()._prepare(X)
        validate_data(self, X, skip_check_array=True)
        return shape


class DPSGDClassifier(ClassifierMixin, _Estimator, DPSGDClassification):  # type: ignore[misc]
    __doc__ = DPSGDClassification.__doc__


class DPSGDRegressor(RegressorMixin, _Estimator, DPSGDRegression):  # type: ignore[misc]
    __doc__ = DPSGDRegression.__doc__


class OutputPerturbationClassifier(ClassifierMixin, _Estimator, OutputPerturbation):  # type: ignore[misc]
    __doc__ = OutputPerturbation.__doc__


class PrivateBoostingClassifier(ClassifierMixin, _Estimator, BoostedTreesClassification):  # type: ignore[misc]
    __doc__ = BoostedTreesClassification.__doc__


class PrivateBoostingRegressor(RegressorMixin, _Estimator, BoostedTreesRegression):  # type: ignore[misc]
    __doc__ = BoostedTreesRegression.__doc__


class PrivateLeastSquares(RegressorMixin, _Estimator, LeastSquares):  # type: ignore[misc]
    __doc__ = LeastSquares.__doc__


class PrivateNaiveBayes(ClassifierMixin, _Estimator, NaiveBayes):  # type: ignore[misc]
    __doc__ = NaiveBayes.__doc__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on columns of both signs, as `MultinomialNB` says
        return tags


class PrivateRidge(RegressorMixin, _Estimator, RidgeRegression):  # type: ignore[misc]
    __doc__ = RidgeRegression.__doc__


class PrivateRidgeClassifier(ClassifierMixin, _Estimator, RidgeClassification):  # type: ignore[misc]
    __doc__ = RidgeClassification.__doc__
