"""The second stage of a search in two: one run on all rows, with the settings that won and a noise of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpselect.accounting.planning.search_prices import SearchPrice, least_last
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.boundary import result_of
from dpselect.randomness import keyed_source
from dpselect.repetitions import Repetitions
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.recipe import Recipe
from dpselect.study.schema import Study

__all__ = ["SHARE", "SecondStage", "second_stage"]

SHARE: Final = 0.7
"""The share of epsilon that is kept for the second stage, where the study says none."""


@dataclass(frozen=True)
class SecondStage:
    """How the run on all rows is trained and what it costs; public. `first` is the noise of the search's runs."""

    recipe: Recipe
    noise: float
    searched: Recipe
    first: float

    @property
    def guarantee(self) -> Guarantee:
        """What it promises to every row; the same for every setting in the space."""
        return self.recipe.guarantee(self.noise)

    def carried(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that won, with those that depend on the noise and on the rows as the learner's rule has them."""
        carry = LEARNERS[self.recipe.kind].carry
        if carry is None:
            return dict(drawn)
        before = self.searched.estimator(self.first, drawn, None)
        return carry(dict(drawn), before.get_params(), self.recipe.estimator(self.noise, drawn, None).get_params())

    def trained(self, settings: Mapping[str, Any], rows: tuple[Array, NDArray[Any]], key: bytes) -> list[Array] | None:
        """The weights that these rows and this key give, the same at every call; None where training fails.

        That it fails is part of the private output.
        """

        def run() -> list[Array]:
            with threadpool_limits(1):
                model = self.recipe.estimator(self.noise, settings, keyed_source(key)).fit(*rows)
                return [np.asarray(weights) for weights in model.weights_]

        return result_of(run, None)


def second_stage(
    study: Study,
    recipe: Recipe,
    searched: tuple[Recipe, float],
    parts: Sequence[Guarantee],
    law: Repetitions,
    beside: Guarantee | None,
) -> SecondStage:
    """The stage whose noise is the least with which it, the search and what is paid `beside` meet the total.

    Claim: whatever setting wins, the search and the run on all rows are covered by the composition of their guarantees.
    Source: docs/theory/portfolio.md, Theorem 2.

    `parts` are what one run of the search costs a row. Raises `BudgetError` where no noise does.
    """
    first = [SearchPrice((part,), law).guarantee for part in parts]
    if beside is not None:
        first = [compose(each, beside) for each in first]
    total, delta = study.privacy.epsilon, study.privacy.delta
    assert total is not None
    return SecondStage(recipe, least_last(recipe.guarantee, first, epsilon=total, delta=delta), *searched)
