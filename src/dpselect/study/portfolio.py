"""A portfolio: a few unlike candidates, each trained once on the same rows, and the one released that fits them best.

The theorem and its proof are in docs/theory/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting import calibrate
from dpselect.accounting.planning.calibrate import least_parameter
from dpselect.accounting.planning.search_prices import SearchPrice, least_noise
from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.learners.rows import public_weights
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import Adjacency, Guarantee, compose, gaussian
from dpselect.randomness import RandomSource
from dpselect.repetitions import Fixed
from dpselect.study.candidates import PortfolioCandidate
from dpselect.study.metrics.accuracy import answers_of
from dpselect.study.metrics.errors import absolute_shares
from dpselect.study.metrics.row_metric import FINE_STEPS, RowMetric
from dpselect.study.schema import Study
from dpselect.study.target import Target

__all__ = [
    "CHOICE",
    "DEFAULT_SHARE",
    "Portfolio",
    "PortfolioPrice",
    "agreement",
    "portfolio_price",
    "shares",
    "the_choice",
]

Array = NDArray[np.float64]
Rows = tuple[Array, NDArray[Any]]

CHOICE: Final = 10.0
"""The choice has a part of epsilon: one over this."""
DEFAULT_SHARE: Final = 0.4
"""The first candidate's share of the squares of what trains, or an equal one if that is more; the others share the rest
equally."""
_REACH: Final = 0.3
"""From this error on, of a label between -1 and 1, an answer counts nothing."""


def shares(count: int) -> list[float]:
    """The shares of so many candidates, the default first.

    >>> shares(3)
    [0.4, 0.3, 0.3]
    """
    first = max(DEFAULT_SHARE, 1.0 / count)
    return [first, *[(1.0 - first) / (count - 1)] * (count - 1)]


@dataclass(frozen=True)
class PortfolioPrice:
    """The noise of each candidate's training, and the choice; public."""

    noises: tuple[float, ...]
    training: tuple[Guarantee, ...]
    choice: ExponentialMechanism

    @property
    def guarantee(self) -> Guarantee:
        """What a row that trains pays for all of it.

        Claim: the release of every candidate's weights and of the index chosen is the adaptive composition of the
        candidates' guarantees and of the exponential mechanism's; what leaves is a function of it.
        Source: docs/theory/portfolio.md, Theorem 1.
        """
        return compose(*self.training, self.choice.guarantee)


@dataclass(frozen=True, repr=False)
class Portfolio:
    """Trains every candidate on the rows, and chooses. Nothing is drawn but from the source."""

    candidates: Sequence[PortfolioCandidate]
    price: PortfolioPrice
    agreement: RowMetric

    def __call__(self, params: Mapping[str, Any], random: RandomSource, rows: Rows) -> tuple[Any, tuple[Array, ...]]:  # noqa: ARG002
        """The model chosen, and its place among the candidates."""
        source = random.spawn("train")
        models = [
            candidate.recipe.estimator(noise, {}, source.spawn(place)).fit(*rows)
            for place, (candidate, noise) in enumerate(zip(self.candidates, self.price.noises, strict=True))
        ]
        found = [float(self.agreement.cells(model, *rows)[0]) for model in models]
        place = self.price.choice(found, random=random.spawn("choice")).value
        return models[place], (np.array(float(place)),)


def agreement(target: Target, class_weights: Sequence[float] | None = None) -> RowMetric:
    """By what candidates are compared: a whole number from 0 to `steps` for each row, which other rows do not enter.

    Of classes 1 for a right answer, or the class's weight on a grid, the largest taken for 1. Of numbers, with the
    label scaled to [-1, 1], 1 - min(|error| / 0.3, 1), rounded down to a grid.
    """
    if target.bounds is not None:
        return RowMetric(partial(_near, target), FINE_STEPS)
    if class_weights is None:
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


def the_choice(compared: RowMetric, epsilon: float, adjacency: Adjacency) -> ExponentialMechanism:
    """The choice among candidates by sums of what their agreement with each row is.

    Claim: private at `epsilon`, with range `epsilon`. A row more adds 0 to `steps` to every sum, so they are monotonic;
    one in the place of another adds to some and takes from others.
    Source: docs/theory/portfolio.md, Lemma 1.
    """
    return ExponentialMechanism(
        sensitivity=float(compared.steps),
        epsilon=epsilon,
        monotonic=adjacency is Adjacency.ADD_OR_REMOVE_ONE,
        adjacency=adjacency,
    )


def portfolio_price(
    study: Study, candidates: Sequence[PortfolioCandidate], beside: Guarantee | None = None
) -> PortfolioPrice:
    """The noises with which all of it, and what is paid `beside`, meets the study's total.

    Raises `BudgetError` where none does, `StudyError` where the study says no total.
    """
    privacy, target = study.privacy, study.data.target
    if privacy.epsilon is None:
        raise StudyError("privacy.noise_multiplier: a portfolio has a noise for each candidate; give epsilon")
    compared = agreement(target, candidates[0].recipe.shared.get("class_weights"))
    choice = the_choice(compared, privacy.epsilon / CHOICE, privacy.adjacency)

    def offer(scale: float) -> PortfolioPrice:
        noises = tuple(
            _noise(candidate, scale, share, privacy.delta)
            for candidate, share in zip(candidates, shares(len(candidates)), strict=True)
        )
        training = [each.recipe.guarantee(noise) for each, noise in zip(candidates, noises, strict=True)]
        return PortfolioPrice(noises, tuple(training), choice)

    found = least_noise(
        "the candidates",
        lambda scale: SearchPrice((offer(scale).guarantee,), Fixed(count=1), beside),
        epsilon=privacy.epsilon,
        delta=privacy.delta,
    )
    return offer(found)


def _noise(candidate: PortfolioCandidate, scale: float, share: float, delta: float) -> float:
    """The noise with which a candidate costs this share of the squares; without delta, of epsilon."""

    def price(noise: float) -> _Cost:
        return _Cost(candidate.recipe.guarantee(noise))

    most = share / scale if delta == 0.0 else math.sqrt(share) / scale
    try:
        return least_parameter(price, epsilon=most, delta=delta, relative=1e-4)
    except ArgumentError as error:  # parameters have limits of their own
        raise BudgetError(str(error)) from None


@dataclass(frozen=True)
class _Cost:
    """What a candidate costs: the parameter of a Gaussian mechanism that is as private at `delta`."""

    guarantee: Guarantee
    has_profile: bool = False

    def epsilon(self, delta: float) -> float:
        """That parameter, or without delta epsilon itself."""
        if self.guarantee.gaussian_mu is not None:
            return self.guarantee.gaussian_mu
        found = self.guarantee.epsilon(delta)
        if delta == 0.0 or not 0.0 < found < math.inf:
            return found
        return 1.0 / calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=found, delta=delta)

    def by_renyi(self, delta: float) -> float:
        """The same."""
        return self.epsilon(delta)
