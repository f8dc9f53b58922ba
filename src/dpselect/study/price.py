"""What a study costs: the noise that makes the whole search meet its total, settled from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.accounting import best_of, calibrate
from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.mechanisms import noisy_count_guarantee
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import Guarantee, worst_of
from dpselect.repetitions import Repetitions
from dpselect.study.learners import Recipe
from dpselect.study.schema import Study

__all__ = ["Price", "price_study"]


@dataclass(frozen=True)
class Price:
    """The noise and the guarantees of a study.

    `parts` are the guarantees of one run towards a row that trains and towards a row that validates: a row is in one
    part only, so one run costs it the larger, and the whole search the larger of the two finished curves.
    """

    noise: float
    score_epsilon: float | None
    parts: tuple[Guarantee, ...]
    search: Guarantee
    epsilon: float
    delta: float

    @property
    def single(self) -> Guarantee:
        """What one run costs a row, whichever part it is in."""
        return worst_of(*self.parts)


def price_study(study: Study, recipe: Recipe, law: Repetitions) -> Price:
    """Calibrate the noise of training and of the score; raises `BudgetError` when no noise meets the total."""
    privacy, validation = study.privacy, study.validation
    total, delta = privacy.epsilon, privacy.delta
    if total is not None:
        noise = _calibrated("the learner", lambda value: best_of(recipe.guarantee(value), law), total, delta)
    else:
        assert privacy.noise_multiplier is not None
        if recipe.kind != "dp-sgd":
            raise StudyError(f"privacy.noise_multiplier: learner {recipe.kind!r} has none; give epsilon")
        noise = privacy.noise_multiplier
        total = best_of(recipe.guarantee(noise), law).epsilon(delta)
        if not total < float("inf"):
            raise BudgetError("privacy: nothing is guaranteed at this noise_multiplier and delta")
    parts = [recipe.guarantee(noise)]
    score_epsilon = None
    if validation.data == "private":
        score_epsilon = validation.score_epsilon
        if score_epsilon is None:
            score_epsilon = 1.0 / _calibrated(
                "the score",
                # the pure bound is exact, and all that a pure score needs
                lambda scale: best_of(
                    noisy_count_guarantee(epsilon=1.0 / scale, adjacency=privacy.adjacency), law, bound="pure"
                ),
                total,
                delta,
            )
        parts.append(noisy_count_guarantee(epsilon=score_epsilon, adjacency=privacy.adjacency))
    search = worst_of(*[best_of(part, law) for part in parts])
    epsilon = search.epsilon(delta)
    if privacy.epsilon is not None and epsilon > privacy.epsilon:
        raise BudgetError(
            f"the search costs epsilon {rounded_up(epsilon)} at delta {delta:g}, above the total {privacy.epsilon:g}: "
            "raise epsilon or lower validation.score_epsilon"
        )
    return Price(noise, score_epsilon, tuple(parts), search, epsilon, delta)


def _calibrated(what: str, make: object, epsilon: float, delta: float) -> float:
    try:
        return calibrate(make, epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    except ArgumentError as error:
        raise BudgetError(f"no noise of {what} meets epsilon {epsilon:g} at delta {delta:g}: {error}") from None
