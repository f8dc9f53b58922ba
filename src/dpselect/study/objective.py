"""One run of a study: draw nothing but from the trial's source, train, score, return both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms import noisy_count
from dpselect.randomness import RandomSource
from dpselect.study.learners import Recipe
from dpselect.tuning import TrialOutput

__all__ = ["Run"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Run:
    """The objective of a study: trains on one part of the rows, scores on the other.

    The score is the number of correct predictions over a public number of rows: with discrete Laplace noise
    (`score_epsilon`) when the rows are private, without when they are public (`score_epsilon` None). The value is the
    tuple of weight arrays.
    """

    recipe: Recipe
    noise: float
    training: tuple[Array, Labels]
    validation: tuple[Array, Labels]
    score_rows: float
    score_epsilon: float | None

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:
        """Train and score with these parameters."""
        model = self.recipe.estimator(self.noise, params, random.spawn("train"))
        model.fit(*self.training)
        features, labels = self.validation
        correct = int(np.sum(model.predict(features) == labels)) if len(labels) else 0
        if self.score_epsilon is not None:
            correct = noisy_count(correct, epsilon=self.score_epsilon, random=random.spawn("score"))
        return TrialOutput(correct / self.score_rows, tuple(np.asarray(w) for w in model.weights_))
