"""The cost of a search that stops at its first positive test, by its output."""

from __future__ import annotations

import math

import pytest

from dpselect.accounting.candidates.search_price import first_positive_price, something_found
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import Adjacency


def price(tests, failure=0.0):
    return first_positive_price(
        epsilon=1.0,
        tests=tests,
        failure=failure,
        adjacency=Adjacency.ADD_OR_REMOVE_ONE,
        theorem="Theorem T",
        terms={"mechanism": "test"},
    )


def test_finding_something_costs_epsilon_and_nothing_half():
    found = price(None)
    assert dict(found.by_output.epsilons) == {True: 1.0, False: 0.5}
    assert found.guarantee.epsilon(0.0) == 1.0
    assert (found.guarantee.theorem, found.guarantee.terms) == ("Theorem T", {"mechanism": "test"})
    assert [something_found(value) for value in (None, 0, "")] == [False, True, True]


def test_a_single_test_costs_a_quarter_both_ways():
    found = price(1)
    assert dict(found.by_output.epsilons) == {True: 0.25, False: 0.25}
    assert found.guarantee.theorem == "Theorem T; a single test, exact"
    assert price(2).by_output.epsilons[True] == 1.0


def test_a_delta_saves_and_a_failure_takes_its_part():
    sure, failing = price(5).guarantee, price(5, failure=0.01).guarantee
    assert sure.epsilon(0.02) < 1.0
    # the failure is part of delta, and the game is played outside of it
    assert failing.epsilon(0.02) == pytest.approx(sure.epsilon((0.02 - 0.01) / 0.99), rel=1e-9)
    assert failing.epsilon(0.02) >= sure.epsilon((0.02 - 0.01) / 0.99)
    assert failing.delta(0.7) == pytest.approx(0.01 + 0.99 * sure.delta(0.7), rel=1e-9)
    assert failing.epsilon(0.009) == math.inf
    assert price(None, failure=0.01).by_output.delta == 0.01


@pytest.mark.parametrize("failure", [1.0, 1.5, math.nan])
def test_a_failure_of_one_has_no_bound(failure):
    with pytest.raises(BoundUnavailableError, match="failure probability reaches 1"):
        price(5, failure)
