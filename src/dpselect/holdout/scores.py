"""Scores of predictions on held-out labels: means of bounded values, areas under the curve. All of it secret.

`BITS` fixes the form of a row's value: whole multiples of 2**-BITS, so that sums and noise are integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive.subsamples import Blocks, evaluate
from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array

__all__ = ["BITS", "METRICS", "HoldoutMetric", "Scored", "area_under_curve", "f1_score"]

BITS = 30


@dataclass(frozen=True)
class HoldoutMetric:
    """A score by name. `row_values` maps labels, predictions and the bound to values in [0, 1], if it is their mean.

    Otherwise `whole` maps labels and predictions to the score.
    """

    name: str
    row_values: Callable[[Any, Any, float], Array] | None
    numeric: bool
    """Whether predictions must be numbers."""
    bounded: bool
    """Whether `bound`, the largest value of a row, must be given. Then it is an error, and smaller is better."""
    whole: Callable[[Any, Any], float] | None = None
    of_class: bool = False
    """Whether one class is declared the positive one, and labels are whether a row is of it."""
    probabilities: bool = False
    """Whether predictions must be numbers from 0 to 1."""

    @property
    def numeric_labels(self) -> bool:
        """Whether labels are numbers rather than classes."""
        return self.bounded and not self.of_class


def _absolute_error(labels: Any, predictions: Any, bound: float) -> Array:
    with np.errstate(over="ignore"):
        return np.minimum(np.abs(labels - predictions), bound) / bound


def _squared_error(labels: Any, predictions: Any, bound: float) -> Array:
    with np.errstate(over="ignore"):
        return np.minimum(np.square(labels - predictions), bound) / bound


def _hits(labels: Any, predictions: Any, bound: float) -> Array:  # noqa: ARG001 - the others'
    return np.asarray(labels == predictions, dtype=np.float64)


def _log_loss(labels: Any, predictions: Any, bound: float) -> Array:
    """With probabilities of the positive class. Infinite ones count as the bound."""
    with np.errstate(divide="ignore"):
        return np.minimum(-np.log(np.where(labels, predictions, 1.0 - predictions)), bound) / bound + 0.0


def f1_score(labels: NDArray[np.bool_], predictions: NDArray[np.bool_]) -> float:
    """Of the positive class: twice the hits over them and the rows where label and prediction differ. 0 without hits.

    >>> f1_score(np.array([True, True, False]), np.array([True, False, False]))
    0.6666666666666666
    """
    hits = int(np.count_nonzero(labels & predictions))
    return 2.0 * hits / (2.0 * hits + int(np.count_nonzero(labels != predictions))) if hits else 0.0


def area_under_curve(labels: NDArray[np.bool_], scores: Array) -> float:
    """The chance that a row of the first class scores above one of the other, ties counting half.

    One half when a class is missing.

    >>> area_under_curve(np.array([True, True, False]), np.array([0.9, 0.3, 0.3]))
    0.75
    """
    from scipy.stats import rankdata  # takes half a second to import

    first = int(np.count_nonzero(labels))
    other = len(labels) - first
    if not first or not other:
        return 0.5
    ranks = rankdata(scores)
    return float((ranks[labels].sum() - first * (first + 1) / 2.0) / (first * other))


METRICS = {
    metric.name: metric
    for metric in (
        HoldoutMetric("accuracy", _hits, numeric=False, bounded=False),
        HoldoutMetric("absolute-error", _absolute_error, numeric=True, bounded=True),
        HoldoutMetric("squared-error", _squared_error, numeric=True, bounded=True),
        HoldoutMetric("log-loss", _log_loss, numeric=True, bounded=True, of_class=True, probabilities=True),
        HoldoutMetric("f1", None, numeric=False, bounded=False, whole=f1_score, of_class=True),
        HoldoutMetric("auc", None, numeric=True, bounded=False, whole=area_under_curve, of_class=True),
    )
}


@dataclass(frozen=True, repr=False)
class Scored:
    """Predictions beside their labels, both in the holdout's order."""

    metric: HoldoutMetric
    labels: Any
    predictions: Any
    bound: float

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.labels)

    def values(self) -> Array:
        """One value in [0, 1] a row."""
        if self.metric.row_values is None:
            raise ArgumentError(f"metric {self.metric.name!r} is not a mean over rows")
        return self.metric.row_values(self.labels, self.predictions, self.bound)

    def total(self) -> int:
        """The sum of the values in units of 2**-BITS."""
        return int(np.rint(self.values() * 2.0**BITS).astype(np.int64).sum())

    def exact(self) -> float:
        """The score, as a share of the bound."""
        if self.metric.whole is not None:
            return self.metric.whole(self.labels, self.predictions)
        return self.total() / (self.rows << BITS)

    def block_areas(self, blocks: NDArray[np.intp]) -> Array:
        """The area under the curve in each block of row numbers."""
        return evaluate(lambda part: area_under_curve(*part), Blocks((self.labels, self.predictions), blocks))
