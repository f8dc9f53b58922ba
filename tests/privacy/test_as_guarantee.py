"""Every function that takes a guarantee takes the other kinds too, and charges the same for them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event as de

from dpselect import accounting, privacy, selection, tuning
from dpselect.accounting import best_of, calibrate, gated, iterative, plan, plan_subset
from dpselect.accounting.best_of_k.random_stopping import theorem_3_2
from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.errors import AdjacencyError, ArgumentError, PromiseError
from dpselect.ledger import Ledger
from dpselect.privacy import Guarantee, as_guarantee, compose, gaussian, pure_dp, worst_of
from dpselect.privacy.promises import hold_promises, one_or_several, promise_or_function
from dpselect.repetitions import Fixed, Geometric, Harmonic, Logarithmic
from dpselect.tuning import Categorical, tune

OURS = pure_dp(epsilon=0.5)
KINDS: dict[str, Any] = {
    "pair": (0.5, 0.0),
    "named": {"epsilon": 0.5},
    "event": de.LaplaceDpEvent(2.0),
    "our own": OURS,
}
LAW = Geometric(gamma=0.2)
FAMILY = Harmonic.families()[:1]
GOAL = {"epsilon": 4.0, "delta": 1e-6}


def noisy(value: Any) -> Callable[[float], Any]:
    """A base by its noise, of the same kind as `value`."""
    if isinstance(value, tuple):
        return lambda noise: (1.0 / noise, 0.0)
    if isinstance(value, dict):
        return lambda noise: {"epsilon": 1.0 / noise}
    return lambda noise: de.LaplaceDpEvent(noise) if isinstance(value, de.DpEvent) else pure_dp(epsilon=1.0 / noise)


DOORS: dict[str, Callable[[Any], Guarantee]] = {
    "as_guarantee": as_guarantee,
    "compose": lambda base: compose(base, OURS, base),
    "worst_of": lambda base: worst_of(base, pure_dp(epsilon=0.1)),
    "best_of": lambda base: best_of(base, LAW),
    "threshold_stopping": lambda base: accounting.threshold_stopping(base, stop_probability=0.1),
    "random stopping": theorem_3_2,
    "conditional_sampling": lambda base: conditional_sampling(base, floor=0.1),
    "mixture": lambda base: accounting.mixture([base, OURS]),
    "adaptive_best_of": lambda base: accounting.adaptive_best_of(base, LAW, lower_ratio=0.5, upper_ratio=2.0),
    "tune_on_subset": lambda base: accounting.tune_on_subset(search=base, final=base, sampling_rate=0.1),
    "gated": lambda base: gated(base, test_epsilon=0.1, test_shift=0.01, train_shift=0.005).worst(),
    "iterative": lambda base: iterative([base] * 2, stops=[1, 2], delta=1e-5, check=base).worst(),
    "SelectBest": lambda base: selection.SelectBest(repetitions=LAW, base=base).guarantee,
    "SelectAbove": lambda base: selection.SelectAbove(threshold=0.5, stop_probability=0.1, base=base).guarantee,
    "SelectAcceptable": lambda base: selection.SelectAcceptable(acceptable=max, floor=0.1, base=base).guarantee,
    "PrivateCandidate": lambda base: selection.PrivateCandidate(run=max, guarantee=base).guarantee,
    "Release": lambda base: privacy.Release(value=None, guarantee=base).guarantee,
    "SharedRelease": lambda base: tuning.SharedRelease(objective=max, guarantee=base).guarantee,
}


def near(found: Guarantee, ours: Guarantee) -> bool:
    """Whether two prices agree. A Laplace event is more exact than its epsilon, so it may cost less."""
    same = found.epsilon(0) == pytest.approx(ours.epsilon(0), rel=1e-9)
    return same and found.epsilon(1e-3) <= ours.epsilon(1e-3) * 1.01


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_a_door_takes_every_kind(door, kind):
    made, ours = DOORS[door](KINDS[kind]), DOORS[door](OURS)
    assert isinstance(made, Guarantee)
    if ours.epsilon(0) < float("inf"):
        assert near(made, ours)
    else:
        assert made.epsilon(1e-3) <= ours.epsilon(1e-3) * (1 + 1e-9)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_planners_take_every_kind(kind):
    base = noisy(KINDS[kind])
    noise = calibrate(base, epsilon=1.0, delta=1e-6)
    assert noise == pytest.approx(calibrate(noisy(OURS), epsilon=1.0, delta=1e-6), rel=1e-2)
    assert plan(base=base, success=(0.5, 0.9), **GOAL, families=FAMILY).best.epsilon <= 4.0
    assert plan(base=KINDS[kind], success=(0.5, 0.9), delta=1e-6, families=FAMILY).best.epsilon < 3.0
    assert plan_subset(base=base, repetitions=LAW, sampling_rates=(0.2,), **GOAL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_charges_the_same(tmp_path, kind):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("rows", epsilon=5, delta=1e-4)
    budget.reserve(KINDS[kind], label="run")
    budget.at(delta=1e-6).reserve(KINDS[kind], label="run", identifier="second")
    assert 0.99 < float(budget.spent().epsilon) <= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_paid_for_takes_every_kind(tmp_path, kind):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("rows", epsilon=0.6, delta=1e-4)
    release = selection.select_best(
        lambda random: (1.0, "x"), repetitions=Fixed(count=1), guarantee=KINDS[kind], spender=budget
    )
    assert release.value is not None


@pytest.mark.parametrize("base", [*KINDS.values(), [OURS], [OURS, de.LaplaceDpEvent(2.0)]], ids=repr)
def test_a_search_takes_every_kind(base):
    run = {"space": {"x": Categorical([1])}, "repetitions": Logarithmic.with_mean(mean=5)}
    found = tune(lambda params, random: (0.0, None), base=base, **run).guarantee.epsilon(delta=0)
    assert found == pytest.approx(best_of(OURS, run["repetitions"]).epsilon(delta=0), rel=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_of_scikit_learn_takes_every_kind(kind):
    sklearn = importlib.import_module("dpselect.integrations.sklearn")
    from sklearn.linear_model import LogisticRegression

    for base in (KINDS[kind], lambda _: KINDS[kind]):
        search = sklearn.PrivateSearchCV(
            LogisticRegression(), {"C": [1.0, 2.0]}, base=base, repetitions=LAW, score_epsilon=0.1
        )
        rows = np.random.default_rng(0).normal(size=(60, 2))
        assert search.fit(rows, np.repeat([0, 1], 30)).guarantee_.epsilon(0) > 0.5


def test_a_guarantee_is_itself():
    assert as_guarantee(OURS) is OURS
    assert as_guarantee(OURS, adjacency="add_or_remove_one") is OURS
    with pytest.raises(AdjacencyError, match="replace_one"):
        as_guarantee(OURS, adjacency="replace_one")
    with pytest.raises(AdjacencyError):
        compose(pure_dp(epsilon=1, adjacency="replace_one"), (1.0, 0.0))


def test_errors_name_the_argument():
    with pytest.raises(ArgumentError, match="base: delta"):
        best_of((1.0, 2.0), LAW)
    with pytest.raises(ArgumentError, match="base: event"):
        best_of(de.UnsupportedDpEvent(), LAW)
    with pytest.raises(PromiseError, match=r"base must be a Guarantee, got str\. Also taken"):
        best_of("gaussian", LAW)
    with pytest.raises(ArgumentError, match="NonPrivate"):
        compose(OURS, de.NonPrivateDpEvent())


def test_a_list_of_pairs_may_mean_two_things():
    pairs = [(1.0, 1e-6), (2.0, 1e-7)]
    assert as_guarantee(pairs).epsilon(1e-6) == 1.0  # a curve of one mechanism
    with pytest.raises(PromiseError, match="as_guarantee"):
        one_or_several("base", pairs)
    assert len(one_or_several("base", [OURS, {"rho": 0.1}])) == 2
    assert len(one_or_several("base", gaussian(noise_multiplier=1))) == 1
    for nothing in ([], (), None, "x"):
        with pytest.raises(PromiseError):
            one_or_several("base", nothing)


def test_a_function_is_handed_back():
    assert promise_or_function("base", max, "from x to y") is max
    assert isinstance(promise_or_function("base", (1.0, 0.0), "from x to y"), Guarantee)
    for wrong in (int, 3, "x"):
        with pytest.raises(PromiseError, match=r"function from x to y|pure_dp"):
            promise_or_function("base", wrong, "from x to y")


def test_attributes_are_kept_as_guarantees():
    scorer = selection.PrivateCandidate(run=max, guarantee=(1.0, 0.0))
    hold_promises(scorer, "guarantee")
    assert scorer.guarantee.epsilon(0) == 1.0
