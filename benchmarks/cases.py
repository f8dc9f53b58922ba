"""One split of a table at one total price, and how what was learnt on it is scored on the rows held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.model_tables import Array, ModelTable

DELTA = 1e-5
FIRST_SEED = 700
"""No split of the studies in which the rules were found."""


@dataclass(frozen=True)
class Case:
    """One split of a table at one epsilon, and a folder for what is made on the way."""

    table: ModelTable
    epsilon: float
    seed: int
    folder: Path

    @property
    def parts(self) -> tuple[Any, Any]:
        """The places of the rows that are learnt from, and of those held out."""
        train, test = train_test_split(
            np.arange(len(self.table.answers)), test_size=0.2, random_state=FIRST_SEED + self.seed
        )
        return train, test

    @property
    def rows(self) -> int:
        """The public number of rows."""
        return int(round(len(self.parts[0]), -1))

    @property
    def label_bounds(self) -> tuple[float, float]:
        """The two ends of the answers of a regression."""
        low, high = self.table.facts["label_bounds"]
        return float(low), float(high)


def score_of(case: Case, predictions: Array) -> float:
    """Accuracy of predictions for the rows held out, or R2 of predictions clipped to the label's bounds."""
    answers = case.table.answers[case.parts[1]]
    if not case.table.regression:
        return float(np.mean(predictions == answers))
    errors = np.clip(predictions, *case.label_bounds) - answers
    return float(1 - np.mean(errors**2) / np.var(answers))


def with_scikit_learn(make: Callable[[Case], Any], case: Case) -> float:
    """The score of an estimator that learns from the columns as numbers between the bounds."""
    train, test = case.parts
    X, y = case.table.encoded, case.table.answers
    return score_of(case, make(case).fit(X[train], y[train]).predict(X[test]))
