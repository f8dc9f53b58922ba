"""Pure and approximate guarantees: Renyi values, the failure mass, and the smallest epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpselect.privacy import (
    approximate_dp,
    pure_dp,
)

INFINITY = float("inf")


def test_randomised_response_at_epsilon_one():
    # Papernot, Steinke 2022: exact Renyi divergences of randomised response, below order / 2
    g = pure_dp(epsilon=1)
    for order, value in ((2, 0.735325664), (4, 0.895883260), (8, 0.955248374)):
        assert g.renyi(order) == pytest.approx(value, abs=5e-10)
        assert g.renyi(order) < order / 2


def test_an_approximate_guarantee_fails_with_its_delta_and_not_less():
    g = approximate_dp(epsilon=1.0, delta=1e-6)
    assert g.epsilon(delta=1e-6) == 1.0
    assert g.epsilon(delta=math.nextafter(1e-6, 0)) == INFINITY
    assert g.delta(1.0) == 1e-6
    assert g.delta(INFINITY) == 1e-6
    assert g.renyi(2.0) == INFINITY
    # the worst pair (Kairouz, Oh, Viswanath 2015) at epsilon 0.5
    truth = 1e-6 + (1 - 1e-6) * (math.e - math.exp(0.5)) / (1 + math.e)
    assert g.delta(0.5) == pytest.approx(truth, rel=1e-11)
    assert g.delta(0.5) >= truth * (1 - 1e-15)


def test_the_smallest_epsilon_is_not_zero():
    for epsilon in (5e-324, 1e-310, 1e-300, 1e-20):
        assert 0.0 < pure_dp(epsilon=epsilon).epsilon(delta=0) <= epsilon * (1 + 1e-9)
    assert pure_dp(epsilon=1e-300).epsilon(delta=1e-301) > 7e-301
    assert pure_dp(epsilon=0).epsilon(delta=0) == 0.0
    assert pure_dp(epsilon=Fraction(1, 3)).pure_epsilon == math.nextafter(1 / 3, 1.0)
