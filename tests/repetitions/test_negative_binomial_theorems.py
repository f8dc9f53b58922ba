"""The printed closed forms for a truncated negative binomial number of runs, term by term."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions import Geometric, TruncatedNegativeBinomial
from dpselect.repetitions.negative_binomial_theorems import corollary_3, corollary_4, refined_theorem_2, theorem_2

LAW = TruncatedNegativeBinomial(eta=0.5, gamma=0.1)


def test_theorem_2_at_several_orders():
    got = theorem_2(law=LAW, order=[2.0, 5.0], epsilon=[0.3, 0.4], hat_order=4.0, hat_epsilon=0.2)
    constant = 1.5 * (3 / 4 * 0.2 + math.log(10) / 4)
    want = [0.3 + constant + math.log(LAW.mean), 0.4 + constant + math.log(LAW.mean) / 4]
    assert got == pytest.approx(want, rel=1e-14)


def test_at_hat_order_one_the_hat_epsilon_does_not_matter():
    got = theorem_2(law=LAW, order=2.0, epsilon=0.3, hat_order=1.0, hat_epsilon=math.inf)
    assert got == pytest.approx(0.3 + 1.5 * math.log(10) + math.log(LAW.mean), rel=1e-14)
    with pytest.raises(ArgumentError, match="hat_order must be at least 1"):
        theorem_2(law=LAW, order=2.0, epsilon=0.3, hat_order=0.99, hat_epsilon=0.2)


def test_the_refined_form_replaces_one_logarithm():
    got = refined_theorem_2(law=LAW, order=2.0, epsilon=0.3, hat_order=4.0, hat_epsilon=0.2)
    constant = 1.5 * (3 / 4 * 0.2 + math.log(10 - 1 + math.exp(-3 * 0.2)) / 4)
    assert got == pytest.approx(0.3 + constant + math.log(LAW.mean), rel=1e-13)
    assert got < theorem_2(law=LAW, order=2.0, epsilon=0.3, hat_order=4.0, hat_epsilon=0.2)


def test_corollary_3_is_two_and_eta_times_epsilon():
    assert corollary_3(law=LAW, epsilon=0.4) == 1.0
    assert corollary_3(law=Geometric(gamma=1e-9), epsilon=1.0) == 3.0


def test_corollary_4_is_flat_up_to_its_best_order():
    rho, span, log_mean = 0.01, math.log(10), math.log(LAW.mean)
    best = math.sqrt(log_mean / rho)
    fixed = 3.0 * math.sqrt(rho * span) - 0.5 * rho
    got = corollary_4(law=LAW, order=[2.0, 1.0 + best, 100.0], rho=rho)
    lowest = 2.0 * math.sqrt(rho * log_mean) + fixed
    assert got == pytest.approx(np.array([lowest, lowest, rho * 99 + log_mean / 99 + fixed]), rel=1e-13)


def test_corollary_4_is_refused_beyond_its_condition():
    corollary_4(law=LAW, order=2.0, rho=math.log(10) * (1 - 1e-12))
    with pytest.raises(ArgumentError, match="rho must be at most"):
        corollary_4(law=LAW, order=2.0, rho=math.log(10) * (1 + 1e-12))
