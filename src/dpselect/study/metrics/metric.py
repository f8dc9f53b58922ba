"""Metrics: how far one row moves a score, the noise that covers this, and intervals from noisy counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.registry import Registry
from dpselect.study.metrics.person_sample import PersonSample
from dpselect.study.metrics.score_noise import Cells, Reach, ScoreNoise
from dpselect.study.target import Target

__all__ = ["METRICS", "Cells", "Estimate", "Figure", "Metric", "ScoreNoise", "metrics_for"]


@dataclass(frozen=True)
class Estimate:
    """A score with its interval, in the units of the metric. An end is None if there is no bound."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Figure:
    """One number that the noisy counts of a metric tell about a model, with the constant answer's beside it.

    `constant` is what always giving `answer` reaches on the same rows, by the same counts. None if they do not tell.
    """

    name: str
    estimate: Estimate
    constant: float | None
    answer: Any
    less_is_better: bool


class Metric(ABC):
    """A score from sums of integers over the rows, which one row can move only so much.

    `cells` sums a vector of integers that each row gives by itself. `noisy` covers the effect of one row on the sums.
    `score` and `estimate` see only the noisy sums and public numbers, and so cost nothing more. Runs are compared by
    `score`. It is a function of what was paid for, as is the estimate that is released.

    You must ensure that the model's answer for a row does not depend on the other rows.

    Args:
        loss: whether less is better in the figure that is shown. By default more is better.
    """

    loss: bool = False
    """Whether less is better, of the figure that is shown."""

    @abstractmethod
    def cells(self, model: Any, X: Any, y: Any) -> Cells:
        """The sums over these rows. The sums over two parts of the rows add up."""

    @abstractmethod
    def lost(self, y: Any) -> Cells:
        """The sums over rows with these labels for which there is no answer."""

    @abstractmethod
    def moved(self, adjacency: Adjacency) -> int:
        """How far neighbours' cells are apart at most: the sum of the absolute differences."""

    def moved_squares(self, adjacency: Adjacency) -> int:
        """How far neighbours' cells are apart at most: the sum of the squared differences, which Gaussian noise covers.

        By default the square of `moved`, which is never less.
        """
        return self.moved(adjacency) ** 2

    def reach(self, adjacency: Adjacency) -> Reach:
        """Both distances of neighbours' cells."""
        return Reach(self.moved(adjacency), self.moved_squares(adjacency))

    @abstractmethod
    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:
        """The number by which runs are compared, larger being better. `rows` is the public number of rows."""

    @abstractmethod
    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        """The figure, and an interval for it on new rows, which fails with probability at most `failure`.

        The rows must be independent draws from those that the model will meet, and must not have trained it.
        """

    def of_persons(self, sample: PersonSample) -> Metric | None:  # noqa: ARG002
        """The same metric with intervals that hold for rows so drawn. None, the default, if nothing is proved."""
        return None

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        """The cells with noise: what `noise` promises for one row."""
        return noise.added(cells, self.reach(noise.adjacency), random)

    def most(self, noise: ScoreNoise | None, count: int, failure: float) -> float:
        """A limit that none of `count` noises of the cells is beyond, but with probability `failure`."""
        return 0.0 if noise is None else noise.most(count, self.reach(noise.adjacency), failure)

    def smallest_count(self, noise: ScoreNoise | None) -> float:
        """The least number to divide by in place of a noisy count of rows. Below it is hardly anything but noise."""
        return 1.0 if noise is None else noise.size(self.reach(noise.adjacency))

    def rows_by_class(self, cells: Cells) -> list[float] | None:  # noqa: ARG002
        """The number of rows of each class, with noise. None if the cells do not tell."""
        return None

    def constant(self, shares: Sequence[float] | None) -> float | None:  # noqa: ARG002
        """The score of the best constant prediction, None if it is not known.

        `shares` is the part of the rows that each class has, None if it is neither public nor paid for.
        """
        return None

    def figures(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Figure]:  # noqa: ARG002
        """All that the cells tell of a model, this metric's figure first. Each interval holds by itself.

        Empty, the default: the figure of `estimate` alone, beside `constant`.
        """
        return []

    def shares(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Estimate] | None:  # noqa: ARG002
        """The part of the rows that each class has, with intervals that hold by themselves. None: nothing tells."""
        return None

    def typical(self, rows: float, noise: ScoreNoise | None) -> Cells | None:  # noqa: ARG002
        """The cells of a model in the middle between a constant and a good one, as `noisy` gives them without noise.

        From public facts alone: the number of rows. None, the default, if the metric does not say.
        """
        return None

    @property
    def span(self) -> float:
        """How far apart the figures of a constant and of a perfect model are: a wider interval says nothing."""
        return 1.0

    @property
    def noisy_shape(self) -> tuple[int, ...]:
        """The shape of what `noisy` gives."""
        return (2,)


METRICS: Final = Registry[Callable[[Target], Metric]]("metric", room="dpselect.study.metrics")
"""Functions that make a metric from the public facts about a label, by the name that a study gives it.

`METRICS.register("name", task="regression")(function)` adds one. Without `task` it is for both kinds of label.
The function raises `ArgumentError` for a label that the metric is not for.
"""


def metrics_for(target: Target) -> dict[str, Metric]:
    """All metrics that such a label admits, by name."""
    found = {}
    for name in METRICS:
        if METRICS.facts(name).get("task", target.task) == target.task:
            with suppress(ArgumentError):
                found[name] = METRICS[name](target)
    return found
