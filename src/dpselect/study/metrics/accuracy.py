"""The share of the rows whose label is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpselect.randomness import RandomSource
from dpselect.study.metrics.class_counts import ClassCounts, answers_of
from dpselect.study.metrics.metric import METRICS, Cells, Estimate, Figure, ScoreNoise
from dpselect.study.metrics.row_metric import RowMetric

__all__ = ["Accuracy", "answers_of"]

_MEAN: Final = RowMetric(lambda model, X, y: (answers_of(model, X, y) == y) & (np.asarray(y) >= 0))
"""The mean of right answers alone."""


@METRICS.register("accuracy", task="classification")
@dataclass(frozen=True)
class Accuracy(ClassCounts):
    """The share of correct predictions. A row whose label is none of the classes counts as wrong.

    Claim: with Gaussian noise what `noisy` gives are the counts of `ClassCounts`. With Laplace noise they are the
    numbers of right and of wrong answers alone, as `RowMetric` has them: a row of a pure score has less noise so.
    """

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        if noise.multiplier is None:
            return _MEAN.noisy(np.sum(cells, axis=1), noise, random)
        return super().noisy(cells, noise, random)

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:
        return _MEAN.score(_sides(cells), rows=rows, noise=noise)

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        if cells.ndim == 1:
            return replace(_MEAN, sample=self.sample).estimate(cells, noise=noise, failure=failure)
        return self.accuracy(cells, noise, failure)

    def figures(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Figure]:
        return [] if cells.ndim == 1 else super().figures(cells, noise=noise, failure=failure)

    def shares(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Estimate] | None:
        return None if cells.ndim == 1 else super().shares(cells, noise=noise, failure=failure)

    def rows_by_class(self, cells: Cells) -> list[float] | None:
        return None if cells.ndim == 1 else super().rows_by_class(cells)

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:
        cells = super().typical(rows, noise)
        return cells if noise is None or noise.multiplier is not None else np.sum(cells, axis=1)

    def constant(self, shares: Sequence[float] | None) -> float | None:
        return None if shares is None else max(shares)


def _sides(cells: Cells) -> Cells:
    """The numbers of right and of wrong answers."""
    if cells.ndim == 1:
        return cells
    right = int(np.sum(cells[0, :-1]))
    return np.array([right, int(np.sum(cells[1]))])
