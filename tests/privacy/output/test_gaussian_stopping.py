"""The delta of stopping at a Gaussian level: one level, two levels by an integral, the ends of the range."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from dpselect.privacy.output.gaussian_stopping import stopping_delta

# --- exact: Gaussian noise and stopping rules -----------------------------------------------------------------------


def gaussian_profile(distance, information):
    """H(N(mu, 1) || N(0, 1)) at epsilon = -distance, mu^2 = information (Balle, Wang 2018, Theorem 8)."""
    mu = math.sqrt(information)
    return ndtr(distance / mu + mu / 2) - math.exp(-distance) * ndtr(distance / mu - mu / 2)


@pytest.mark.parametrize(("multiplier", "epsilon"), [(1.0, 1.0), (1.0, 4.0), (5.0, 0.5), (0.3, 20.0), (20.0, 0.25)])
def test_with_one_level_the_stopping_delta_is_the_gaussian_profile(multiplier, epsilon):
    exact = gaussian_profile(-epsilon, multiplier**-2.0)
    assert exact <= stopping_delta(noise_multipliers=[multiplier], epsilons=[epsilon]) <= exact * 1.001


@pytest.mark.theorem("Hartmann et al. 2022, Theorem 15", exact=True, sharp=True)
@pytest.mark.theorem("docs/theory/noise-reduction.md, Theorem 5", exact=True, sharp=True)
@pytest.mark.parametrize(
    ("multipliers", "epsilons"), [((2.0, 1.0), (1.0, 3.0)), ((3.0, 1.0), (0.5, 5.0)), ((8.0, 6.0), (0.3, 0.5))]
)
def test_with_two_levels_it_is_an_integral(multipliers, epsilons):
    """E max(stop at level 1, go on), with the second level in closed form. Quadrature to 1e-9 of the value."""
    first, second = (m**-2.0 for m in multipliers)
    deviation = math.sqrt(first)

    def value(z):
        loss = first / 2 + deviation * z
        stop = max(-math.expm1(epsilons[0] - loss), 0.0)
        return max(stop, gaussian_profile(loss - epsilons[1], second - first)) * math.exp(-z * z / 2)

    pieces = np.linspace(-12, 12, 49)
    exact = sum(quad(value, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in itertools.pairwise(pieces)) / math.sqrt(
        2 * math.pi
    )
    assert exact * (1 - 1e-8) <= stopping_delta(noise_multipliers=multipliers, epsilons=epsilons) <= exact * 1.002


@pytest.mark.parametrize("multiplier", [0.05, 16200.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 30.0, 1e9])
def test_at_the_ends_of_its_range_it_is_a_number_and_still_a_bound(multiplier, epsilon):
    found = stopping_delta(noise_multipliers=[multiplier * 1.01, multiplier], epsilons=[1e9, epsilon])
    exact = gaussian_profile(-epsilon, multiplier**-2.0) if epsilon < 100 else 0.0
    assert exact <= found <= 1.0
    assert found <= exact * 1.01 + 1e-30


@pytest.mark.full
@given(st.lists(st.floats(0.3, 20), min_size=2, max_size=5, unique=True), st.floats(0.1, 3), st.floats(1.0, 1.5))
@settings(max_examples=25, deadline=None)
def test_less_noise_or_lower_prices_cost_more_delta(multipliers, epsilon, factor):
    levels = sorted(multipliers, reverse=True)
    if any(a - b < 1e-3 for a, b in itertools.pairwise(levels)):
        return
    prices = [epsilon / m for m in levels]
    delta = stopping_delta(noise_multipliers=levels, epsilons=prices)
    slack = 1.05  # the two bounds have different grids; each is within 5 % of its value
    assert delta <= slack * stopping_delta(noise_multipliers=[m / factor for m in levels], epsilons=prices)
    assert delta <= slack * stopping_delta(noise_multipliers=levels, epsilons=[p / factor for p in prices])
    union = sum(gaussian_profile(-p, m**-2.0) for p, m in zip(prices, levels, strict=True))
    assert delta <= slack * union
