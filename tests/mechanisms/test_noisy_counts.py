"""Noisy counts: their noise, their prices, what they refuse, and a long fraction."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.mechanisms import NoisyCount, discrete_gaussian, discrete_laplace, noisy_count
from dpselect.randomness import keyed_source


def test_noisy_count_is_the_count_plus_the_noise_of_its_source() -> None:
    for parameters in ({"epsilon": 0.5}, {"noise_multiplier": 3.0}):
        zero = noisy_count(0, random=keyed_source(5), **parameters)  # type: ignore[arg-type]
        assert noisy_count(100, random=keyed_source(5), **parameters) == 100 + zero  # type: ignore[arg-type]
        assert type(zero) is int


def test_noisy_count_prices() -> None:
    laplace = NoisyCount(epsilon=Fraction(1, 3), adjacency="replace_one").guarantee
    assert Fraction(laplace.pure_epsilon) >= Fraction(1, 3)
    assert laplace.pure_epsilon == pytest.approx(1 / 3, rel=1e-15)
    assert laplace.adjacency.value == "replace_one"
    gaussian = NoisyCount(noise_multiplier=2.0).guarantee
    assert gaussian.pure_epsilon == math.inf
    # Canonne, Kamath, Steinke (2020), Theorem 4: rho = 1/8, so order * 1/8
    assert gaussian.renyi(order=16.0) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_discrete_gaussian_is_concentrated_but_not_gaussian(sigma: float) -> None:
    """Its Renyi divergence obeys Theorem 4, its privacy profile exceeds the continuous one: `gaussian` is no price."""
    x = np.arange(-60, 61)
    log_p = -(x**2) / (2 * sigma**2)
    log_p -= np.logaddexp.reduce(log_p)
    log_q = -((x - 1) ** 2) / (2 * sigma**2)
    log_q -= np.logaddexp.reduce(log_q)
    for order in (1.1, 2.0, 5.0, 20.0):
        divergence = np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)
        assert divergence <= order / (2 * sigma**2) * (1 + 1e-9)
    epsilons = np.linspace(0.0, 5.0, 501)
    discrete = np.array([np.maximum(np.exp(log_p) - np.exp(e + log_q), 0).sum() for e in epsilons])
    continuous = stats.norm.cdf(0.5 / sigma - epsilons * sigma)
    continuous -= np.exp(epsilons) * stats.norm.cdf(-0.5 / sigma - epsilons * sigma)
    assert np.max(discrete - continuous) > 1e-8


def test_noisy_count_arguments() -> None:
    for parameters in ({}, {"epsilon": 1.0, "noise_multiplier": 1.0}):
        with pytest.raises(ArgumentError, match="exactly one of epsilon and noise_multiplier"):
            noisy_count(1, **parameters)
        with pytest.raises(ArgumentError, match="exactly one of epsilon and noise_multiplier"):
            NoisyCount(**parameters).guarantee
    with pytest.raises(ArgumentError, match="epsilon"):
        noisy_count(1, epsilon=0.0)
    with pytest.raises(ArgumentError, match="noise_multiplier"):
        noisy_count(1, noise_multiplier=-1.0)
    with pytest.raises(ArgumentError, match="count"):
        noisy_count(1.5, epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="scale"):
        discrete_laplace(0)
    with pytest.raises(ArgumentError, match="variance"):
        discrete_gaussian(Fraction(-1))


def test_noisy_count_is_quick_with_a_long_fraction() -> None:
    source = keyed_source(9)
    assert abs(noisy_count(50, epsilon=0.1234567, random=source) - 50) < 1000
    assert abs(noisy_count(50, noise_multiplier=4.9123, random=source) - 50) < 100
