"""The mean of minus the logarithm of the probability that a model gives to a row's class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.study.metrics.bounded_mean import BoundedMean
from dpselect.study.metrics.metric import METRICS, Metric
from dpselect.study.metrics.row_metric import FINE_STEPS
from dpselect.study.target import Target

__all__ = ["log_loss"]

_LEAST: Final = 0.01
_LARGEST: Final = -math.log(_LEAST)


@METRICS.register("log-loss", task="classification")
def log_loss(target: Target) -> Metric:
    """The mean of -ln p, clipped at ln 100, with p the probability of the row's class. Less is better.

    A probability below 1/100, or none, counts as 1/100, and so does a label that is none of the classes: without such
    a bound one row could move the mean without limit. The rest is proved at `BoundedMean`.
    """
    even = _entropy([1.0 / len(target.classes)] * len(target.classes)) / _LARGEST
    kept = partial(_kept, len(target.classes))
    return BoundedMean(kept, FINE_STEPS, -_LARGEST, 0.0, loss=True, of_shares=_entropy, worth=even)


def _entropy(shares: Sequence[float]) -> float:
    """The loss of a model that always gives these shares as probabilities."""
    return math.fsum(share * min(-math.log(share), _LARGEST) for share in shares if share > 0.0)


def _kept(classes: int, model: Any, X: Any, y: Any) -> NDArray[np.float64]:
    """The steps from each row's loss to the largest one."""
    chances = np.asarray(model.predict_proba(X), dtype=np.float64)
    if chances.shape != (len(y), classes):
        raise ArgumentError("the estimator must give a probability for each row and class")
    places = np.asarray(y)
    own = np.where(places >= 0, chances[np.arange(len(places)), np.maximum(places, 0)], 0.0)
    losses = -np.log(np.clip(np.nan_to_num(own, nan=0.0), _LEAST, 1.0))
    return np.asarray(np.floor((1.0 - losses / _LARGEST) * FINE_STEPS))
