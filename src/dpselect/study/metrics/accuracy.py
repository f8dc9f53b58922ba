"""The share of the rows whose label is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.study.metrics.metric import METRICS, RowMetric

__all__ = ["ACCURACY"]


def _right(model: Any, X: Any, y: Any) -> NDArray[np.bool_]:
    answers = np.asarray(model.predict(X))
    # a column of answers would be compared with every label, and one row would count many times
    if answers.shape != (len(y),):
        raise ArgumentError("the estimator must predict one label for each row")
    return np.asarray(answers == y, dtype=bool)


ACCURACY = METRICS.register("accuracy")(RowMetric(_right))
