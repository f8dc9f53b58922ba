"""The share of the rows whose label is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.study.metrics.metric import METRICS, Metric
from dpselect.study.metrics.row_metric import RowMetric
from dpselect.study.target import Target

__all__ = ["accuracy", "answers_of"]


def answers_of(model: Any, X: Any, y: Any) -> NDArray[Any]:
    """The model's answers, shape (rows,); raises `ArgumentError` for another shape.

    A column of answers would be compared with every label, and one row would count many times.
    """
    answers = np.asarray(model.predict(X))
    if answers.shape != (len(y),):
        raise ArgumentError("the estimator must predict one label for each row")
    return answers


def _right(model: Any, X: Any, y: Any) -> NDArray[np.bool_]:
    return np.asarray((answers_of(model, X, y) == y) & (np.asarray(y) >= 0), dtype=bool)


@METRICS.register("accuracy", task="classification")
def accuracy(target: Target) -> Metric:  # noqa: ARG001
    """The share of correct predictions. A row whose label is none of the classes counts as wrong. See `RowMetric`."""
    return RowMetric(_right, of_shares=max)
