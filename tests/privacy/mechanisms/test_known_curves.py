"""Guarantees from curves: concentrated privacy, Renyi curves and tables, against published values."""

from __future__ import annotations

import math

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import (
    from_profile,
    gaussian,
    renyi_dp,
    zcdp,
)


def test_concentrated_and_gaussian_values():
    # single run of the figures of Papernot, Steinke 2022; Gaussian values are Balle, Wang 2018, Theorem 8
    assert zcdp(rho=0.1).epsilon(delta=1e-6) == pytest.approx(2.141939, abs=1e-6)
    for noise, value in ((1 / math.sqrt(0.2), 1.99453), (4, 1.0607), (1, 4.8866), (10, 0.3969)):
        assert gaussian(noise_multiplier=noise).epsilon(delta=1e-6) == pytest.approx(value, abs=6e-5)


def test_a_divergence_of_zero_is_pure():
    assert zcdp(rho=0).epsilon(0) == 0.0
    assert zcdp(rho=1e-300).epsilon(0) == math.inf
    assert renyi_dp(orders=[2.0, 3.0], epsilons=[0.0, 1.0]).epsilon(0) == 0.0
    assert renyi_dp(orders=[2.0], epsilons=[0.1]).epsilon(0) == math.inf


def test_a_table_of_orders_is_read_by_chords_and_attained_by_the_steepest_gaussian_below_it():
    given = renyi_dp(orders=[2, 5], epsilons=[0.2, 0.9])
    assert given.renyi(2) == 0.2
    assert given.renyi(5) == 0.9
    assert given.renyi(3) == pytest.approx((1 * 0.2 + (4 * 0.9 - 1 * 0.2) / 3) / 2)  # (order - 1) epsilon is convex
    assert given.renyi(5.01) == math.inf
    # 0.2 / 2 is the smaller slope: a Gaussian of mu with mu^2 / 2 = 0.1
    assert given.lower_profile.profile.mu == pytest.approx(math.sqrt(0.2), rel=1e-12)
    assert given.lower_profile.profile.mu < math.sqrt(0.2)
    assert renyi_dp(orders=[2], epsilons=[math.inf]).lower_profile is None
    assert zcdp(rho=0.1).lower_profile.profile.mu == pytest.approx(math.sqrt(0.2), rel=1e-12)


def test_a_profile_of_points_is_pure_from_its_first_zero_and_chords_between():
    given = from_profile([0.0, 1.0, 2.0], [0.3, 0.1, 0.0])
    assert (given.pure_epsilon, given.epsilon(delta=0)) == (2.0, 2.0)
    assert given.delta(1.0) == pytest.approx(0.1, rel=1e-11)
    middle = math.log((1 + math.e) / 2)
    assert given.delta(middle) == pytest.approx(0.2, rel=1e-11)
    lower, upper = given.epsilon_bracket(delta=0.2)
    assert lower <= middle <= upper
    assert upper - lower < 1e-6
    assert from_profile([1.0], [0.1]).epsilon(delta=0.05) == math.inf


@pytest.mark.parametrize("wrong", [([], []), ([1.0], [0.1, 0.0]), ([1.0, 1.0], [0.1, 0.0]), ([1.0, 0.5], [0.1, 0.0])])
def test_tables_out_of_order_are_refused(wrong):
    with pytest.raises(ArgumentError):
        from_profile(*wrong)
    orders = [2 * each for each in wrong[0]]
    with pytest.raises(ArgumentError):
        renyi_dp(orders=orders, epsilons=wrong[1])
