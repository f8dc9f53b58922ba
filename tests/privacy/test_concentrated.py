"""The least rho of a curve: Kullback-Leibler divergences, random pairs by enumeration, and curves that prove none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.mechanisms import bounded_range
from dpselect.mechanisms.bounded_range_price import bounded_range_rho
from dpselect.privacy import compose, dp_sgd, gaussian, laplace, pure_dp, renyi_dp, worst_of, zcdp
from dpselect.privacy.concentrated import concentrated_rho
from dpselect.privacy.renyi import LinearRenyi, TabulatedRenyi, sum_of_curves


def rho_of(guarantee, limit=math.inf):
    assert guarantee.renyi_curve is not None
    return concentrated_rho(guarantee.renyi_curve, limit)


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 40.0])
def test_the_divergence_over_the_order_is_largest_at_order_one(epsilon: float) -> None:
    """There it is the Kullback-Leibler divergence. A rho that is 1 % smaller fails here."""
    for guarantee, exact in (
        (pure_dp(epsilon=epsilon), epsilon * math.tanh(epsilon / 2)),
        (laplace(scale=1 / epsilon), epsilon + math.expm1(-epsilon)),
        (bounded_range(epsilon=epsilon), bounded_range_rho(epsilon)),
    ):
        assert exact * (1 - 1e-9) <= rho_of(guarantee) <= exact * 1.0002


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 4")
@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_a_random_table_is_beyond_its_rho(seed: int) -> None:
    """The curve of a random pair in closed form, bounded by its largest loss in either direction."""
    generator = np.random.default_rng(seed)
    first, second = generator.dirichlet(np.full(4, 0.5), 2) * 0.9 + 0.025
    limit = float(np.max(np.abs(np.log(first / second))))

    def curve(orders):
        moments = np.sum(second * (first / second) ** np.asarray(orders)[..., None], axis=-1)
        return np.log(moments) / (np.asarray(orders) - 1.0)

    orders = 1.0 + np.geomspace(1e-4, 100.0, 5000)
    largest = float(np.max(curve(orders) / orders))
    assert largest <= concentrated_rho(curve, limit) <= largest * 1.0003


def test_sums_and_maxima_are_taken_apart() -> None:
    assert rho_of(compose(zcdp(rho=0.1), zcdp(rho=0.2))) == pytest.approx(0.3, rel=1e-12)
    assert rho_of(compose(gaussian(noise_multiplier=2), laplace(scale=1))) == pytest.approx(
        0.125 + math.exp(-1), rel=1e-4
    )
    assert rho_of(worst_of(zcdp(rho=0.1), laplace(scale=1))) == pytest.approx(math.exp(-1), rel=1e-4)


@pytest.mark.theorem("Bun, Steinke 2016, Lemma 1.7", exact=True, sharp=True)
def test_concentrated_mechanisms_compose_to_a_concentrated_one() -> None:
    both = compose(zcdp(rho=0.1), zcdp(rho=0.2), gaussian(noise_multiplier=2.0))
    assert isinstance(both.renyi_curve, LinearRenyi)
    assert 0.425 <= both.renyi_curve.rho <= 0.425 * (1 + 1e-14)
    assert both.epsilon(1e-6) == pytest.approx(zcdp(rho=0.425).epsilon(1e-6), rel=1e-12)
    mixed = sum_of_curves([(LinearRenyi(0.1), 2), (TabulatedRenyi((2.0,), (0.5,)), 1)])
    assert not isinstance(mixed, LinearRenyi)


def test_curves_without_a_supremum_have_no_rho() -> None:
    assert math.isinf(rho_of(renyi_dp(orders=[2.0], epsilons=[0.1])))
    assert math.isinf(rho_of(dp_sgd(noise_multiplier=1.0, sampling_rate=0.1, steps=3)))
    assert rho_of(renyi_dp(orders=[2.0], epsilons=[0.1]), 1.0) == 0.5  # with a pure epsilon it has one
    assert concentrated_rho(LinearRenyi(0.1), 0.0) == 0.0
    assert concentrated_rho(lambda orders: np.full(orders.shape, np.nan), 1.0) == 0.5
