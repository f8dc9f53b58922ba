"""The Renyi curve of DP-SGD under replacing a row, against integrals in 30 digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpselect.privacy import dp_sgd
from dpselect.privacy.replaced_gaussian import ReplacedGaussianRenyi

ORDERS = [(1.0, 0.01, 1.5), (1.0, 0.01, 5.0), (0.5, 0.3, 2.25), (30.0, 0.001, 8.0), (4.0, 0.9, 1.01), (0.3, 0.05, 3.0)]


@pytest.mark.theorem("docs/theory/samples.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "rate", "order"), ORDERS)
def test_the_curve_is_the_integral(noise, rate, order):
    with mp.workdps(30):
        s, q, alpha = 1 / mp.mpf(noise), mp.mpf(rate), mp.mpf(order)

        def ratio(x):
            return 1 - q + q * mp.exp(x * s - s * s / 2)

        def excess(x):
            f, g = ratio(x), ratio(-x)
            return mp.npdf(x) * (f**alpha * g ** (1 - alpha) - 1 - alpha * (f - 1) - (1 - alpha) * (g - 1))

        points = np.linspace(-12.0 - 1 / noise, order / noise + 14.0, 10).tolist()
        exact = float(mp.log1p(mp.quad(excess, points)) / (alpha - 1))
    found = float(ReplacedGaussianRenyi(noise, rate, 1)(np.array([order]))[0])
    assert exact <= found <= exact * (1.0 + 1e-8)


def test_orders_beyond_the_sums_have_a_closed_form():
    curve = ReplacedGaussianRenyi(2.0, 0.01, 10)
    orders = np.array([255.0, 256.0, 257.0, 1e6])
    found = curve(orders)
    assert np.all(np.diff(found) > 0.0)
    assert found[-1] <= 10 * 2.0 * 1e6 / 4.0 * (1 + 1e-9)


@pytest.mark.parametrize("noise", [1e-150, 1e-3, 1e3, 1e150])
def test_extreme_noise_has_a_price(noise):
    guarantee = dp_sgd(noise_multiplier=noise, sampling_rate=0.5, steps=3, adjacency="replace_one")
    assert 0.0 <= guarantee.epsilon(delta=1e-6) <= math.inf
    one = dp_sgd(noise_multiplier=noise, sampling_rate=0.5, steps=3)
    assert guarantee.epsilon(delta=1e-6) >= one.epsilon(delta=1e-6)
