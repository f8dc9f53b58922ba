"""Metrics: how far one row moves a score, the noise that covers this, and intervals from noisy counts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.mechanisms import noisy_count
from dpselect.privacy import Adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource
from dpselect.registry import Registry
from dpselect.study.target import Target

__all__ = ["METRICS", "Estimate", "Metric", "ScoreNoise", "metrics_for"]

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """A score with its interval, in the units of the metric. An end is None if there is no bound."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ScoreNoise:
    """The noise of one score, which gives pure epsilon to each row.

    Args:
        epsilon: the pure epsilon of one score, above 0.
        adjacency: which data sets are neighbours.
    """

    epsilon: float | Fraction
    adjacency: Adjacency

    def a_step(self, moved: int) -> Fraction:
        """The exact epsilon of one step, where one row moves the cells by `moved` steps in all."""
        return epsilon_used(self.epsilon) / moved

    def added(self, cells: Cells, moved: int, random: RandomSource) -> Cells:
        """The cells, each with discrete Laplace noise of its own.

        Claim: if neighbours differ by at most `moved` in the sum of the absolute differences of the cells, the result
        is epsilon-differentially private for any number of cells. You must ensure that bound.

        Proof: with r = exp(-epsilon/moved), cells c become y with probability proportional to the product of
        r^|y_i - c_i|. The factor that is left out does not depend on c. For neighbours c, c' the ratio is at most
        r^-(|c_1 - c'_1| + ... + |c_m - c'_m|), which is at most exp(epsilon). QED

        The argument is that of Dwork and Roth (2014), section 3.3, for the discrete distribution.
        """
        each = self.a_step(moved)
        found = [noisy_count(int(cell), epsilon=each, random=random) for cell in cells.ravel()]
        return np.array(found).reshape(cells.shape)

    def most(self, count: int, moved: int, failure: float) -> float:
        """A limit that none of `count` such noises is beyond, but with probability `failure`.

        P(|Z| > t) = 2 r^(t + 1)/(1 + r) <= 2 r^t for integers t >= 0, and so it is for every t. The rest is a sum.
        """
        return math.log(2.0 * count / failure) / float(self.a_step(moved)) * (1.0 + 1e-9)


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

    @abstractmethod
    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:
        """The number by which runs are compared, larger being better. `rows` is the public number of rows."""

    @abstractmethod
    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        """The figure, and an interval for it on new rows, which fails with probability at most `failure`.

        The rows must be independent draws from those that the model will meet, and must not have trained it.
        """

    def noisy(self, cells: Cells, noise: ScoreNoise, random: RandomSource) -> Cells:
        """The cells with noise: pure `noise.epsilon` for one row."""
        return noise.added(cells, self.moved(noise.adjacency), random)

    def most(self, noise: ScoreNoise | None, count: int, failure: float) -> float:
        """A limit that none of `count` noises of the cells is beyond, but with probability `failure`."""
        return 0.0 if noise is None else noise.most(count, self.moved(noise.adjacency), failure)

    def smallest_count(self, noise: ScoreNoise | None) -> float:
        """The least number to divide by in place of a noisy count of rows. Below it is hardly anything but noise."""
        return 1.0 if noise is None else 4.0 / float(noise.a_step(self.moved(noise.adjacency)))

    def rows_by_class(self, cells: Cells) -> list[float] | None:  # noqa: ARG002
        """The number of rows of each class, with noise. None if the cells do not tell."""
        return None

    def constant(self, shares: Sequence[float] | None) -> float | None:  # noqa: ARG002
        """The score of the best constant prediction, None if it is not known.

        `shares` is the part of the rows that each class has, None if it is neither public nor paid for.
        """
        return None

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
