"""Means over rows of a bounded number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.study.metrics.metric import Cells, Estimate, Metric, ScoreNoise
from dpselect.study.metrics.noisy_shares import CellNoise, share_interval_of_cells
from dpselect.study.metrics.person_sample import SINGLE_ROWS, PersonSample

__all__ = ["FINE_STEPS", "RowMetric"]

FINE_STEPS: Final = 2**16
"""Steps for a number that is not whole."""


@dataclass(frozen=True)
class RowMetric(Metric):
    """The mean over rows of a bounded number that a row's label and the model's answer decide, larger being better.

    The cells are the sum of the numbers v, and that of what lacks to the most, `steps` - v.

    Claim: pure epsilon for one row by noise for `steps`. Proof: a row that is added or removed moves the two cells by v
    and `steps` - v, together by `steps`: the second one, with which the number of rows need not be public, is free. A
    row that is replaced moves the first by at most `steps`; only that one gets noise, and the second is what lacks to
    the public number of all steps. The sum of the squared differences is at most that of `steps`, either way. QED

    Under adding or removing, runs are compared by half the difference of the noisy cells. Its noise has half the
    variance of the first cell's. This works because the sum of the cells is the same for all runs.

    Args:
        of_rows: `of_rows(model, X, y)` returns integers from 0 to `steps`, shape (rows,). They are clipped there, and
            NaN counts as 0. You must ensure that each depends on its own row alone.
        steps: the largest integer. The integers 0 to `steps` represent the numbers from `lower` to `upper`, evenly
            spaced.
        lower: the number that 0 represents. Public.
        upper: the number that `steps` represents. Public.
        loss: whether the mean is shown with its sign turned.
        of_shares: `of_shares(shares)` returns the score of the best constant prediction, from the fraction of the rows
            in each class. None: it is not known.
        worth: how far a constant model is from a perfect one, as a part of the distance of `lower` and `upper`.
        sample: how the rows were drawn, for intervals. `of_persons` sets it.
    """

    of_rows: Callable[[Any, Any, Any], NDArray[Any]]
    steps: int = 1
    lower: float = 0.0
    upper: float = 1.0
    loss: bool = False
    of_shares: Callable[[Sequence[float]], float] | None = None
    worth: float = 0.9
    sample: PersonSample = SINGLE_ROWS

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        total = int(np.sum(self.numbers(model, X, y)))
        return np.array([total, self.steps * len(y) - total])

    def numbers(self, model: Any, X: Any, y: Any) -> NDArray[np.int64]:
        """The integer of each row, clipped to 0 and `steps`. Raises `ArgumentError` for another shape."""
        if not len(y):
            return np.zeros(0, dtype=np.int64)
        given = np.asarray(self.of_rows(model, X, y), dtype=np.float64)
        if given.shape != (len(y),):
            raise ArgumentError("the score must be one number for each row")
        return np.clip(np.nan_to_num(given, nan=0.0), 0, self.steps).astype(np.int64)

    def lost(self, y: Any) -> Cells:
        return np.array([0, self.steps * len(y)])

    def moved(self, adjacency: Adjacency) -> int:  # noqa: ARG002
        return self.steps

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        if noise.adjacency is Adjacency.ADD_OR_REMOVE_ONE:
            return super().noisy(cells, noise, random)
        total = noise.added(cells[:1], self.reach(noise.adjacency), random)[0]
        return np.array([total, int(np.sum(cells)) - total])

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:  # noqa: ARG002
        return self._at(0.5 + float(cells[0] - cells[1]) / (2.0 * self.steps * rows))

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        good, total = float(cells[0]), float(np.sum(cells))
        if not total > 0.0:
            return self._shown(0.5, (0.0, 1.0))
        of_cells = CellNoise(steps=self.steps, sample=self.sample)
        if noise is not None:
            reach, public = self.reach(noise.adjacency), noise.adjacency is Adjacency.REPLACE_ONE
            of_cells = replace(of_cells, cumulants=lambda at: noise.cumulants(at, reach), public_rows=public)
        ends = share_interval_of_cells(good / self.steps, total / self.steps, (1, 1), of_cells, failure)
        return self._shown(min(max(good / total, 0.0), 1.0), ends)

    def of_persons(self, sample: PersonSample) -> Metric:
        return replace(self, sample=sample)

    def constant(self, shares: Sequence[float] | None) -> float | None:
        return None if shares is None or self.of_shares is None else self.of_shares(shares)

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:  # noqa: ARG002
        """Of losses half of what a constant answer loses, of others four fifths of the most."""
        good = round((1.0 - self.worth / 2.0 if self.loss else 0.8) * self.steps * rows)
        return np.array([good, round(self.steps * rows) - good])

    @property
    def span(self) -> float:
        return self.worth * (self.upper - self.lower)

    def _shown(self, share: float, ends: tuple[float, float]) -> Estimate:
        sign = -1.0 if self.loss else 1.0
        value, low, high = (sign * self._at(each) for each in (share, *ends))
        return Estimate(value + 0.0, min(low, high) + 0.0, max(low, high) + 0.0)

    def _at(self, share: float) -> float:
        return self.lower + (self.upper - self.lower) * share
