"""Means of numbers that are mostly small parts of their range, such as errors and losses."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.study.metrics.metric import Cells, Estimate, ScoreNoise
from dpselect.study.metrics.noisy_means import NODES, SumNoise, hat_sums, mean_interval
from dpselect.study.metrics.row_metric import RowMetric
from dpselect.study.metrics.score_noise import Reach

__all__ = ["BoundedMean"]

_SHARES: Final = (Fraction(63, 64), Fraction(1, 64))
"""What the sums of the hat functions have of the noise's price, and what the number of rows has."""
_MIDDLE: Final = float(np.mean(NODES))
_SUMS: Final = len(NODES)
_TYPICAL: Final = 1000
"""How many quantiles stand for a distribution."""


@dataclass(frozen=True)
class BoundedMean(RowMetric):
    """The mean of a `RowMetric`, with a narrower interval if most rows lack little to the most.

    Let x be the part from 0 to 1 that a row's number lacks to `steps`. The cells are the two of `RowMetric`, and the
    sums of the hat functions of x that `noisy_means` describes. Laplace noise is added to the first two alone, as
    `RowMetric` does. Gaussian noise is added to the sums of the hat functions and to the number of rows.

    Claim: with Gaussian noise `noisy` is as private as a Gaussian mechanism of the noise's multiplier.

    Proof: a row adds steps - k and k to two neighbouring sums, with 0 <= k <= steps. The sum of the squares of both is
    at most steps^2. If a row is replaced, such a pair is taken away and another added. Two points of that simplex are
    at most sqrt(2) steps apart. The number of rows moves by 1 if a row is added or removed. Then both parts add up
    as `ScoreNoise.split` says. If a row is replaced, the number of rows is public, and has no noise. QED

    Runs are compared by the mean of x. Its noise under adding or removing has 1.6 times the variance that it has in
    `RowMetric`.
    """

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        return self._cells(self.numbers(model, X, y))

    def lost(self, y: Any) -> Cells:
        return self._cells(np.zeros(len(y), dtype=np.int64))

    def moved_squares(self, adjacency: Adjacency) -> int:
        return self.steps**2 * (1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2)

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        if noise.multiplier is None:
            return super().noisy(cells[:2], noise, random)
        of_sums, of_rows = _parts(noise)
        rows = np.array([np.sum(cells[:2]) // self.steps])
        sums = of_sums.added(cells[2:], self.reach(noise.adjacency), random)
        return np.concatenate([sums, rows if of_rows is None else of_rows.added(rows, Reach(1, 1), random)])

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:
        if len(cells) != _SUMS + 1:
            return super().score(cells[:2], rows=rows, noise=noise)
        lost = float((NODES - _MIDDLE) @ cells[:-1]) / (self.steps * rows)
        return self._at(1.0 - _MIDDLE - lost)

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        if len(cells) == 2:
            return super().estimate(cells, noise=noise, failure=failure)
        if noise is not None and len(cells) == _SUMS + 1:
            sums, rows = cells[:-1] / self.steps, float(cells[-1])
            deviation = _parts(noise)[0].deviation(self.moved_squares(noise.adjacency)) / self.steps
            of_cells = SumNoise(deviation, 0.5 / self.steps)
            mean = float(NODES @ sums) / max(float(np.sum(sums)), 1.0)
        else:
            sums, of_cells = cells[2:] / self.steps, SumNoise()
            rows = float(np.sum(cells[:2])) / self.steps
            mean = float(cells[1]) / (self.steps * max(rows, 1.0))
        each, about = self.sample
        low, high = mean_interval(sums, rows if each == 1 else about, of_cells, failure, each)
        low = max(0.0, low - 2.0 / self.steps)  # numbers and hat functions are rounded up
        mean = min(max(mean, low), high)
        return self._shown(1.0 - mean, (1.0 - high, 1.0 - low))

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:
        """Losses of an exponential distribution, with half of what a constant answer loses for their mean."""
        cells = super().typical(rows, noise)
        if noise is None or noise.multiplier is None:
            return cells
        quantiles = -np.log1p(-(np.arange(_TYPICAL) + 0.5) / _TYPICAL) * float(cells[1] / np.sum(cells))
        sums = hat_sums(np.minimum(quantiles, 1.0), self.steps) * (rows / _TYPICAL)
        return np.concatenate([np.round(sums), [round(rows)]]).astype(np.int64)

    def _cells(self, numbers: NDArray[np.int64]) -> Cells:
        total, most = int(np.sum(numbers)), self.steps * len(numbers)
        return np.concatenate([[total, most - total], hat_sums(1.0 - numbers / self.steps, self.steps)])

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        return (_SUMS + 1,)


def _parts(noise: ScoreNoise) -> tuple[ScoreNoise, ScoreNoise | None]:
    """The noise of the sums, and that of the number of rows if that is not public."""
    if noise.adjacency is Adjacency.REPLACE_ONE:
        return noise, None
    of_sums, of_rows = noise.split(_SHARES)
    return of_sums, of_rows
