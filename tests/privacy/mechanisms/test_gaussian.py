"""The Gaussian mechanism against its exact privacy profile and its Renyi curve."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from dpselect.privacy import (
    compose,
    dp_sgd,
    gaussian,
)


def test_renyi_of_gaussian_noise_is_half_the_order_over_the_variance():
    # Mironov 2017, Proposition 7; the sampled curve at rate one is the same by composition
    for noise in (0.3, 1.0, 7.0):
        for order in (1.5, 2, 100):
            truth = Fraction(order) / (2 * Fraction(noise) ** 2)
            for got in (
                gaussian(noise_multiplier=noise).renyi(order),
                compose(gaussian(noise_multiplier=2 * noise), *[gaussian(noise_multiplier=2 * noise)] * 3).renyi(order),
                dp_sgd(noise_multiplier=3 * noise, sampling_rate=1, steps=9).renyi(order),
            ):
                assert truth * (1 - Fraction(1, 10**15)) <= Fraction(got) <= truth * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("noise", [0.1, 1.0, 4.0, 10.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.01])
def test_gaussian_epsilon_is_the_root_of_the_exact_curve(noise, delta):
    with mp.workdps(50):
        mu = 1 / mp.mpf(noise)

        def curve(e):
            return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)

        lower, upper = gaussian(noise_multiplier=noise).epsilon_bracket(delta=delta)
        assert upper == gaussian(noise_multiplier=noise).epsilon(delta=delta)
        assert curve(mp.mpf(upper)) <= delta
        assert lower == 0.0 or curve(mp.mpf(lower)) > delta
        assert upper - lower <= 1e-8 * upper
