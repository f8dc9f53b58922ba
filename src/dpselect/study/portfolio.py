"""A portfolio: a few unlike candidates, each tried once on the same rows; the one that fits them best is trained again.

A trial has a small part of the total, the last run nearly all of it, so that whichever candidate is chosen is trained
almost as one run alone. The theorem and its proof are in docs/theory/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from dpselect.privacy import Adjacency, Guarantee, compose, gaussian, worst_of
from dpselect.randomness import RandomSource
from dpselect.repetitions import Fixed
from dpselect.study.candidates import PortfolioCandidate
from dpselect.study.learners import Recipe
from dpselect.study.metrics.accuracy import answers_of
from dpselect.study.metrics.errors import absolute_shares
from dpselect.study.metrics.row_metric import FINE_STEPS, RowMetric
from dpselect.study.schema import Study
from dpselect.study.target import Target

__all__ = [
    "CHOICE",
    "HEAD_START",
    "TRIALS",
    "Portfolio",
    "PortfolioPrice",
    "agreement",
    "covering",
    "fitted",
    "portfolio_of",
    "portfolio_price",
    "the_choice",
]

Array = NDArray[np.float64]
Rows = tuple[Any, Any]
Fit = Callable[[float, RandomSource, Rows], Any]
"""A model from its noise, the source of all that it draws, and the rows and labels."""

CHOICE: Final = 10.0
"""The choice has a part of epsilon: one over this."""
TRIALS: Final = 0.1
"""What of the squares that train the trials share equally; the last run has the rest."""
HEAD_START: Final = 7.0
"""By so many standard deviations of a Gaussian count as private as a trial another candidate must be ahead of the first
to be as likely."""
_REACH: Final = 0.3
"""From this error on, of a label between -1 and 1, an answer counts nothing."""


@dataclass(frozen=True)
class PortfolioPrice:
    """The noise of each candidate's trial, the choice, and the noise of each as the last run; public.

    `training` are the guarantees of the trials, `last` one that the last run has whichever candidate it trains. `ahead`
    is the head start of the first candidate, in rows.
    """

    trials: tuple[float, ...]
    training: tuple[Guarantee, ...]
    choice: ExponentialMechanism
    noises: tuple[float, ...]
    last: Guarantee
    ahead: int = 0

    @property
    def guarantee(self) -> Guarantee:
        """What a row that trains pays for all of it.

        Claim: the release of every trial's weights, of the index chosen and of the last run is the adaptive composition
        of the trials' guarantees, of the exponential mechanism's, and of one that covers the last run of each; what
        leaves is a function of it.
        Source: docs/theory/portfolio.md, Theorem 1.
        """
        return compose(compose(*self.training, self.last), self.choice.guarantee)


@dataclass(frozen=True, repr=False)
class Portfolio:
    """Tries every candidate on the rows, chooses, and trains that one. Nothing is drawn but from the source.

    `fits` train the candidates; `agreement` gives first, of a model, rows and labels, the sum that is compared.
    """

    fits: Sequence[Fit]
    price: PortfolioPrice
    agreement: Callable[[Any, Any, Any], NDArray[np.int64]]

    def __call__(self, params: Mapping[str, Any], random: RandomSource, rows: Rows) -> tuple[Any, tuple[Array, ...]]:  # noqa: ARG002
        """The model of the last run, and its place among the candidates."""
        source = random.spawn("train")
        models = [
            fit(noise, source.spawn(place), rows)
            for place, (fit, noise) in enumerate(zip(self.fits, self.price.trials, strict=True))
        ]
        found = [float(self.agreement(model, *rows)[0]) for model in models]
        found[0] += self.price.ahead * float(self.price.choice.sensitivity)
        place = self.price.choice(found, random=random.spawn("choice")).value
        return self.fits[place](self.price.noises[place], random.spawn("last"), rows), (np.array(float(place)),)


def fitted(recipe: Recipe, noise: float, random: RandomSource, rows: Rows) -> Any:
    """A candidate of a study, trained."""
    return recipe.estimator(noise, {}, random).fit(*rows)


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
    makes = [each.recipe.guarantee for each in candidates]
    return portfolio_of(makes, choice, epsilon=privacy.epsilon, delta=privacy.delta, beside=beside)


def portfolio_of(
    makes: Sequence[Callable[[float], Guarantee]],
    choice: ExponentialMechanism,
    *,
    epsilon: float,
    delta: float,
    beside: Guarantee | None = None,
) -> PortfolioPrice:
    """The least noises with which candidates, of which `makes` say what a training costs at a noise, meet a total.

    Raises `BudgetError` where none does.
    """

    def offer(scale: float) -> PortfolioPrice:
        def noises(share: float) -> tuple[float, ...]:
            return tuple(_noise(make, scale, share, delta) for make in makes)

        trials, last = noises(TRIALS / len(makes)), noises(1.0 - TRIALS)
        training, finals = (
            tuple(make(noise) for make, noise in zip(makes, found, strict=True)) for found in (trials, last)
        )
        ahead = math.floor(HEAD_START / _Cost(training[0]).epsilon(delta))
        return PortfolioPrice(trials, training, choice, last, covering(finals), ahead)

    found = least_noise(
        "the candidates",
        lambda scale: SearchPrice((offer(scale).guarantee,), Fixed(count=1), beside),
        epsilon=epsilon,
        delta=delta,
    )
    return offer(found)


def covering(guarantees: Sequence[Guarantee]) -> Guarantee:
    """A guarantee that each of them has: of Gaussian mechanisms the largest, else the pointwise maximum."""
    mus = [each.gaussian_mu for each in guarantees]
    if None in mus:
        return worst_of(*guarantees)
    return guarantees[int(np.argmax(np.array(mus, dtype=np.float64)))]


def _noise(make: Callable[[float], Guarantee], scale: float, share: float, delta: float) -> float:
    """The noise with which a candidate costs this share of the squares; without delta, of epsilon."""

    def price(noise: float) -> _Cost:
        return _Cost(make(noise))

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
