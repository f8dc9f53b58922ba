"""What sparse vectors promise, pay and give back by the value of their game."""

import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import Ledger, fold
from dpselect.mechanisms import SparseRelease, SparseVector, balanced_split, plan_sparse_vector
from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.profile import _deltas
from dpselect.mechanisms.sparse_vector_game.renyi import GameRenyi, GameUsed
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.privacy import OutputGuarantee, laplace, pure_dp
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.randomness import keyed_source

HUNDRED = {"epsilon_threshold": 0.03, "epsilon_queries": 5, "max_positives": 100}


@pytest.mark.full
def test_a_session_promises_the_value_of_its_game():
    promised = SparseVector(**HUNDRED).guarantee.worst()
    assert promised.epsilon(delta=1e-6) <= 1.585
    assert promised.epsilon(delta=0) == 5.03
    assert promised.interactive
    assert SparseVector(**HUNDRED).refined_guarantee.worst().epsilon(delta=1e-6) == promised.epsilon(delta=1e-6)
    monotonic = SparseVector(**HUNDRED, monotonic=True).guarantee.worst()
    assert promised.epsilon(1e-6) < monotonic.epsilon(1e-6) <= 1.603
    few = SparseVector(**HUNDRED, max_queries=20).guarantee.worst()
    assert few.epsilon(1e-6) < 0.9
    # which noise was drawn is not known: the larger of both prices is the pure one
    unknown = sparse_vector_guarantee(**HUNDRED)
    assert unknown.worst().epsilon(1e-6) > 5.0


def test_refunds_are_pure_and_the_curve_is_never_refunded(tmp_path):
    with Ledger.open(str(tmp_path / "ledger.db")) as ledger:
        budget = ledger.create_budget("pure", epsilon=10, delta=1e-6)
        sv = SparseVector(**HUNDRED, spender=budget)
        assert float(budget.spent().epsilon) == 5.03
        with pytest.raises(ArgumentError, match="delta"):
            budget.reserve(SparseVector(**HUNDRED).guarantee, label="a point of the curve", delta=1e-6)
        sv.above(1e9, 0.0)
        sv.close()
        assert float(budget.spent().epsilon) == 0.08
        divergences = ledger.create_budget("renyi", epsilon=2, delta=1e-6, accounting="renyi")
        divergences.reserve(SparseVector(**HUNDRED).guarantee.worst(), label="the curve alone", identifier="curve")
        before = divergences.spent()
        divergences.settle("curve")
        assert divergences.spent() == before
        assert 1.0 < float(before.epsilon) < 2.5  # the odometer


@pytest.mark.parametrize("refined", [False, True])
def test_positives_that_never_come_are_given_back_by_divergences(tmp_path, refined):
    game = SparseVectorGame(threshold_rate=0.03, query_rate=0.025, positives=100)

    def spent(budget, positives, negatives):
        sv = SparseVector(**HUNDRED, spender=budget, refined=refined)
        whole = budget.spent().units
        if positives + negatives:
            sv.above_many([1e9] * positives + [-1e9] * negatives, 0.0)
        sv.close()
        return whole, budget.spent().units

    with Ledger.open(str(tmp_path / "ledger.db")) as ledger:
        for positives, negatives, used in ((0, 5, 0), (3, 4, 3), (99, 1, 99), (100, 0, 100)):
            name = f"renyi {positives}"
            budget = ledger.create_budget(name, epsilon=2, delta=1e-6, accounting="renyi")
            whole, left = spent(budget, positives, negatives)
            units = [unit for unit in whole if unit != "failure"]
            orders = np.array([float(unit.removeprefix("order ")) for unit in units])
            told = [float(left[unit]) for unit in units]
            assert told == pytest.approx(GameUsed(game)(used, orders), rel=1e-10)
            assert [float(whole[unit]) for unit in units] == pytest.approx(GameRenyi(game)(orders), rel=1e-10)
            assert all(left[unit] <= whole[unit] for unit in units)
            assert (left == whole) == (positives == 100)
        # many short sessions fit where two whole ones do not
        for _ in range(5):
            spent(ledger.budget("renyi 3"), 1, 0)
        with pytest.raises(BudgetError):
            SparseVector(**HUNDRED, spender=ledger.budget("renyi 100"))
        if refined:
            budget = ledger.create_budget("none", epsilon=2, delta=1e-6, accounting="renyi")
            assert not any(spent(budget, 0, 0)[1].values())
        # where the pure epsilon was the smaller bound it stays
        for divergence, left in ((2.0, 0.3), (0.25, 0.0)):
            curve = dataclasses.replace(pure_dp(epsilon=0.3), renyi_curve=lambda orders, d=divergence: d + 0.0 * orders)
            priced = OutputGuarantee(
                cell=bool, epsilons={True: 0.3}, ordinary=curve, used=lambda _, orders: 0.0 * orders
            )
            budget = ledger.create_budget(f"at {divergence}", epsilon=3, delta=1e-6, accounting="renyi", orders=[40.0])
            budget.reserve(priced, label="used up or not").settle(True)
            assert float(budget.spent().units["order 40.0"]) == left
        concentrated = ledger.create_budget("zcdp", epsilon=60, delta=1e-6, accounting="renyi", filter="zcdp")
        assert len(set(map(str, spent(concentrated, 1, 1)))) == 1
        assert ledger.verify()


