"""Counts of the rows of each class that a model predicts and that it does not: accuracies and class shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency
from dpselect.study.metrics.mean_shares import mean_share_interval
from dpselect.study.metrics.metric import Cells, Estimate, Figure, Metric, ScoreNoise
from dpselect.study.metrics.noisy_shares import CellNoise, share_interval_of_cells
from dpselect.study.metrics.person_sample import SINGLE_ROWS, PersonSample
from dpselect.study.target import Target

__all__ = ["ClassCounts", "answers_of"]


def answers_of(model: Any, X: Any, y: Any) -> Any:
    """Return the model's answers, shape (rows,). Raises `ArgumentError` for another shape.

    A column of answers would be compared with every label, and one row would count many times.
    """
    answers = np.asarray(model.predict(X))
    if answers.shape != (len(y),):
        raise ArgumentError("the estimator must predict one label for each row")
    return answers


@dataclass(frozen=True)
class ClassCounts(Metric):
    """Accuracy, balanced accuracy and class shares from one vector of counts.

    The cells, shape (2, classes + 1), count for each class its rows that are recognised and those that are not. Rows
    whose label is none of the classes are counted last, and never recognised.

    Claim: a row is in one cell. So adding or removing one moves one cell by 1. Replacing one moves two cells by 1 each,
    or none. So much noise is added to each cell, for any number of classes. All figures are functions of the noisy
    cells, and cost nothing more. QED
    """

    target: Target
    sample: PersonSample = SINGLE_ROWS

    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        if not len(y):
            return self.lost(y)
        places = np.asarray(y)
        return self._counted(places, (answers_of(model, X, y) == places) & (places >= 0))

    def lost(self, y: Any) -> Cells:
        return self._counted(np.asarray(y, dtype=np.int64), np.zeros(len(y), dtype=bool))

    def moved(self, adjacency: Adjacency) -> int:
        return 1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2

    def moved_squares(self, adjacency: Adjacency) -> int:
        return self.moved(adjacency)

    def of_persons(self, sample: PersonSample) -> Metric:
        return replace(self, sample=sample)

    def rows_by_class(self, cells: Cells) -> list[float] | None:
        return [float(count) for count in np.sum(cells, axis=0)[:-1]]

    def figures(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Figure]:
        counts, total = np.sum(cells, axis=0)[:-1], max(1.0, float(np.sum(cells)))
        place = int(np.argmax(counts))
        most = min(max(float(counts[place]) / total, 0.0), 1.0)
        answer = self.target.classes[place]
        return [
            Figure("accuracy", self.accuracy(cells, noise, failure), most, answer, less_is_better=False),
            Figure("balanced-accuracy", self.balanced(cells, noise, failure), self._even, None, less_is_better=False),
        ]

    def shares(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Estimate] | None:
        others = 2 * len(self.target.classes)
        counts = np.sum(cells, axis=0).astype(np.float64)
        return [self._share(count, float(np.sum(counts)), (2, others), noise, failure) for count in counts[:-1]]

    def accuracy(self, cells: Cells, noise: ScoreNoise | None, failure: float) -> Estimate:
        """The share of correct predictions among all rows."""
        classes = len(self.target.classes)
        right, total = float(np.sum(cells[0, :-1])), float(np.sum(cells[:, :-1])) + float(cells[1, -1])
        return self._share(right, total, (classes, classes + 1), noise, failure)

    def balanced(self, cells: Cells, noise: ScoreNoise | None, failure: float) -> Estimate:
        """The mean over the classes of the share of their rows that is recognised."""
        value, counts = self.balanced_score(cells, noise), cells[:, :-1].astype(np.float64)
        low, high = mean_share_interval(counts[0], counts[0] + counts[1], self._noise_of_cells(noise), failure)
        return Estimate(value, min(value, low), max(value, high))

    def balanced_score(self, cells: Cells, noise: ScoreNoise | None) -> float:
        """The balanced accuracy. A class with fewer rows than the noise counts as if it had as many."""
        rows = np.maximum(np.sum(cells, axis=0), self.smallest_count(noise))[:-1]
        return float(np.mean(np.clip(cells[0, :-1] / rows, 0.0, 1.0)))

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells:  # noqa: ARG002
        """Classes of equally many rows, four fifths of them recognised."""
        counts = np.outer([0.8, 0.2], np.full(len(self.target.classes), rows * self._even))
        return np.round(np.pad(counts, ((0, 0), (0, 1)))).astype(np.int64)

    @property
    def span(self) -> float:
        return 0.9  # of shares, which are from 0 to 1

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        return 2, len(self.target.classes) + 1

    @property
    def _even(self) -> float:
        return 1.0 / len(self.target.classes)

    def _share(
        self, good: float, total: float, cells: tuple[int, int], noise: ScoreNoise | None, failure: float
    ) -> Estimate:
        value = min(max(good / max(total, 1.0), 0.0), 1.0)
        low, high = share_interval_of_cells(good, total, cells, self._noise_of_cells(noise), failure)
        return Estimate(value, min(value, low), max(value, high))

    def _noise_of_cells(self, noise: ScoreNoise | None) -> CellNoise:
        if noise is None:
            return CellNoise(sample=self.sample)
        reach = self.reach(noise.adjacency)
        return CellNoise(lambda at: noise.cumulants(at, reach), sample=self.sample)

    def _counted(self, places: Any, right: Any) -> Cells:
        classes = len(self.target.classes) + 1
        cells = np.where(right, 0, classes) + np.where(places < 0, classes - 1, places)
        return np.bincount(cells.astype(np.int64), minlength=2 * classes).reshape(2, classes).astype(np.int64)
