"""The mean over the classes of the share of their rows that is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.privacy import Adjacency
from dpselect.study.metrics.accuracy import answers_of
from dpselect.study.metrics.intervals import share_interval
from dpselect.study.metrics.metric import METRICS, Cells, Estimate, Metric, ScoreNoise
from dpselect.study.target import Target

__all__ = ["BalancedAccuracy"]


@METRICS.register("balanced-accuracy", task="classification")
@dataclass(frozen=True)
class BalancedAccuracy(Metric):
    """The mean over the classes of the share of their rows that is recognised: 1/classes for a constant answer.

    The cells, shape (2, classes), count for each class its rows that are recognised and those that are not. A row whose
    label is none of the classes counts nowhere.

    Claim: a row is in one cell at most. So adding or removing one moves one cell by 1. Replacing one moves two cells by
    1 each, or none. So much noise is added to each cell, for any number of classes. The numbers of rows by class are
    then known, with noise, and shares of them cost nothing more. QED

    A class with fewer rows than the noise counts as if it had as many: what little is seen of it moves the score
    little.
    """

    target: Target

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        if not len(y):
            return self.lost(y)
        places = np.asarray(y)
        right = answers_of(model, X, y) == places
        return np.stack([self._by_class(places[right]), self._by_class(places[~right])])

    def lost(self, y: Any) -> Cells:
        wrong = self._by_class(np.asarray(y, dtype=np.int64))
        return np.stack([np.zeros_like(wrong), wrong])

    def moved(self, adjacency: Adjacency) -> int:
        return 1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2

    def moved_squares(self, adjacency: Adjacency) -> int:
        return self.moved(adjacency)

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:
        rows = np.maximum(cells[0] + cells[1], self.smallest_count(noise))
        return float(np.mean(np.clip(cells[0] / rows, 0.0, 1.0)))

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        classes = cells.shape[1]
        most = self.most(noise, 2 * classes, failure / 2.0)
        ends = []
        for right, wrong in cells.T.astype(np.float64):
            total = max(right + wrong, 1.0)
            high = (right + most) / total if right + wrong >= 1.0 else 1.0
            rows = right + wrong - 2.0 * most
            ends.append(share_interval((right - most) / total, high, rows, failure / (2.0 * classes)))
        low, high = np.mean(ends, axis=0)
        value = self.score(cells, rows=1.0, noise=noise)
        return Estimate(value, min(value, float(low)), max(value, float(high)))

    def rows_by_class(self, cells: Cells) -> list[float]:
        return [float(count) for count in np.sum(cells, axis=0)]

    def constant(self, shares: Sequence[float] | None) -> float:  # noqa: ARG002
        return 1.0 / len(self.target.classes)

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        return 2, len(self.target.classes)

    def _by_class(self, places: Any) -> Cells:
        return np.bincount(places[places >= 0], minlength=len(self.target.classes)).astype(np.int64)
