"""How much of the labels' variance a model explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpselect.privacy import Adjacency
from dpselect.study.metrics.errors import absolute_shares
from dpselect.study.metrics.intervals import share_interval
from dpselect.study.metrics.metric import METRICS, Cells, Estimate, Metric, ScoreNoise
from dpselect.study.target import Target

__all__ = ["ExplainedVariance"]

_ERROR_STEPS: Final = 2**16
_LABEL_STEPS: Final = 2**15
"""The error decides which run is best, and so it has more of what one row may move."""


@METRICS.register("r2", task="regression")
@dataclass(frozen=True)
class ExplainedVariance(Metric):
    """1 - (mean squared error)/(variance of the labels): 1 is perfect, 0 what the mean reaches.

    Labels and answers are clipped at the label's bounds. With t the place of a row's label between them, from 0 to 1, a
    row gives its squared error in a steps (a = 2**16), and b steps (b = 2**15) in three parts: (1 - t)^2, 2 t (1 - t)
    and t^2, which add up to 1. Their sums tell the number of rows, the mean and the variance.

    Claim: adding or removing a row moves the four cells by at most a + b together, replacing one by at most a + 2 b:
    the parts are not negative and add up to b exactly. The sum of the squared differences is at most a^2 + b^2, or
    a^2 + 2 b^2 if a row is replaced. Two points of the simplex of sum b are no further apart. QED

    Scores below -1 are clipped; where the variance is hardly above the noise, it counts as if it were as large.
    """

    target: Target

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        if not len(y):
            return np.zeros(4, dtype=np.int64)
        errors = np.ceil(absolute_shares(self.target, model, X, y) ** 2 * _ERROR_STEPS)
        return np.concatenate([[int(np.sum(errors.astype(np.int64)))], self._labels(y)])

    def lost(self, y: Any) -> Cells:
        return np.concatenate([[_ERROR_STEPS * len(y)], self._labels(y)])

    def moved(self, adjacency: Adjacency) -> int:
        return _ERROR_STEPS + _LABEL_STEPS * (1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2)

    def moved_squares(self, adjacency: Adjacency) -> int:
        return _ERROR_STEPS**2 + _LABEL_STEPS**2 * (1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2)

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:  # noqa: ARG002
        error, first, second, third = cells / np.array([_ERROR_STEPS, *[_LABEL_STEPS] * 3])
        count = max(first + second + third, 1.0)
        variance = (first - second + third) / 4.0 - ((third - first) / 2.0) ** 2 / count
        least = 1e-9 if noise is None else self.smallest_count(noise) / (4.0 * _LABEL_STEPS)
        return float(np.clip(1.0 - max(error, 0.0) / max(variance, least), -1.0, 1.0))

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        value = self.score(cells, rows=1.0, noise=noise)
        most = self.most(noise, 4, failure / 2.0)
        error, first, second, third = cells / np.array([_ERROR_STEPS, *[_LABEL_STEPS] * 3])
        slack, count = most / _LABEL_STEPS, first + second + third
        rows = (count - 3.0 * slack) * (1.0 - 1e-9)
        if not rows > 0.0:
            return Estimate(value, None, 1.0)

        def mean(total: float, off: float) -> tuple[float, float]:
            """Of a part from 0 to 1 whose sum is known up to `off`."""
            ends = [(total + sign * off) / (count + 3.0 * side * slack) for sign in (-1, 1) for side in (-1, 1)]
            return share_interval(min(ends), max(ends), rows, failure / 6.0)

        lost = mean(error, most / _ERROR_STEPS)
        spread = mean(first + third, 2.0 * slack)  # of (1 - t)^2 + t^2, which is 1/2 + 2 (t - 1/2)^2
        place = mean(third + second / 2.0, 1.5 * slack)  # of t
        away = sorted(abs(end - 0.5) for end in place)
        nearest = 0.0 if place[0] <= 0.5 <= place[1] else away[0]
        largest = min((spread[1] - 0.5) / 2.0 - nearest**2, 0.25)
        smallest = (max(spread[0], 0.5) - 0.5) / 2.0 - away[1] ** 2
        return Estimate(
            value,
            float(min(value, 1.0 - lost[1] / smallest)) if smallest > 0.0 else None,
            float(max(value, 1.0 - lost[0] / largest)) if largest > 0.0 else 1.0,
        )

    def constant(self, shares: Sequence[float] | None) -> float:  # noqa: ARG002
        return 0.0

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:  # noqa: ARG002
        """Labels with a standard deviation of an eighth of the distance of the bounds, half of it explained."""
        variance = 1.0 / 64.0
        parts = np.array([0.25 + variance, 0.5 - 2.0 * variance, 0.25 + variance]) * _LABEL_STEPS
        return np.round(rows * np.concatenate([[variance / 2.0 * _ERROR_STEPS], parts])).astype(np.int64)

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        return (4,)

    def _labels(self, y: Any) -> list[int]:
        places = self.target.shares(np.asarray(y, dtype=np.float64))
        first = np.floor((1.0 - places) ** 2 * _LABEL_STEPS).astype(np.int64)
        third = np.floor(places**2 * _LABEL_STEPS).astype(np.int64)
        second = _LABEL_STEPS - first - third
        return [int(np.sum(part)) for part in (first, second, third)]
