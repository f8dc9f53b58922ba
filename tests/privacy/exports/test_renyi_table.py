"""Renyi tables: above exact divergences, and read by dp-accounting."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon

from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, from_profile, gaussian, pure_dp, renyi_dp, zcdp


def test_the_orders_are_those_asked_for():
    table = zcdp(rho=0.5).to_renyi([10, 2])
    assert table.orders == (10.0, 2.0)
    assert table.epsilons == pytest.approx((5.0, 1.0), rel=1e-11)
    assert table.epsilons[0] > 5.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomised_response_is_exact(epsilon):
    p = 1.0 / (1.0 + math.exp(-epsilon))
    table = pure_dp(epsilon=epsilon).to_renyi([1.5, 2.0, 7.0])
    for order, found in zip(*table, strict=True):
        exact = math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)
        assert exact <= found <= exact * (1 + 1e-11)


def test_dp_accounting_finds_about_the_best_order():
    guarantee = zcdp(rho=0.1)
    for delta in np.geomspace(1e-3, 1e-10, 8).tolist():
        theirs, _ = compute_epsilon(*guarantee.to_renyi(), delta)
        assert guarantee.epsilon(delta) * (1 - 1e-12) <= theirs <= 1.002 * guarantee.epsilon(delta)


def test_a_gap_of_the_curve_is_inf():
    assert renyi_dp(orders=[2, 4], epsilons=[0.1, 0.3]).to_renyi([3, 5]).epsilons[1] == math.inf


@pytest.mark.parametrize(
    ("make", "orders", "named"),
    [
        (lambda: gaussian(noise_multiplier=1), [], "orders is empty"),
        (lambda: gaussian(noise_multiplier=1), [1.0], "orders"),
        (lambda: gaussian(noise_multiplier=1), [math.inf], "orders"),
        (lambda: approximate_dp(epsilon=1, delta=1e-6), None, "failure mass"),
        (lambda: from_profile([0.5], [0.1]), None, "no Renyi divergence"),
    ],
)
def test_refusals(make, orders, named):
    with pytest.raises(ArgumentError, match=named):
        make().to_renyi(orders)
