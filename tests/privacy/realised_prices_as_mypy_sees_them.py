"""Misuse of a realised price that mypy must report. `./check` reads this file, and nothing runs it.

Every line below is wrong. Where mypy no longer sees that, its `type: ignore` is unused, which fails `./check`.
"""

from collections.abc import Sequence
from typing import Any

from dpselect.accounting import adaptive_best_of, best_of, calibrate, gated, iterative, plan, threshold_stopping
from dpselect.learners import GatedRelease
from dpselect.ledger import Budget
from dpselect.privacy import Guarantee, Release, Spender, compose, worst_of
from dpselect.privacy.output.guarantee import RealisedPrice
from dpselect.repetitions import Repetitions
from dpselect.selection import PrivateCandidate, SelectIncreasing, select_best
from dpselect.tuning import tune


def misuse(paid: RealisedPrice, law: Repetitions, train: Any, budget: Budget, spender: Spender) -> None:
    """All of it."""
    compose(paid)  # type: ignore[arg-type]
    worst_of(paid)  # type: ignore[arg-type]
    best_of(paid, law)  # type: ignore[arg-type]
    adaptive_best_of(paid, law, lower_ratio=0.5, upper_ratio=2.0)  # type: ignore[arg-type]
    threshold_stopping(paid, stop_probability=0.1)  # type: ignore[arg-type]
    gated(paid, test_epsilon=0.1, test_shift=0.01)  # type: ignore[arg-type]
    plan(base=paid, delta=1e-6)  # type: ignore[arg-type]
    calibrate(lambda _: paid, epsilon=1.0, delta=1e-6)  # type: ignore[arg-type, return-value]
    iterative([paid], stops=[1], delta=1e-6)  # type: ignore[list-item]
    iterative(lambda _: paid, stops=[1], delta=1e-6)  # type: ignore[arg-type, return-value]
    SelectIncreasing(levels=[paid], repetitions=law).guarantee  # type: ignore[list-item]
    select_best(train, repetitions=law, guarantee=paid)  # type: ignore[arg-type]
    PrivateCandidate(train, paid)  # type: ignore[arg-type]
    GatedRelease(training=paid, max_error=0.1, test_epsilon=0.1, test_shift=0.01)(train, train)  # type: ignore[arg-type]
    tune(train, space={}, base=paid)  # type: ignore[arg-type]
    budget.reserve(paid, label="misuse")  # type: ignore[arg-type]
    spender.reserve(paid, label="misuse", identifier="misuse")  # type: ignore[arg-type]
    Release(value=None, guarantee=paid)  # type: ignore[arg-type]
    promised: Guarantee = paid  # type: ignore[assignment]
    several: Sequence[Guarantee] = [paid]  # type: ignore[list-item]
    paid.dominating_pair()  # type: ignore[attr-defined]
    paid.renyi(order=2.0)  # type: ignore[attr-defined]
    del promised, several


def use(release: Release) -> tuple[Guarantee, float]:
    """What is right: the promise composes, the realised price is looked at."""
    price = 0.0 if release.realised is None else release.realised.epsilon(delta=1e-6)
    return compose(release.guarantee, release.guarantee), price
