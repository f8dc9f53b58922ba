"""The cost of a portfolio: trials of a few candidates, the choice among them, and one run more of the chosen one.

A trial has a small part of the total, the last run nearly all of it, so that whichever candidate is chosen is trained
almost as one run alone. The first candidate's trial has more than the others': a candidate that is ahead of it with
more noise is so with less. The theorem and its proof are in docs/theory/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpselect.accounting.planning.calibrate import ParameterSearch, calibrate
from dpselect.accounting.planning.search_prices import SearchPrice, least_noise
from dpselect.errors import ArgumentError, BudgetError
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import Guarantee, compose, gaussian, worst_of
from dpselect.repetitions import Fixed

__all__ = [
    "CHOICE",
    "FIRST",
    "HEAD_START",
    "MOST_CANDIDATES",
    "OPTIMISM",
    "TRIALS",
    "PortfolioPrice",
    "covering",
    "portfolio_of",
    "trial_shares",
]

CHOICE: Final = 10.0
"""The choice has a part of epsilon: one over this."""
MOST_CANDIDATES: Final = 4
TRIALS: Final = 0.15
"""What of the squares that train the trials share; the last run has the rest."""
FIRST: Final = 8.0
"""So many times another trial's share has that of the first candidate.
The figures of these two and of the next two: `python -m benchmarks.portfolio_rule`."""
HEAD_START: Final = 3.5
"""By so many standard deviations of a Gaussian count as private as the first one's trial another candidate must be
ahead of it to be as likely."""
OPTIMISM: Final = 0.5
"""So many rows more does a trial fit by chance for each of its weights, at most."""
_MOST_BACK: Final = 2.0**40
"""Rows: scores in steps reach no further, so that sums are exact."""
_LEAST: Final = 1e-9
"""What a trial is taken to cost at least, so that the head start of one that costs nothing is a number."""


@dataclass(frozen=True)
class PortfolioPrice:
    """The noise of each candidate's trial, the choice, and the noise of each as the last run. All are public.

    `training` are the guarantees of the trials, `last` one that the last run has whichever candidate it trains.
    `ahead` is the head start of the first candidate, in rows.
    """

    trials: tuple[float, ...]
    training: tuple[Guarantee, ...]
    choice: ExponentialMechanism
    noises: tuple[float, ...]
    last: Guarantee
    ahead: int = 0

    def starts(self, weights: Sequence[float | None], rows: float | None = None) -> tuple[int, ...]:
        """The head starts of candidates whose trials fitted so many weights, in rows: integers.

        More weights than the first one's fit more rows by chance. That is taken off if both are known. A trial fits no
        more than its privacy lets so many public `rows` matter. Nothing but the trials'
        outputs may be behind the arguments.
        Source: docs/theory/portfolio.md, Lemma 2.
        """
        chance = [0.0 if each is None else min(OPTIMISM * each, _MOST_BACK) for each in weights]
        if rows is not None:
            chance = [min(each, rows * part.delta(0.0)) for each, part in zip(chance, self.training, strict=True)]
        known = weights[0] is not None
        return (self.ahead, *(-math.ceil(max(0.0, each - chance[0])) if known else 0 for each in chance[1:]))

    @property
    def guarantee(self) -> Guarantee:
        """The cost of all of it for a row that trains.

        Claim: the release of every trial's weights, of the index chosen and of the last run is an adaptive composition.
        Its parts are the trials' guarantees, the exponential mechanism's, and one that covers the last run of each,
        wherever it begins. The output is a function of it.
        Source: docs/theory/portfolio.md, Theorem 1.
        """
        return compose(compose(*self.training, self.last), self.choice.guarantee)


def portfolio_of(
    makes: Sequence[Callable[[float], Guarantee]],
    choice: ExponentialMechanism,
    *,
    epsilon: float,
    delta: float,
    beside: Guarantee | None = None,
) -> PortfolioPrice:
    """The least noises with which candidates meet a total. `makes` give the guarantee of each training at a noise.

    Raises `BudgetError` if no noise does.
    """

    def offer(scale: float) -> PortfolioPrice:
        def noises(shares: Sequence[float]) -> tuple[float, ...]:
            return tuple(_noise(make, scale, share, delta) for make, share in zip(makes, shares, strict=True))

        trials, last = noises(trial_shares(len(makes))), noises([1.0 - TRIALS] * len(makes))
        training, finals = (
            tuple(make(noise) for make, noise in zip(makes, found, strict=True)) for found in (trials, last)
        )
        return PortfolioPrice(trials, training, choice, last, covering(finals))

    found = least_noise(
        "the candidates",
        lambda scale: SearchPrice((offer(scale).guarantee,), Fixed(count=1), beside),
        epsilon=epsilon,
        delta=delta,
    )
    price = offer(found)
    ahead = math.floor(HEAD_START / max(_cost(price.training[0], delta), _LEAST))
    return replace(price, ahead=ahead)


def trial_shares(candidates: int) -> tuple[float, ...]:
    """The share of the training squares that each trial has, the first candidate's first."""
    other = TRIALS / (FIRST + candidates - 1)
    return (FIRST * other, *[other] * (candidates - 1))


def covering(guarantees: Sequence[Guarantee]) -> Guarantee:
    """A guarantee that each of them has: of Gaussian mechanisms the largest, else the pointwise maximum."""
    mus = [each.gaussian_mu for each in guarantees]
    if None in mus:
        return worst_of(*guarantees)
    return guarantees[int(np.argmax(np.array(mus, dtype=np.float64)))]


def _noise(make: Callable[[float], Guarantee], scale: float, share: float, delta: float) -> float:
    """The noise with which a candidate costs this share of the squares, or of epsilon if there is no delta."""
    most = share / scale if delta == 0.0 else math.sqrt(share) / scale
    try:
        return ParameterSearch(most).least(lambda noise: _cost(make(noise), delta), start=1.0)
    except ArgumentError as error:  # parameters have limits of their own
        raise BudgetError(str(error)) from None


def _cost(guarantee: Guarantee, delta: float) -> float:
    """The parameter of a Gaussian mechanism that is as private at `delta`, or without delta epsilon itself."""
    if guarantee.gaussian_mu is not None and delta > 0.0:
        return guarantee.gaussian_mu
    found = guarantee.epsilon(delta)
    if delta == 0.0 or not 0.0 < found < math.inf:
        return found
    return 1.0 / calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=found, delta=delta)
