"""Renyi curves of slices: known values, their critical order, and maps that are not monotone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.ordered.slices.price import (
    SlicePrice,
)
from dpselect.ordered.slices.price_renyi import RepeatedRenyi, SliceRenyi, SmallestRenyi, curve_of
from dpselect.ordered.slices.synchronisation import synchronisation
from dpselect.privacy import approximate_dp, pure_dp
from tests.ordered.slices.price_cases import equal


@pytest.mark.parametrize(
    ("epsilon", "orders", "values"),
    [
        (
            0.02,
            [1.5, 2, 4, 8, 16],
            [0.001281303910, 0.001721976795, 0.003559789419, 0.007668684818, 0.018706946122],
        ),
        (0.05, [1.5, 2, 4, 8], [0.008156388313, 0.011108419700, 0.024462391495, 0.065207928091]),
        (0.1, [2, 3], [0.047301587195, 0.079594864191]),
    ],
)
def test_renyi_curve(epsilon, orders, values):
    assert equal(epsilon).renyi()(np.array(orders, dtype=float)) == pytest.approx(values, abs=2e-11)


@pytest.mark.parametrize(
    ("epsilon", "critical"), [(0.02, 30.271972), (0.05, 12.411705), (0.1, 6.461046), (0.25, 2.905069), (0.5, 1.781144)]
)
def test_renyi_curve_ends_at_its_critical_order(epsilon, critical):
    below, above = equal(epsilon).renyi()(np.array([critical - 2e-5, critical + 2e-5]))
    assert np.isfinite(below)
    assert np.isinf(above)


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.0])
def test_the_curve_for_maps_that_may_turn_round(epsilon):
    """The worse direction of either factor: max(S(a), S(1-a)) R1(a) / (1 - exp(a g) F R2(a)), from the definitions."""
    ratio = math.exp(-epsilon)
    weights = [max(0.0, ratio**i + ratio ** (i + 1) - 1) for i in range(400)]
    fail = (1 - ratio) * sum(weights)
    lower = [(1 - ratio) * (ratio**i - t) for i, t in enumerate(weights)]
    upper = [(1 - ratio) * (ratio ** (i + 1) - t / ratio) for i, t in enumerate(weights[1:])]
    pairs = [(p, u) for p, u in zip(lower, upper, strict=False) if p > 0]

    def response(order, e):
        return (math.exp(order * e) + math.exp((1 - order) * e)) / (1 + math.exp(e))

    for order in (1.01, 1.05):
        sums = [sum(u**a * p ** (1 - a) for p, u in pairs) for a in (order, 1 - order)]
        again = math.exp(order * epsilon) * fail * response(order, 2 * epsilon)
        expected = math.log(max(sums) * response(order, epsilon) / (1 - again)) / (order - 1)
        parts = {"slice_epsilon": epsilon, "insertion": pure_dp(epsilon=epsilon)}
        turned = SlicePrice(**parts, maps_grow=False).renyi()(np.array([order]))[0]
        grown = SlicePrice(**parts).renyi()(np.array([order]))[0]
        assert turned == pytest.approx(expected, rel=1e-7)
        assert turned >= expected * (1 - 1e-12)
        assert turned > grown * 1.001


def test_a_failure_of_the_components_adds_its_share():
    """Conditioned on no failure both distributions lose the factor 1 - f, which adds a/(a-1) log(1/(1-f))."""
    sync, insertion, swap = synchronisation(0.1), curve_of(pure_dp(epsilon=0.1)), curve_of(pure_dp(epsilon=0.2))
    orders = np.array([1.5, 2.0, 4.0])
    sound, failing = (SliceRenyi(sync, insertion, swap, failure, True)(orders) for failure in (0.0, 0.01))
    assert failing - sound == pytest.approx(orders / (orders - 1.0) * math.log(1 / 0.99), rel=1e-9)


def test_curves_of_a_guarantee_and_of_several_runs():
    orders = np.array([2.0, 8.0])
    one, two = curve_of(pure_dp(epsilon=0.1)), curve_of(pure_dp(epsilon=0.2))
    assert SmallestRenyi((two, one))(orders).tolist() == one(orders).tolist()
    assert RepeatedRenyi(one, 3)(orders).tolist() == (3 * one(orders)).tolist()
    assert curve_of(approximate_dp(epsilon=0.1, delta=1e-6)) is not None
    assert curve_of(approximate_dp(epsilon=0.1, delta=1e-6))(orders).tolist() == one(orders).tolist()
