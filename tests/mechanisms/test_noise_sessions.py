"""Sessions of reduced noise: what they release and report, and what they refuse."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import Ledger
from dpselect.mechanisms.brownian import BrownianReduction
from dpselect.mechanisms.noise_reduction import (
    GradualRelease,
    LaplaceReduction,
    ReleaseUntilAbove,
)
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.gaussian_stopping import stopping_delta
from dpselect.randomness import keyed_source
from tests.mechanisms.test_noise_reduction import CUT, RATES, STOPS, gradual_law, violation

TWO = LaplaceReduction(epsilons=[0.5, 1.0], sensitivity=1)


def session_of_two(key=1):
    return TWO.open([7, 3], random=keyed_source(key))


def test_a_session_gives_its_levels_once_and_no_more():
    session = session_of_two()
    first, second = session.release(), session.release()
    assert session.exhausted
    assert [level.tolist() for level in session.released] == [first.tolist(), second.tolist()]
    with pytest.raises(BudgetError):
        session.release()
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0


def test_a_session_shows_and_copies_nothing():
    session = session_of_two()
    assert repr(session) == "<GradualRelease: 0 levels released>"
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            duplicate(session)


def _in_child(session, queue):
    try:
        session.release()
        queue.put("released")
    except Exception as error:
        queue.put(type(error).__name__)


def test_a_forked_child_gets_nothing():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_in_child, args=(session_of_two(), queue))
    process.start()
    assert queue.get(timeout=20) == "ForkedSourceError"
    process.join()


@pytest.mark.parametrize("kind", ["laplace", "brownian"])
def test_a_ledger_is_charged_for_the_last_level(tmp_path, kind):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("all", epsilon=5, delta=1e-5)
    if kind == "laplace":
        session = session_of_two()
    else:
        session = BrownianReduction(noise_multipliers=[8, 4, 2], delta=1e-6, sensitivity=1.0).open([7.0])
    with budget.reserve(session.guarantee, label="noise reduction") as charge:
        release = session.until(lambda level: True)
        charge.settle(release.value)
    assert len(release.value) == 1
    assert float(budget.spent().epsilon) == pytest.approx(session.guarantee.price(1))
    assert release.realised.price == session.guarantee.price(1)
    assert float(budget.spent().delta) == session.guarantee.delta


def test_a_public_rule_stops_where_it_says():
    release = session_of_two().until(lambda level: False)
    assert len(release.value) == 2
    assert release.realised.price == 1.0
    used = session_of_two()
    used.release()
    with pytest.raises(ArgumentError, match="session"):
        used.until(lambda level: True)


@pytest.mark.parametrize(("score", "levels", "success"), [(1e9, 1, True), (-1e9, 2, False), (math.nan, 2, False)])
def test_a_private_test_stops_where_it_succeeds(score, levels, success):
    price = {"epsilon_threshold": 0.1, "epsilon_queries": 0.2}
    release = ReleaseUntilAbove(reduction=TWO, threshold=0.0, **price)([7, 3], lambda level: score)
    assert (len(release.value[0]), release.value[1]) == (levels, success)
    expected = [0.5, 1.0][levels - 1] + 0.1 + 0.2 * success
    assert release.realised.price == pytest.approx(expected, rel=1e-12)
    assert release.guarantee.epsilon(delta=0) == pytest.approx(1.3)


def test_a_query_that_raises_counts_as_below_and_is_silent():
    def query(level):
        raise RuntimeError("row 17 is odd")

    price = {"epsilon_threshold": 0.1, "epsilon_queries": 0.2}
    release = ReleaseUntilAbove(reduction=TWO, threshold=0.0, **price)([7, 3], query)
    assert release.value[1] is False


# --- what may be reported -------------------------------------------------------------------------------------------


def test_a_loss_is_a_function_of_what_was_released():
    session = session_of_two()
    release = session.until(lambda level: True)
    assert release.realised == session.guarantee.observed(release.value)
    with pytest.raises(AttributeError):
        release.realised = session.guarantee.observed(release.value * 2)
    with pytest.raises(ArgumentError) as refused:
        session.guarantee.observed((12345.0,) * 3)
    assert "12345" not in str(refused.value)


def test_dropping_the_cell_costs_the_largest_merged_price():
    """Reporting the price of the level while hiding the level is not a price: the oracle finds it."""
    guarantee = LaplaceReduction(epsilons=RATES, sensitivity=1).guarantee
    laws = []
    for value in (0, 1):
        law = {}
        for path, mass in gradual_law(value, RATES, STOPS["at a large answer"], 14).items():
            law[path[-1]] = law.get(path[-1], 0.0) + mass
        laws.append(law)
    hidden = OutputGuarantee(cell=lambda last: 1, epsilons={1: guarantee.price(1)})
    assert violation(*laws, hidden) > 1e-3
    merged = OutputGuarantee(cell=lambda last: 1, epsilons={1: guarantee.worst_epsilon})
    assert violation(*laws, merged) < CUT


# --- bad arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LaplaceReduction(epsilons=[], sensitivity=1).guarantee, "epsilons"),
        (lambda: LaplaceReduction(epsilons=[1.0, 1.0], sensitivity=1).guarantee, "epsilons"),
        (lambda: LaplaceReduction(epsilons=[0.0], sensitivity=1).guarantee, "epsilons"),
        (lambda: LaplaceReduction(epsilons=[1.0], sensitivity=1).open("x"), "value"),
        (lambda: LaplaceReduction(epsilons=[1.0], sensitivity=0).open(1), "sensitivity"),
        (lambda: LaplaceReduction(epsilons=[1.0], sensitivity=1, granularity=0.3).open(1), "granularity"),
        (lambda: LaplaceReduction(epsilons=[1e-9], sensitivity=1, granularity=2.0**-30).open(1.0), "granularity"),
        (
            lambda: BrownianReduction(noise_multipliers=[1.0, 2.0], delta=1e-6, sensitivity=1).guarantee,
            "noise_multipliers",
        ),
        (lambda: BrownianReduction(noise_multipliers=[], delta=1e-6, sensitivity=1).guarantee, "noise_multipliers"),
        (lambda: BrownianReduction(noise_multipliers=[1.0], delta=0.0, sensitivity=1).guarantee, "delta"),
        (
            lambda: BrownianReduction(noise_multipliers=[1.0], delta=1e-6, boundary="best", sensitivity=1).guarantee,
            "boundary",
        ),
        (lambda: stopping_delta(noise_multipliers=[1.0], epsilons=[1.0, 2.0]), "length"),
        (lambda: stopping_delta(noise_multipliers=[0.01], epsilons=[1.0]), "noise_multipliers"),
        (
            lambda: BrownianReduction(noise_multipliers=[2.0, 2.0 - 1e-15], delta=1e-6, sensitivity=1.0).open(1.0),
            "noise_multipliers",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_single_number_and_an_empty_array_work():
    assert LaplaceReduction(epsilons=[1.0], sensitivity=1).open(5).release().shape == ()
    assert LaplaceReduction(epsilons=[1.0], sensitivity=1).open(np.zeros(0)).release().shape == (0,)
    session = BrownianReduction(noise_multipliers=[1.0], delta=1e-6, sensitivity=1.0).open(5.0)
    assert isinstance(session, GradualRelease)
    assert session.release().shape == ()
