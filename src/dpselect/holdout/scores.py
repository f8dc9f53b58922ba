"""What predictions score on held-out labels: means of bounded values, areas under the curve. All of it secret.

`BITS` fixes the form of a row's value: whole multiples of 2**-BITS, so that sums and noise are whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive.subsamples import Blocks, evaluate
from dpselect.errors import ArgumentError

__all__ = ["BITS", "METRICS", "HoldoutMetric", "Scored", "area_under_curve"]

BITS = 30
Array = NDArray[np.float64]


@dataclass(frozen=True)
class HoldoutMetric:
    """A score by name. `row_values` maps labels, predictions and the bound to values in [0, 1], if it is their mean."""

    name: str
    row_values: Callable[[Any, Any, float], Array] | None
    numeric: bool
    """Whether predictions must be numbers."""
    bounded: bool
    """Whether `bound`, the largest value of a row, must be given."""


def _absolute_error(labels: Any, predictions: Any, bound: float) -> Array:
    with np.errstate(over="ignore"):
        return np.minimum(np.abs(labels - predictions), bound) / bound


def _squared_error(labels: Any, predictions: Any, bound: float) -> Array:
    with np.errstate(over="ignore"):
        return np.minimum(np.square(labels - predictions), bound) / bound


def _hits(labels: Any, predictions: Any, bound: float) -> Array:  # noqa: ARG001 - the others'
    return np.asarray(labels == predictions, dtype=np.float64)


METRICS = {
    metric.name: metric
    for metric in (
        HoldoutMetric("accuracy", _hits, numeric=False, bounded=False),
        HoldoutMetric("absolute-error", _absolute_error, numeric=True, bounded=True),
        HoldoutMetric("squared-error", _squared_error, numeric=True, bounded=True),
        HoldoutMetric("auc", None, numeric=True, bounded=False),
    )
}


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
        if self.metric.row_values is None:
            return area_under_curve(self.labels, self.predictions)
        return self.total() / (self.rows << BITS)

    def block_areas(self, blocks: NDArray[np.intp]) -> Array:
        """The area under the curve in each block of row numbers."""
        return evaluate(lambda part: area_under_curve(*part), Blocks((self.labels, self.predictions), blocks))
