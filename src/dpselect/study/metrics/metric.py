"""What a score of a model is, with what one row can do to it, and the registry of those that a study can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms import noisy_count
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource
from dpselect.registry import Registry

__all__ = ["METRICS", "RowMetric"]


@dataclass(frozen=True)
class RowMetric:
    """The mean over rows of a bounded number, larger being better, that a row's label and the model's answer decide.

    `of_rows(model, X, y)` gives whole numbers from 0 to `steps`, shape (rows,); the caller must ensure that each
    depends on its own row alone. They are cut off there, so that one row moves the sum by at most `steps`, whether it
    is added, removed or replaced: that is the sensitivity which the noise covers. `steps` stand for the way from
    `lower` to `upper`.
    """

    of_rows: Callable[[Any, Any, Any], NDArray[Any]]
    steps: int = 1
    lower: float = 0.0
    upper: float = 1.0

    def total(self, model: Any, X: Any, y: Any) -> int:
        """The sum over the rows, in steps."""
        if not len(y):
            return 0
        return int(np.sum(np.clip(np.asarray(self.of_rows(model, X, y)), 0, self.steps).astype(np.int64)))

    def noisy(self, total: int, *, epsilon: float, random: RandomSource) -> int:
        """A sum with discrete Laplace noise: pure epsilon-privacy for one row (see `noisy_count`)."""
        each = epsilon if self.steps == 1 else epsilon_used(epsilon) / self.steps
        return noisy_count(total, epsilon=each, random=random)

    def score(self, total: int, *, rows: float) -> float:
        """The mean from a sum and the public number of rows."""
        return self.lower + (self.upper - self.lower) * (total / self.steps) / rows


METRICS: Final = Registry[RowMetric]("metric", room="dpselect.study.metrics")
"""The metrics by the name that a study gives them: `METRICS.register("name")(RowMetric(...))`."""
