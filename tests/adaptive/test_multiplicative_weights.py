"""Private multiplicative weights: plans, prices, answers, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpselect.adaptive.multiplicative_weights import MultiplicativeWeights, WeightsPlan, plan_multiplicative_weights
from dpselect.errors import ArgumentError, BudgetError, ContentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source


@pytest.mark.full
def test_multiplicative_weights_grow_with_the_logarithm_of_the_questions() -> None:
    plans = [
        plan_multiplicative_weights(queries=k, universe=11, grid_size=11, failure_probability=0.05)
        for k in (100, 10_000, 1_000_000)
    ]
    assert all(plan.certified for plan in plans)
    assert plans[2].blocks - plans[1].blocks < 1.01 * (plans[1].blocks - plans[0].blocks)
    assert not replace(plans[0], epsilon=plans[0].epsilon * 1.1).certified
    with pytest.raises(ArgumentError, match="universe"):
        plan_multiplicative_weights(queries=10, universe=10**7, grid_size=11, failure_probability=0.05)


@pytest.mark.full
def test_multiplicative_weights_answer_and_refuse() -> None:
    plan = plan_multiplicative_weights(queries=5, universe=11, grid_size=11, failure_probability=0.05)
    data = np.random.default_rng(0).binomial(10, 0.3, plan.blocks)
    session = MultiplicativeWeights(
        data, universe=11, queries=5, grid_size=11, failure_probability=0.05, random=keyed_source(1)
    )
    assert session.estimate(np.arange(11), lower=0, upper=10, granularity=1).value in (2, 3, 4)
    assert session.estimate(-np.arange(11.0), lower=-10, upper=0, granularity=1).value in (-2, -3, -4)
    updates, each = session.plan.updates, pure_dp(epsilon=session.plan.epsilon)
    assert session.row_privacy.epsilon(0.0) == pytest.approx(updates * each.epsilon(0.0))
    assert session.row_privacy.renyi(2.0) < 0.35 * updates * each.renyi(2.0)
    with pytest.raises(ArgumentError, match="every code"):
        session.estimate(np.arange(10), lower=0, upper=10, granularity=1)
    with pytest.raises(ArgumentError, match="needs"):
        MultiplicativeWeights(data[:100], universe=11, queries=5, grid_size=11, failure_probability=0.05)
    with pytest.raises(ContentError, match="integers"):
        MultiplicativeWeights([0, 99], universe=11, queries=5, grid_size=11, failure_probability=0.05)
    for _ in range(3):
        session.estimate(np.arange(11), lower=0, upper=10, granularity=1)
    with pytest.raises(BudgetError):
        session.estimate(np.arange(11), lower=0, upper=10, granularity=1)


def plan(**changes):
    # by hand: one update of epsilon 0.01, a universe that a gap of 0.1 learns in one step
    fixed = {
        "queries": 1,
        "universe": 2,
        "grid_size": 2,
        "rank": 0.25,
        "failure_probability": 0.5,
        "blocks": 1_000_000,
        "error": 0.2,
        "accuracy_failure": 1e-3,
        "updates": 35,
        "epsilon": 0.01,
    }
    return WeightsPlan(**{**fixed, **changes})


def test_a_certificate_needs_every_one_of_its_inequalities() -> None:
    assert plan().certified
    assert not plan(blocks=1000).certified  # noise above the gap
    assert not plan(updates=34).certified  # log(2) / (2 * 0.1^2) is 34.7
    assert not plan(epsilon=0.1).certified  # the transfer bound
    assert not plan(error=0.51).certified


def test_a_contradiction_costs_an_update_and_moves_the_public_distribution() -> None:
    session = MultiplicativeWeights.__new__(MultiplicativeWeights)
    session._random, session._spender, session._label = keyed_source(1), None, "test"
    session._plan, session._updates, session._run = plan(), 0, None
    session._counts, session._law = np.array([900_000, 100_000]), np.array([0.5, 0.5])
    first = np.array([True, False])
    assert session._share(first) == pytest.approx(0.9, abs=0.01)  # measured
    assert session._updates == 1
    moved = np.exp(2 * 0.2)
    assert session._law.tolist() == pytest.approx([moved / (moved + 1), 1 / (moved + 1)])
    session._law = np.array([0.9, 0.1])
    assert session._share(first) == 0.9  # the public distribution's own: nothing is used
    assert session._updates == 1
    session._updates, session._run = 35, None
    with pytest.raises(BudgetError, match="all updates"):
        session._share(first)
