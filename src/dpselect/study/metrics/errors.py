"""Means of absolute and of squared errors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.study.metrics.bounded_mean import BoundedMean
from dpselect.study.metrics.class_counts import answers_of
from dpselect.study.metrics.metric import METRICS, Metric
from dpselect.study.metrics.row_metric import FINE_STEPS
from dpselect.study.target import Target

__all__ = ["absolute_error", "absolute_shares", "squared_error"]

_WORTH: Final = 0.1
_WORTH_SQUARED: Final = 1.0 / 64.0
"""Of labels whose standard deviation is an eighth of the distance of their bounds."""


def absolute_shares(target: Target, model: Any, X: Any, y: Any) -> NDArray[np.float64]:
    """The absolute errors as shares of the distance of the bounds, from 0 to 1, shape (rows,).

    Labels and answers beyond the bounds are clipped there. A label or an answer that is not a number is 1 off.
    """
    answers, labels = np.asarray(answers_of(model, X, y), dtype=np.float64), np.asarray(y, dtype=np.float64)
    errors = np.abs(target.shares(answers) - target.shares(labels))
    return np.where(np.isnan(answers) | np.isnan(labels), 1.0, errors)


@METRICS.register("absolute-error", task="regression")
def absolute_error(target: Target) -> Metric:
    """The mean of |answer - label|, in units of the label, both clipped at its bounds. Less is better.

    The error of one row is at most the distance of the bounds. The rest is proved at `BoundedMean`.
    """
    return BoundedMean(partial(_kept, target, 1), FINE_STEPS, -target.width, 0.0, loss=True, worth=_WORTH)


@METRICS.register("squared-error", task="regression")
def squared_error(target: Target) -> Metric:
    """The mean of (answer - label)^2, both clipped at the label's bounds. Less is better.

    The error of one row is at most the square of the distance of the bounds. The rest is proved at `BoundedMean`.
    Raises `ArgumentError` if that square is not a float64.
    """
    if not math.isfinite(target.width * target.width):
        raise ArgumentError("squared-error needs label_bounds less than 1e154 apart: take absolute-error, or r2")
    return BoundedMean(
        partial(_kept, target, 2), FINE_STEPS, -target.width * target.width, 0.0, loss=True, worth=_WORTH_SQUARED
    )


def _kept(target: Target, power: int, model: Any, X: Any, y: Any) -> NDArray[np.float64]:
    """The steps from each row's error to the largest one."""
    return np.asarray(np.floor((1.0 - absolute_shares(target, model, X, y) ** power) * FINE_STEPS))
