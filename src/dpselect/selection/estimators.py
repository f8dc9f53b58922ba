"""Candidates from what already exists: private scikit-learn estimators, and mechanisms on scores.

A candidate is a private value and a score of it. The value comes from a fit or a mechanism with a guarantee. The score
is public if it reads only the value and public data. If it has its own guarantee, both are charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from dpselect.capabilities import Trainable
from dpselect.errors import ArgumentError, number
from dpselect.mechanisms import Mechanism, NoisyCount, discrete_laplace
from dpselect.mechanisms.grid import grid_at_most, round_to_grid
from dpselect.privacy import Adjacency, Guarantee, Spender, compose, pure_dp, worst_of
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.privacy.promises import hold_promises, promise
from dpselect.randomness import RandomSource
from dpselect.selection.candidates import PrivateCandidate

__all__ = [
    "Scorer",
    "estimator_candidate",
    "mechanism_candidate",
    "noisy_accuracy",
    "noisy_value",
    "public_score",
]

_STEPS = 2.0**20
"""Grid steps in one sensitivity of `noisy_value`: rounding costs a millionth of the noise."""


@dataclass(frozen=True, repr=False)
class Scorer:
    """How good a private value is: `score(value, random)`, larger is better.

    `guarantee` is the cost of one score beyond the value itself. None is for a score that needs no private row.
    """

    score: Callable[[Any, RandomSource], float]
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if self.guarantee is not None:
            hold_promises(self, "guarantee")

    def beside(self, value: object, *, disjoint_rows: bool) -> Guarantee:
        """The guarantee of a value and its score: composed, or the worse of the two on disjoint rows."""
        value = promise("value", value)
        if self.guarantee is None:
            return value
        return worst_of(value, self.guarantee) if disjoint_rows else compose(value, self.guarantee)


def public_score(score: Callable[[Any], float]) -> Scorer:
    """A score that looks at the value and at public data only (you must ensure this).

    >>> public_score(abs).score(-3.0, None)
    3.0
    """
    return Scorer(lambda value, _random: score(value))


def noisy_accuracy(
    X: Any,
    y: Any,
    *,
    epsilon: SupportsFloat,
    rows: SupportsFloat,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Scorer:
    """The share of rows of X that a classifier labels as in y, with integer Laplace noise on their number.

    `rows` is the public number that the count is divided by. A row's prediction must depend on that row alone, as
    scikit-learn's classifiers predict. One row changes the count by at most one: `NoisyCount`.
    """
    noise = NoisyCount(epsilon=number("epsilon", epsilon, above=0.0, rounding="down"), adjacency=adjacency)
    total = number("rows", rows, above=0.0)

    def score(model: Any, random: RandomSource) -> float:
        correct = int(np.count_nonzero(np.asarray(model.predict(X)) == np.asarray(y)))
        return float(noise.draw(correct, random=random) / total)

    return Scorer(score, noise.guarantee)


def noisy_value(
    values: ArrayLike,
    *,
    sensitivity: SupportsFloat,
    epsilon: SupportsFloat,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Scorer:
    """The entry of `values` at an index, with exact discrete Laplace noise on a grid: a score for a selected index.

    `sensitivity` bounds how far one entry moves between neighbours (you must ensure this). Entries are rounded to a
    grid of about 2**-20 sensitivities, which moves two of them apart by one step at most, and the noise covers that
    step. A value that is not a finite number counts as 0.

    >>> from dpselect.randomness import keyed_source
    >>> scorer = noisy_value([3.0, 90.0], sensitivity=1.0, epsilon=1.0)
    >>> abs(scorer.score(1, keyed_source(1)) - 90.0) < 20.0
    True
    """
    width = number("sensitivity", sensitivity, at_least=2.0**-300, at_most=2.0**300, rounding="up")
    price = pure_dp(
        epsilon=number("epsilon", epsilon, at_least=2.0**-30, at_most=2.0**30, rounding="down"), adjacency=adjacency
    )
    step = grid_at_most(width / _STEPS)
    # floor(x + 1/2) of two numbers d apart differ by at most d + 1 steps
    scale = (Fraction(width) / Fraction(step) + 1) / epsilon_used(price.pure_epsilon)
    steps = (round_to_grid(values, step) / step).astype(np.int64)

    def score(index: Any, random: RandomSource) -> float:
        return (int(steps[index]) + discrete_laplace(scale, random)) * step

    return Scorer(score, price)


@runtime_checkable
class _Paying(Protocol):
    @property
    def spender(self) -> Spender | None: ...


def estimator_candidate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    scorer: Scorer,
    guarantee: Guarantee | None = None,
    disjoint_rows: bool = False,
) -> PrivateCandidate:
    """Fit a private scikit-learn estimator afresh, and score it: a candidate whose output is the fitted estimator.

    Each run fits a clone. Its parameters called `random` get the run's source, those called `random_state` a NumPy
    generator seeded with 256 bits of it. Both are None again in the released estimator. An estimator with neither draws
    from somewhere else, and its runs must still be independent (you must ensure this).

    `guarantee` is that of one fit. None reads it from the estimator: `estimator.guarantee()`, which the learners of
    this library answer before they see data, or `estimator.guarantee_`. `disjoint_rows` says that no row is both in X
    and in what the scorer reads, decided row by row without the data. A row then pays for one of them only.

    Raises `TypeError` if there is no guarantee or no `fit`. Raises `ArgumentError` if a parameter (early stopping, say)
    would pay for every run by itself, because its record would show the number of runs.
    """
    if not isinstance(estimator, Trainable):
        raise TypeError("estimator must have fit and get_params")
    if any(
        isinstance(value, _Paying) and value.spender is not None for value in estimator.get_params(deep=True).values()
    ):
        raise ArgumentError("estimator must have no spender: a search is reserved once, for all of its runs")
    stated = _stated(estimator) if guarantee is None else promise("guarantee", guarantee)
    price = scorer.beside(stated, disjoint_rows=disjoint_rows)

    def run(random: RandomSource) -> tuple[float, Any]:
        fresh = clone(estimator)
        sources = _sources(fresh)
        fresh.set_params(**{name: make(random) for name, make in sources.items()})
        fresh.fit(X, y)
        fresh.set_params(**dict.fromkeys(sources))
        return scorer.score(fresh, random), fresh

    return PrivateCandidate(run, price)


def mechanism_candidate(
    mechanism: Mechanism, data: Any, *, scorer: Scorer, disjoint_rows: bool = False
) -> PrivateCandidate:
    """Run a mechanism on its data, and score what it gave: a candidate whose output is the mechanism's.

    >>> from dpselect.mechanisms import PermuteAndFlip
    >>> errors = [-30.0, -2.0, -45.0]
    >>> scorer = noisy_value(errors, sensitivity=1.0, epsilon=0.5)
    >>> candidate = mechanism_candidate(PermuteAndFlip(sensitivity=1.0, epsilon=0.5), errors, scorer=scorer)
    >>> candidate.guarantee.epsilon(delta=0)
    1.0
    """
    price = scorer.beside(mechanism.guarantee, disjoint_rows=disjoint_rows)

    def run(random: RandomSource) -> tuple[float, Any]:
        output = mechanism.draw(data, random=random)
        return scorer.score(output, random), output

    return PrivateCandidate(run, price)


def _stated(estimator: Any) -> Guarantee:
    stated = getattr(estimator, "guarantee", None) or getattr(estimator, "guarantee_", None)
    found = stated() if callable(stated) else stated
    if not isinstance(found, Guarantee):
        raise TypeError("guarantee must be given: the estimator states none")
    return found


def _numpy_state(random: RandomSource) -> np.random.RandomState:
    # an integer seed would be 32 bits, few enough to try them all
    return np.random.RandomState(np.random.MT19937(random.bits(256)))


_KINDS: dict[str, Callable[[RandomSource], Any]] = {
    "random": lambda random: random,  # itself: `spawn` of a keyed one would give every run the same stream
    "random_state": _numpy_state,
}


def _sources(estimator: Any) -> dict[str, Callable[[RandomSource], Any]]:
    """The parameters that draw, nested ones too, by the name that `set_params` takes."""
    names = {name: name.rsplit("__", 1)[-1] for name in estimator.get_params(deep=True)}
    return {name: _KINDS[last] for name, last in names.items() if last in _KINDS}
