"""Renyi divergences of the sampled Gaussian against quadrature in many digits, at every order and rate."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dpselect.privacy.sampled_gaussian import SampledGaussianRenyi
from tests.privacy.profile_cases import assert_encloses


def sampled_moment_minus_one(noise_multiplier, q, order):
    """E (1 - q + q exp(x s - s^2/2))^order - 1: a binomial sum at whole orders, else a finer trapezoid rule."""
    s, q = 1 / mp.mpf(noise_multiplier), mp.mpf(q)
    if order == int(order):
        a = int(order)
        terms = (mp.binomial(a, k) * (1 - q) ** (a - k) * q**k * mp.exp((k * k - k) * s * s / 2) for k in range(a + 1))
        return mp.fsum(terms) - 1
    a = mp.mpf(order)
    step = min(mp.mpf("0.125"), 1 / (6 * s))

    def term(x):
        u = q * mp.expm1(x * s - s * s / 2)
        return mp.npdf(x) * ((1 + u) ** a - 1 - a * u)

    return step * mp.fsum(term(-13 + step * i) for i in range(int((26 + float(a * s)) / step) + 1))


@pytest.mark.cases(2)
@pytest.mark.theorem("Mironov, Talwar, Zhang 2019, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize(
    ("noise_multiplier", "sampling_rate"),
    [
        (1.0, 0.01),
        (1.0, 0.5),
        (1.0, 0.999),
        (0.5, 0.1),
        (0.3, 0.01),
        (2.0, 0.9),
        (4.0, 0.01),
        (10.0, 1e-3),
        (100.0, 1e-3),
        (1e3, 1e-6),
        (1.0, 1e-6),
        (30.0, 1e-10),
    ],
)
def test_sampled_gaussian_quadrature(noise_multiplier, sampling_rate):
    with mp.workdps(50):
        for order in (1.01, 1.5, 2.0, 3.7, 8.0, 33.0, 100.5, 256.0):
            if order > 9.0 and noise_multiplier < 0.9 and order != int(order):
                continue  # the reference sum is long there
            truth = mp.log1p(sampled_moment_minus_one(noise_multiplier, sampling_rate, order)) / (mp.mpf(order) - 1)
            got = SampledGaussianRenyi(noise_multiplier, sampling_rate, 1)(np.array([order]))[0]
            assert_encloses(got, truth, excess=1e-9)


@pytest.mark.full
@pytest.mark.parametrize(
    ("noise_multiplier", "sampling_rate"),
    [(0.002, 1e-6), (0.05, 0.3), (0.5, 1e-12), (1.0, 0.01), (5.0, 0.999), (30.0, 1e-10), (1e5, 0.5)],
)
def test_whole_orders_are_exact_up_to_2048_among_others(noise_multiplier, sampling_rate):
    whole = np.array([2.0, 3.0, 12.0, 65.0, 640.0, 2048.0])
    mixed = np.concatenate((whole, whole + 0.5, [1.25]))
    got = SampledGaussianRenyi(noise_multiplier, sampling_rate, 1)(mixed)
    with mp.workdps(80):
        for order, value in zip(whole, got, strict=False):
            truth = mp.log1p(sampled_moment_minus_one(noise_multiplier, sampling_rate, order)) / (mp.mpf(order) - 1)
            assert_encloses(value, truth, excess=1e-9)
    # a divergence grows with its order, whichever of the three ways it is computed by
    assert np.all(np.diff(got[np.argsort(mixed)]) >= -1e-9 * got.max())


@pytest.mark.cases(1)
@pytest.mark.parametrize(("noise_multiplier", "sampling_rate"), [(0.3, 1e-8), (0.5, 1e-3), (0.8, 0.02), (2.0, 0.2)])
def test_small_moments_keep_their_digits_next_to_order_one(noise_multiplier, sampling_rate):
    """All orders in one call, as a search asks for them: what is summed and what is expanded depends on the points."""
    orders = np.array([1.001, 1.05, 1.4, 2.7, 5.3, 11.9])
    got = SampledGaussianRenyi(noise_multiplier, sampling_rate, 1)(orders)
    with mp.workdps(50):
        for order, value in zip(orders, got, strict=True):
            truth = mp.log1p(sampled_moment_minus_one(noise_multiplier, sampling_rate, order)) / (mp.mpf(order) - 1)
            assert_encloses(value, truth, excess=max(1e-10, 1e-12 / (order - 1.0)))


@pytest.mark.parametrize("noise_multiplier", [1e8, 1e100, 1e200])
def test_a_sampled_curve_under_vast_noise_is_not_below_its_first_order(noise_multiplier):
    orders = np.array([1.01, 2.0, 2.5, 64.0, 2048.0, 1e5])
    got = SampledGaussianRenyi(noise_multiplier, 1e-3, 1)(orders)
    # order q^2 (exp(s^2) - 1) / 2 to first order in s^2, from below
    assert np.all(got >= orders * 0.5e-6 / noise_multiplier / noise_multiplier * (1 - 1e-3))
    assert np.all(got >= 0.0)


def test_the_reference_for_fractional_orders_agrees_with_the_binomial_sum():
    fine = sampled_moment_minus_one(1.0, 0.1, 4)
    coarse = sampled_moment_minus_one(1.0, 0.1, mp.mpf(4) + mp.mpf(10) ** -25)
    assert abs(coarse / fine - 1) < 1e-20


@pytest.mark.parametrize("noise_multiplier", [1e-300, 1e-3, 0.01, 0.02, 0.05, 0.1, 1.0, 1e3])
def test_the_sampled_curve_is_finite_in_time_and_below_the_unsampled_one_everywhere(noise_multiplier):
    orders = 1.0 + np.geomspace(1e-2, 1e7, 60)
    for q in (1e-6, 0.3, 1.0):
        curve = SampledGaussianRenyi(noise_multiplier, q, 1)(orders)
        assert not np.any(np.isnan(curve))
        with np.errstate(over="ignore"):
            assert np.all(curve <= orders / noise_multiplier / noise_multiplier / 2 * (1 + 1e-11))
    # whole orders have a closed form, also where the library uses a looser one
    if 0.01 < noise_multiplier < 2.0:
        for order in (2, 5, 30):
            truth = mp.log1p(sampled_moment_minus_one(noise_multiplier, 0.3, order)) / (order - 1)
            assert SampledGaussianRenyi(noise_multiplier, 0.3, 1)(np.array([float(order)]))[0] >= truth
