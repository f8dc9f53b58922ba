"""One answer for all rows: what a model has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.study.target import Target

__all__ = ["Constant"]


@dataclass(frozen=True)
class Constant:
    """A model that gives the same answer for all rows: a class, with the shares of all as probabilities, or a number.

    `place` is what a metric takes for the answer, `answer` what a person does.
    """

    answer: Any
    place: float
    shares: tuple[float, ...] = ()

    @classmethod
    def best(cls, target: Target, labels: NDArray[Any]) -> Constant:
        """The commonest class of these public labels, or their mean."""
        if target.bounds is not None:
            mean = float(np.mean(labels))
            return cls(mean, mean)
        counts = np.bincount(labels[labels >= 0], minlength=len(target.classes))
        place = int(np.argmax(counts))
        return cls(target.classes[place], place, tuple(counts / max(1, counts.sum())))

    def predict(self, X: Any) -> NDArray[Any]:
        """The answer for each row, shape (rows,)."""
        return np.full(len(X), self.place)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The shares for each row, shape (rows, classes)."""
        return np.tile(self.shares, (len(X), 1))