def test_an_entry_gives_back_no_more_than_divergences_of_steps():
    reserved = {"charge": {"order 4.0": "2", "failure": "1/100"}, "cells": {}}
    entry = {"charge": {"order 4.0": "1/2", "failure": "1/100"}}
    assert fold._unused(reserved, entry, True) == {"order 4.0": -Fraction(3, 2), "failure": 0}
    for changed, filtered in (({}, False), ({"cells": None}, True), ({"cells": {"0": "1"}}, True)):
        with pytest.raises(ArgumentError, match="nothing comes back"):
            fold._unused({**reserved, **changed}, entry, filtered)
    for charge in ({"order 4.0": "3", "failure": "1/100"}, {"order 4.0": "-1", "failure": "1/100"}, {"order 4.0": "1"}):
        with pytest.raises(ArgumentError, match="not part"):
            fold._unused(reserved, {"charge": charge}, True)
    with pytest.raises(ArgumentError, match="only divergences"):
        fold._unused(reserved, {"charge": {"order 4.0": "1", "failure": "0"}}, True)


def test_positives_are_charged_one_by_one_by_divergences(tmp_path):
    """Without noise on thresholds, sessions of one positive cost together what one of all positives costs."""
    each = {"epsilon_threshold": None, "epsilon_queries": 0.04, "max_positives": 1}
    with Ledger.open(str(tmp_path / "ledger.db")) as ledger:
        apart = ledger.create_budget("apart", epsilon=2, delta=1e-6, accounting="renyi")
        for _ in range(20):
            with SparseVector(**each, spender=apart) as sv:
                sv.above(1e9, 0.0)
        whole = ledger.create_budget("whole", epsilon=2, delta=1e-6, accounting="renyi")
        SparseVector(epsilon_threshold=None, epsilon_queries=0.8, max_positives=20, spender=whole).close()
        assert float(apart.spent().epsilon) == pytest.approx(float(whole.spent().epsilon), rel=1e-6)
        # 20 positives attain 20 randomised responses of epsilon 0.02 (Theorem 5): a charge for 5 of them is false
        game, order = SparseVectorGame(query_rate=0.02, positives=20), np.array([8.0])
        attained = 20 * RandomizedResponseRenyi(0.02)(order)[0]
        assert GameRenyi(dataclasses.replace(game, positives=5))(order)[0] < attained < GameRenyi(game)(order)[0]


def test_a_threshold_without_noise(tmp_path):
    sure = {"epsilon_threshold": None, "epsilon_queries": 2 * 100 / 52.1, "max_positives": 100}
    sv = SparseVector(**sure, random=keyed_source(5))
    promised = sv.guarantee.worst()
    assert promised.epsilon(delta=0) == math.inf
    assert 1.35 < promised.epsilon(delta=1e-6) <= 1.361
    with pytest.raises(ArgumentError, match="epsilon_threshold"):
        sv.refined_guarantee
    positive = 0
    for seed in range(20):
        session = SparseVector(
            epsilon_threshold=None, epsilon_queries=2.0, max_positives=1000, random=keyed_source(seed)
        )
        positive += int(session.above_many(np.full(400, -200.0), 0.0).sum())
    # 8000 coins of probability exp(-200/1000)/2: four standard deviations are 176
    assert abs(positive - 8000 * 0.5 * math.exp(-0.2)) < 176
    with Ledger.open(str(tmp_path / "ledger.db")) as ledger:
        pure = ledger.create_budget("pure", epsilon=10)
        with pytest.raises(BudgetError):
            SparseVector(**sure, spender=pure)
        budget = ledger.create_budget("approximate", epsilon=2, delta=1e-6, delta_each=1e-6)
        with SparseVector(**sure, spender=budget) as paid:
            paid.above(-1e9, 0.0)
        assert float(budget.spent().epsilon) == pytest.approx(promised.epsilon(delta=1e-6))


