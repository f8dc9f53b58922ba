"""A portfolio: a few unlike candidates are tried once each on the same rows, and the best is trained further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.planning.portfolio import CHOICE, PortfolioPrice, portfolio_of
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource
from dpselect.repetitions import Fixed
from dpselect.searching.design import Design, DesignPrice, PriceRequest, search_design

__all__ = ["CandidateTrials", "Portfolio", "Rows", "TrialModel"]

Rows = tuple[Any, Any]


@search_design("portfolio")
@dataclass(frozen=True, kw_only=True)
class Portfolio(Design):
    """Each listed candidate is tried once at a small share of the total, and the best is trained with the rest."""

    whole: ClassVar[str] = "portfolio"
    draws: ClassVar[bool] = False
    tries: ClassVar[bool] = True

    def price(self, request: PriceRequest) -> DesignPrice:
        """The noises of the trials and of the last run with which all of it meets the total.

        Claim: as `PortfolioPrice.guarantee` says. Source: docs/theory/portfolio.md, Theorem 1.
        """
        epsilon, delta = request.total
        trials, choice = request.trials(), request.choice(epsilon / CHOICE)
        found = portfolio_of(trials, choice, epsilon=epsilon, delta=delta, beside=request.beside)
        parts, score, multiplier = request.scored(found.guarantee)
        return DesignPrice(
            repetitions=Fixed(count=1),
            noise=found.noises[0],
            parts=parts,
            score_epsilon=score,
            score_multiplier=multiplier,
            portfolio=found,
        )


@dataclass(frozen=True, repr=False)
class TrialModel:
    """The trial from which a last run may continue: its model and its noise."""

    model: Any
    noise: float


Fit = Callable[[float, RandomSource, Rows, TrialModel | None], Any]
"""A model from its noise, the source of all that it draws, the rows and labels, and for the last run its trial."""


@dataclass(frozen=True, repr=False)
class CandidateTrials:
    """Tries every candidate on the rows, chooses, and trains that one. Nothing is drawn but from the source.

    `fits` train the candidates. The first number of `agreement(model, rows, labels)` is the sum that is compared.
    `size` returns the number of weights of a trial's model, if it is known. `rows` is the public number of rows.
    """

    fits: Sequence[Fit]
    price: PortfolioPrice
    agreement: Callable[[Any, Any, Any], NDArray[np.int64]]
    size: Callable[[Any], float | None] = lambda _: None
    rows: float | None = None

    def __call__(self, params: Mapping[str, Any], random: RandomSource, rows: Rows) -> tuple[Any, tuple[Array, ...]]:  # noqa: ARG002
        """The model of the last run, and its place among the candidates."""
        source = random.spawn("train")
        models = [
            fit(noise, source.spawn(place), rows, None)
            for place, (fit, noise) in enumerate(zip(self.fits, self.price.trials, strict=True))
        ]
        found = [float(self.agreement(model, *rows)[0]) for model in models]
        for rank, start in enumerate(self.price.starts([self.size(model) for model in models], self.rows)):
            found[rank] += start * float(self.price.choice.sensitivity)
        place = self.price.choice(found, random=random.spawn("choice")).value
        trial = TrialModel(models[place], self.price.trials[place])
        model = self.fits[place](self.price.noises[place], random.spawn("last"), rows, trial)
        return model, (np.array(float(place)),)
