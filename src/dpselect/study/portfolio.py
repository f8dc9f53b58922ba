"""Portfolios of studies: by what candidates are compared. See `dpselect.searching.portfolio`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dpselect.capabilities import Linear, Weighted
from dpselect.learners.dp_sgd import NoisyGradients
from dpselect.learners.rows import public_weights
from dpselect.mechanisms import ExponentialMechanism
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.searching.portfolio import Rows, TrialModel
from dpselect.study.learners.mapped import MappedLearner
from dpselect.study.learners.recipe import Recipe
from dpselect.study.metrics.accuracy import answers_of
from dpselect.study.metrics.errors import absolute_shares
from dpselect.study.metrics.row_metric import FINE_STEPS, RowMetric
from dpselect.study.target import Target

__all__ = ["agreement", "beginning", "fitted", "size", "the_choice"]

_REACH: Final = 0.3
"""From this error on, of a label between -1 and 1, an answer counts nothing."""


def fitted(recipe: Recipe, noise: float, random: RandomSource, rows: Rows, trial: TrialModel | None) -> Any:
    """A candidate of a study, trained; the last run continues from its trial."""
    begun = {}
    if trial is not None:
        learner = trial.model.learner if isinstance(trial.model, MappedLearner) else trial.model
        begun = beginning(learner, noise / trial.noise)
    return recipe.estimator(noise, {}, random).fit(*rows, **begun)


def beginning(trial: Any, part: float) -> dict[str, Any]:
    """Keyword arguments of `fit` with which a linear model by noisy gradients begins at a part of its trial's weights.

    The more noise they have, the smaller a part serves: that of the last run over that of the trial. These weights are
    private output that is paid for, and noisy gradients are as private wherever they begin.
    Source: docs/theory/portfolio.md, Theorem 1.
    """
    weights = trial.weights_ if isinstance(trial, NoisyGradients) else ()
    # a network has several; a class of someone's own may have a `fit` of its own
    if len(weights) != 1 or "initial_weights" not in inspect.signature(trial.fit).parameters:
        return {}
    return {"initial_weights": tuple(part * each for each in weights)}


def size(model: Any) -> int | None:
    """How many weights a model of this package has, or a linear one of scikit-learn's; None of others."""
    if isinstance(model, Weighted):
        return sum(np.size(each) for each in model.weights_)
    return np.size(model.coef_) + np.size(getattr(model, "intercept_", 0.0)) if isinstance(model, Linear) else None


def agreement(target: Target, class_weights: Sequence[float] | str | None = None) -> RowMetric:
    """By what candidates are compared: an integer from 0 to `steps` for each row, which other rows do not enter.

    Of classes 1 for a right answer, or the class's weight on a grid, the largest taken for 1. Of numbers, with the
    label scaled to [-1, 1], 1 - min(|error| / 0.3, 1), rounded down to a grid.
    """
    if target.bounds is not None:
        return RowMetric(partial(_near, target), FINE_STEPS)
    if class_weights is None or isinstance(class_weights, str):  # noisy weights are not known in advance
        return RowMetric(partial(_right, np.ones(len(target.classes))), 1)
    weights = public_weights(class_weights, np.arange(len(target.classes)))
    return RowMetric(partial(_right, np.floor(weights * FINE_STEPS)), FINE_STEPS)


def _right(counts: Array, model: Any, X: Any, y: Any) -> Array:
    places = np.asarray(y)
    known = (places >= 0) & (answers_of(model, X, y) == places)
    return np.where(known, counts[places], 0.0)


def _near(target: Target, model: Any, X: Any, y: Any) -> Array:
    errors = 2.0 * absolute_shares(target, model, X, y)
    return np.floor((1.0 - np.minimum(errors / _REACH, 1.0)) * FINE_STEPS)


def the_choice(compared: RowMetric, epsilon: float, adjacency: Adjacency, rows: int = 1) -> ExponentialMechanism:
    """The choice among candidates by sums of what their agreement with each row is.

    It is for persons with so many `rows` each: together they move a sum by so many times as much.

    Claim: private at `epsilon`, with range `epsilon`. A row more adds 0 to `steps` to every sum, so they are monotonic;
    one in the place of another adds to some and takes from others.
    Source: docs/theory/portfolio.md, Lemma 1.
    """
    return ExponentialMechanism(
        sensitivity=float(compared.steps * rows),
        epsilon=epsilon,
        monotonic=adjacency is Adjacency.ADD_OR_REMOVE_ONE,
        adjacency=adjacency,
    )
