"""Choosing hyperparameters with training data and validation data (Liu, Talwar 2019, Section 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, SupportsFloat

from dpselect.accounting import best_of
from dpselect.errors import flag, integer, number
from dpselect.mechanisms import Mechanism, NoisyCount
from dpselect.privacy import Guarantee, Release, compose, worst_of
from dpselect.privacy.promises import hold_promises, promise, refusal
from dpselect.randomness import RandomSource
from dpselect.repetitions import Repetitions
from dpselect.selection.best import best_outcome
from dpselect.selection.candidates import Candidate, or_nothing, output_of
from dpselect.selection.rehearsal import check_function

__all__ = [
    "SelectHyperparameters",
    "Tuned",
    "TwoSetGuarantee",
    "TwoSetRelease",
    "tuning_candidate",
    "two_set_guarantee",
]


@dataclass(frozen=True, kw_only=True)
class TwoSetGuarantee:
    """The cost of a search for people in the training data, people in the validation data, and anyone.

    Attributes:
        training: for a person in the training data only.
        validation: for a person in the validation data only.
        total: for everyone: the larger of the two, or the price of being in both where the sets may overlap.
    """

    training: Guarantee
    validation: Guarantee
    total: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "training", "validation", "total")


@dataclass(frozen=True, kw_only=True)
class TwoSetRelease(Release):
    """A release whose price differs between the two data sets. `guarantee` is that of everyone."""

    training: Guarantee
    validation: Guarantee

    def __post_init__(self) -> None:
        super().__post_init__()
        hold_promises(self, "training", "validation")


@dataclass(frozen=True)
class Tuned:
    """The winner: which candidate, its model and its noisy number of correct rows."""

    candidate: int
    model: Any
    noisy_correct: int


def two_set_guarantee(
    price: Callable[[Guarantee], Guarantee], *, training: Guarantee, validation: Guarantee, may_overlap: bool
) -> TwoSetGuarantee:
    """Return the costs of a search for the two data sets apart and together, from its cost as a function of its base.

    One run trains with `training` on one data set and scores with `validation` on the other. For a fixed validation set
    the run is `training`-private in the training set, and the other way round. One person in both sets pays for their
    composition. With disjoint sets everyone pays one of the two.

    Source: Liu, Talwar 2019, Lemma 5.1.

    Args:
        price: a function from the guarantee of one run to the guarantee of the search. It sees public numbers only.
        training: the guarantee of one training run, in the training data.
        validation: the guarantee of the score, in the validation data.
        may_overlap: whether one person may be in both sets. For False you must ensure that the sets are disjoint row by
            row, without looking at the content of the rows.

    Returns:
        A `TwoSetGuarantee`, with the cost for the training set, for the validation set and in total.

    Raises:
        AdjacencyError: if adjacencies differ.
        PromiseError: if `price` is not a function, or `training`, `validation` or a result of `price` is not a
            `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Geometric
    >>> def price(base):
    ...     return best_of(base, Geometric(gamma=0.01), bound="pure")
    >>> first, second = pure_dp(epsilon=1), pure_dp(epsilon=0.5)
    >>> apart = two_set_guarantee(price, training=first, validation=second, may_overlap=False)
    >>> [round(g.epsilon(delta=0), 2) for g in (apart.training, apart.validation, apart.total)]
    [2.95, 1.48, 2.95]
    """
    if not callable(price):
        raise refusal("price", price, "a function from a base to the Guarantee of the search")
    training, validation = promise("training", training), promise("validation", validation)
    first, second = price(training), price(validation)
    both = price(compose(training, validation)) if may_overlap else worst_of(first, second)
    return TwoSetGuarantee(training=first, validation=second, total=both)


def tuning_candidate(
    train: Callable[[int, RandomSource], Any],
    *,
    candidates: int,
    correct: Callable[[Any], int],
    validation_epsilon: SupportsFloat,
) -> Candidate:
    """One run for any selector: draw a candidate uniformly, train it, count correct validation rows, add noise.

    The score is the noisy count, discrete Laplace noise of scale 1/validation_epsilon: divided by the number of rows n
    it is an accuracy with noise 1/(n validation_epsilon). The output is a `Tuned`.
    """
    if not callable(train):
        raise TypeError("train must be callable: train(candidate, random) -> model")
    if not callable(correct):
        raise TypeError("correct must be callable: correct(model) -> number of correct validation rows")
    count = integer("candidates", candidates, at_least=1, at_most=1 << 1000)
    epsilon = number("validation_epsilon", validation_epsilon, at_least=2.0**-60, at_most=2.0**60, rounding="down")
    noise = NoisyCount(epsilon=epsilon)

    def candidate(random: RandomSource) -> tuple[float, Tuned]:
        index = random.below(count)
        model = train(index, random)
        noisy = noise.draw(correct(model), random=random)
        return float(noisy), Tuned(index, model, noisy)

    return candidate


@dataclass(frozen=True, kw_only=True)
class SelectHyperparameters(Mechanism):
    """A search that trains K candidates drawn with replacement, and releases the best model by noisy validation.

    The candidates are 0 .. candidates-1. A call takes two functions, `train` and `correct`. `train(i, random)` is a
    private training run on the training data. It is called for the candidates drawn only, so there may be any number.

    `correct(model)` counts correct rows of the validation data. One row moves it by at most one, and it fails for no
    data (you must ensure this). `rehearse` in the call searches the code of both functions for names that are defined
    nowhere, before anything is drawn.

    The value is a `Tuned` or None. The model is released with the cost for both data sets apart (`training`,
    `validation`) and for everyone (`guarantee`). For other selectors use `tuning_candidate` and `two_set_guarantee`.

    Args:
        candidates: the number of candidates, at least 1, public.
        repetitions: the distribution of K, public.
        training: the guarantee of `train(i, random)` for every i, with its failure (you must ensure this).
        validation_epsilon: the epsilon of one noisy count of correct rows, from 2**-60 to 2**60.
        may_overlap: whether one person may be in both data sets. Then `guarantee` covers the sum of both costs inside
            the search, else the larger one.

    Raises:
        ArgumentError: if an argument does not fit. It names the argument. `candidates` and `validation_epsilon` are
            checked when the search is called.
        TypeError: if `train`, `correct` or another argument is of another type. It names the argument.
        PromiseError: if `training` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Geometric
    >>> select = SelectHyperparameters(candidates=100_000, repetitions=Geometric(gamma=0.1),
    ...                                training=pure_dp(epsilon=0.5), validation_epsilon=0.5, may_overlap=False)
    >>> release = select(lambda i, random: i * i, lambda model: min(model, 900))
    >>> release.value.model == release.value.candidate**2, round(release.training.epsilon(delta=0), 3)
    (True, 1.313)
    """

    candidates: int
    repetitions: Repetitions
    training: Guarantee
    validation_epsilon: float
    may_overlap: bool = True

    def __post_init__(self) -> None:
        hold_promises(self, "training")

    @cached_property
    def prices(self) -> TwoSetGuarantee:
        """For the two data sets apart and together."""
        return two_set_guarantee(
            lambda base: best_of(base, self.repetitions),
            training=self.training,
            validation=NoisyCount(epsilon=float(self.validation_epsilon), adjacency=self.training.adjacency).guarantee,
            may_overlap=self.may_overlap,
        )

    @property
    def guarantee(self) -> Guarantee:
        """For everyone."""
        total = self.prices.total
        return replace(
            total, theorem=f"private hyperparameter selection (Liu, Talwar 2019, Lemma 5.1): {total.theorem}"
        )

    def prepared(
        self, train: Callable[[int, RandomSource], Any], correct: Callable[[Any], int], *, rehearse: bool = True
    ) -> Callable[[RandomSource], Tuned | None]:
        """The search."""
        terms = {"candidates": self.candidates, "validation_epsilon": self.validation_epsilon}
        candidate = tuning_candidate(train, correct=correct, **terms)  # type: ignore[arg-type]
        if flag("rehearse", rehearse):
            check_function("train", train, ["candidate", "random"])
            check_function("correct", correct, ["model"])
        return lambda random: output_of(best_outcome(candidate, self.repetitions, random))

    def form(self, *data: Any) -> Callable[..., Release]:  # noqa: ARG002
        """A release with the prices of both data sets."""
        apart = partial(TwoSetRelease, training=self.prices.training, validation=self.prices.validation)
        return or_nothing(apart, self.repetitions.zero_probability)
