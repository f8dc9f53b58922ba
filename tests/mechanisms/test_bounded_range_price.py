"""Bounded range: epsilon is attained, curves against many digits, composition, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms import PermuteAndFlip
from dpselect.mechanisms.bounded_range_price import bounded_range, bounded_range_rho
from dpselect.privacy import compose, pure_dp
from tests.audits.score_laws import exponential_law, permute_and_flip_law
from tests.mechanisms.scores_cases import losses


@pytest.mark.theorem("Durfee, Rogers 2019, Lemma 4.2", exact=True)
@pytest.mark.parametrize("monotonic", [False, True])
def test_range_epsilon_is_attained_and_never_exceeded(monotonic: bool) -> None:
    rate = 1.0 if monotonic else 0.5
    generator = np.random.default_rng(6)
    spans = [
        np.ptp(losses(exponential_law, generator.normal(0.0, 2.0, size=4), rate, monotonic), axis=-1).max()
        for _ in range(20)
    ]
    assert max(spans) == pytest.approx(1.0, abs=1e-12)


def test_permute_and_flip_does_not_have_range_epsilon() -> None:
    """The pairing that a guarantee must not mix up: its loss spans more than epsilon and its variance is beyond."""
    ratio = losses(permute_and_flip_law, np.array([0.0, 0.0, -1.0]), 0.5, False)
    assert np.ptp(ratio, axis=-1).max() > 1.2
    assert PermuteAndFlip(sensitivity=1, epsilon=1).guarantee.renyi(2.0) > bounded_range(epsilon=1).renyi(2.0) * 1.5
    # two candidates have the profile of Laplace noise: a price below that is false
    lower, upper = PermuteAndFlip(sensitivity=1, epsilon=1).guarantee.epsilon_bracket(1e-3)
    assert 1 - 2.01e-3 < lower < upper <= 1


def test_bounded_range_curves() -> None:
    """Total variation tanh(epsilon/4); zCDP constant 0.12330 at epsilon 1 (Harrison, Manurangsi 2026), below 1/8."""
    assert bounded_range(epsilon=2.0).delta(0.0) == pytest.approx(math.tanh(0.5), rel=1e-11)
    assert bounded_range_rho(1.0) == pytest.approx(0.12330, abs=5e-6)
    orders = 1.0 + np.geomspace(1e-6, 1e4, 200)
    for epsilon in (1e-8, 1e-3, 0.1, 1.0, 5.0, 100.0):
        curve = bounded_range(epsilon=epsilon).renyi_curve
        pure = pure_dp(epsilon=epsilon).renyi_curve
        assert curve is not None
        assert pure is not None
        values = curve(orders)
        assert np.all(np.diff(values) >= -1e-5 * values[:-1])  # the closed form cancels near order one
        assert np.all(values <= np.minimum(epsilon, epsilon**2 * orders / 8 * (1 + 1e-11)))
        assert np.all(values <= pure(orders) * (1 + 1e-9) + 1e-9 * epsilon)
        # the divergence over the order is largest at order one, where it is the zCDP constant
        assert np.all(values / orders <= bounded_range_rho(epsilon) * (1 + 1e-5) + 1e-9 * epsilon)
    assert bounded_range(epsilon=0.0).delta(0.0) == 0.0


def test_bounded_range_renyi_against_high_precision() -> None:
    """50 digits: the largest moment over two-point ratios by golden-section search."""
    mpmath.mp.dps = 50
    for epsilon, order in ((0.01, 3.0), (1.0, 1.01), (1.0, 30.0), (6.0, 2.0)):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)

        def moment(t: Any, e: Any = e, a: Any = a) -> Any:
            q = mpmath.expm1(e - t) / mpmath.expm1(e)
            return mpmath.log(q * mpmath.exp(a * t) + (1 - q) * mpmath.exp(a * (t - e))) / (a - 1)

        low, high = mpmath.mpf(0), e
        for _ in range(120):
            left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
            low, high = (left, high) if moment(left) < moment(right) else (low, right)
        curve = bounded_range(epsilon=epsilon).renyi_curve
        assert curve is not None
        got, exact = float(curve(np.array([order]))[0]), float(moment(low))
        assert exact <= got <= exact * (1 + 1e-4) + 1e-14


def test_composition_of_bounded_range_beats_pure_composition() -> None:
    bounded = compose(*[bounded_range(epsilon=0.1)] * 50).epsilon(delta=1e-6)
    pure = compose(*[pure_dp(epsilon=0.1)] * 50).epsilon(delta=1e-6)
    assert bounded < 0.55 * pure


@pytest.mark.parametrize("price", [bounded_range, bounded_range_rho])
def test_a_range_below_zero_is_refused(price) -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        price(epsilon=-0.5)
