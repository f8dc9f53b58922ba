"""The mean over the classes of the share of their rows that is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpselect.study.metrics.class_counts import ClassCounts
from dpselect.study.metrics.metric import METRICS, Cells, Estimate, Figure, ScoreNoise

__all__ = ["BalancedAccuracy"]


@METRICS.register("balanced-accuracy", task="classification")
@dataclass(frozen=True)
class BalancedAccuracy(ClassCounts):
    """The mean over the classes of the share of their rows that is recognised: 1/classes for a constant answer.

    The claim is that of `ClassCounts`. A row whose label is none of the classes counts nowhere. A class with fewer rows
    than the noise counts as if it had as many: the little that is seen of it moves the score little.
    """

    def score(self, cells: Cells, *, rows: float, noise: ScoreNoise | None) -> float:  # noqa: ARG002
        return self.balanced_score(cells, noise)

    def estimate(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> Estimate:
        return self.balanced(cells, noise, failure)

    def figures(self, cells: Cells, *, noise: ScoreNoise | None, failure: float) -> list[Figure]:
        return super().figures(cells, noise=noise, failure=failure)[::-1]

    def constant(self, shares: Sequence[float] | None) -> float:  # noqa: ARG002
        return self._even
