"""Random stopping by Liu and Talwar (2019): printed values, and what replaces them."""

from __future__ import annotations

import math

import pytest

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.best_of_k.random_stopping import (
    theorem_3_2,
    theorem_3_3_failure,
    theorem_3_3_stop_probability,
    theorem_3_4,
    theorem_3_5,
)
from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.repetitions import Geometric, capped
from dpselect.selection.amplification import amplification_stop_probability, markov_probability
from tests.accounting.candidates.threshold_published_cases import near


def test_amplification():
    assert markov_probability(mean=0.6, margin=0.1) == near(0.2)
    with pytest.raises(ArgumentError, match="mean"):
        markov_probability(mean=1.5, margin=0.1)
    stop = amplification_stop_probability(mean=0.6, margin=0.1, failure_probability=0.05)
    assert stop == near(0.01)
    assert Geometric(gamma=stop).mean == near(100.0)
    assert theorem_3_3_failure(stop_probability=stop, probability=0.2) <= 0.05


def test_failure_of_random_stopping():
    for (gamma, p), failure in {
        (0.1, 0.5): 0.0909090909,
        (0.01, 0.1): 0.0825688073,
        (0.005, 0.05): 0.0867579909,
    }.items():
        found = theorem_3_3_failure(stop_probability=gamma, probability=p)
        assert found == near(failure)
        assert found <= gamma / p
        # the law itself says the same
        assert Geometric(gamma=gamma).pgf(1 - p) == near(found)
    assert theorem_3_3_stop_probability(probability=1 / 20, failure=0.05) == near(0.00277008310)
    for limit, failure in ((10, 0.638847682), (30, 0.493764233)):
        assert Geometric(gamma=0.1).at_most(limit).pgf(0.9) == near(failure)
    assert capped(Geometric(gamma=0.1), 10).pgf(0.9) == near(0.537671923)
    assert Geometric(gamma=0.1).at_most(10).mean == near(4.64660067)
    assert Geometric(gamma=0.1).at_most(30).mean == near(8.67196846)
    assert capped(Geometric(gamma=0.1), 10).mean == near(6.51321560)


def test_pure_cost_of_random_stopping():
    for gamma, value in {0.5: 1.62110018, 0.1: 2.59134408, 0.01: 2.95370423, 0.001: 2.99530644}.items():
        assert pure_best_of(law=Geometric(gamma=gamma), epsilon=1.0) == near(value)
        assert value < theorem_3_2(pure_dp(epsilon=1.0)).epsilon(0.0) == 3.0
    assert pure_best_of(law=Geometric(gamma=0.1), epsilon=0.1) == near(0.263591285)
    assert pure_best_of(law=Geometric(gamma=0.01), epsilon=0.1) == near(0.296033195)
    assert pure_best_of(law=Geometric(gamma=0.1), epsilon=2.0) == near(4.92037363)


@pytest.mark.parametrize(
    ("gamma", "slack", "limit"), [(0.1, 0.1, 99), (0.01, 0.1, 1473), (0.01, 0.01, 1721), (0.5, 0.1, 14)]
)
def test_theorem_3_5(gamma, slack, limit):
    law, total = theorem_3_5(pure_dp(epsilon=1.0), stop_probability=gamma, slack=slack)
    assert law.limit == limit
    # the inequality that the choice of T is for
    assert limit * (1 - gamma) ** limit <= slack * gamma / (1 + gamma) ** 2
    assert total.epsilon(0.0) == near(3.0 + 3.0 * slack)
    assert best_of(pure_dp(epsilon=1.0), law, bound="pure").epsilon(0.0) < total.epsilon(0.0)


@pytest.mark.parametrize(("delta", "paper", "ours"), [(1e-10, 0.0195454314, 9.99999990e-9), (1e-16, 2.05444e-5, 1e-14)])
def test_theorem_3_4_and_what_replaces_it(delta, paper, ours):
    base = approximate_dp(epsilon=1.0, delta=delta)
    law, total = theorem_3_4(base, stop_probability=0.01, cut_off=1e-6)
    assert law.limit == 1382
    # the fact takes T before it is rounded up to 1382
    assert total.failure == pytest.approx(paper, rel=4e-4)
    assert total.pure_epsilon == near(3.0 + 3.0 * math.sqrt(2.0 * delta))
    free = best_of(base, Geometric(gamma=0.01), bound="pure")
    assert free.failure == near(ours)
    assert free.pure_epsilon < 3.0