def test_an_ordinary_guarantee_says_the_same_at_delta_zero():
    with pytest.raises(ArgumentError, match="largest price"):
        OutputGuarantee(cell=bool, epsilons={True: 1.0}, ordinary=laplace(scale=2.0))
    with pytest.raises(TypeError, match="ordinary"):
        OutputGuarantee(cell=bool, epsilons={True: 1.0}, ordinary=1.0)
    with pytest.raises(TypeError, match="used"):
        OutputGuarantee(cell=bool, epsilons={True: 0.5}, ordinary=laplace(scale=2.0), used=0.1)
    with pytest.raises(ArgumentError, match="used"):
        OutputGuarantee(cell=bool, epsilons={True: 0.5}, used=lambda _, orders: orders)
    kept = OutputGuarantee(cell=bool, epsilons={True: 0.5}, ordinary=laplace(scale=2.0))
    assert pickle.loads(pickle.dumps(kept)).worst().epsilon(1e-6) == laplace(scale=2.0).epsilon(1e-6)


@pytest.mark.full
def test_found_values_are_part_of_the_game():
    first, second = balanced_split(epsilon=0.5, max_positives=20)
    found = {}
    for spend in ("all", "release", "each"):
        search = SparseRelease(
            epsilon_threshold=first, epsilon_queries=second, epsilon_release=0.5, max_positives=20, spend=spend
        )
        found[spend] = search.guarantee.worst().epsilon(delta=1e-6)
        assert search.guarantee.worst().epsilon(delta=0) == 1.0
    assert 0.296 < found["each"] < found["release"] < 0.8 < 0.999 < found["all"] <= 1.0


def test_spending_all_that_is_left_leaves_nothing_to_save_at_a_delta():
    """One entry far above the threshold among many far below: its value has the rest of the epsilon, and attains it."""
    first, second = balanced_split(epsilon=0.5, max_positives=20)
    search = SparseRelease(epsilon_threshold=first, epsilon_queries=second, epsilon_release=0.5, max_positives=20)
    left = 1.0 / search.scale(1, 99)
    assert left == pytest.approx(1.0 - first - second / 20)
    # P(value >= its truth) moves by exp(left) when the truth moves by a sensitivity; all else is nearly certain
    sure = SparseVector(epsilon_threshold=first, epsilon_queries=second, max_positives=20, random=keyed_source(1))
    assert sure.above_many([1e6] + [0.0] * 99, 1e5).sum() == 1
    assert 0.5 - math.exp(left - 1e-5) * 0.5 * math.exp(-left) > 1e-6
    assert left - 1e-5 < search.guarantee.worst().epsilon(delta=1e-6) <= 1.07 * left


@pytest.mark.full
def test_the_plan_weighs_the_splits():
    plan = plan_sparse_vector(positives=10, delta=1e-6, accuracy=70)
    assert plan.best.epsilon == min(split.epsilon for split in plan.splits) < 0.4
    assert SparseVector(**plan.options).guarantee.worst().epsilon(delta=1e-6) == plan.best.epsilon
    scales = [1 / plan.best.epsilon_threshold, 20 / plan.best.epsilon_queries]
    assert math.hypot(*scales) * math.sqrt(2) == pytest.approx(70)
    assert str(plan).count("\n") == len(plan.splits)
    assert "no noise" in str(plan)
    pure = plan_sparse_vector(positives=100, delta=0, accuracy=73.6)
    assert pure.best.epsilon == pytest.approx(4.0128, abs=1e-3)
    assert pure.best.epsilon_threshold is not None


@pytest.mark.full
def test_the_plan_meets_an_epsilon():
    solved = _deltas.cache_info().misses
    plan = plan_sparse_vector(positives=3, delta=1e-6, epsilon=0.3, monotonic=True)
    assert _deltas.cache_info().misses - solved <= 40  # of two directions; each costs what a price does
    assert 0.2985 < plan.best.epsilon <= 0.3
    assert SparseVector(**plan.options).guarantee.worst().epsilon(delta=1e-6) == plan.best.epsilon
    assert all(split.epsilon <= 0.3 for split in plan.splits)
    assert plan.best.accuracy == min(split.accuracy for split in plan.splits)


@pytest.mark.parametrize(
    "arguments", [{}, {"epsilon": 1, "accuracy": 1}, {"epsilon": 1, "positives": 0}, {"accuracy": -1}]
)
def test_a_plan_refuses(arguments):
    with pytest.raises(ArgumentError):
        plan_sparse_vector(**{"positives": 3, "delta": 1e-6, **arguments})
