"""The second stage of a search in two: one run on all rows, with the settings that won and a noise of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.boundary import run_confined
from dpselect.randomness import keyed_source
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.recipe import Recipe, Training, trained

__all__ = ["SecondStage"]


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

    def trained(self, settings: Mapping[str, Any], rows: Training, key: bytes) -> list[Array] | None:
        """The weights that these rows and this key give, the same at every call; None where training fails.

        That it fails is part of the private output.
        """

        def run() -> list[Array]:
            with threadpool_limits(1):
                model = trained(self.recipe.estimator(self.noise, settings, keyed_source(key)), rows)
                return [np.asarray(weights) for weights in model.weights_]

        return run_confined(run, None)
