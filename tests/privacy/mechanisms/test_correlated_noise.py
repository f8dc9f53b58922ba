"""Noise correlated over the steps: every pattern of participation, and samples in the plane."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import correlated_noise, dp_sgd, gaussian
from dpselect.privacy.mechanisms.correlated_noise import toeplitz_sensitivity


def matrix(column, steps):
    return np.array([[column[i - j] if 0 <= i - j < len(column) else 0.0 for j in range(steps)] for i in range(steps)])


def patterns(steps, separation, most):
    for count in range(1, most + 1):
        for chosen in itertools.combinations(range(steps), count):
            if all(b - a >= separation for a, b in itertools.pairwise(chosen)):
                yield list(chosen)


def largest(column, steps, separation, most):
    """The largest move over all patterns, and over gradients of both signs."""
    c = matrix(column, steps)
    return max(
        float(np.linalg.norm(c[:, chosen] @ signs))
        for chosen in patterns(steps, separation, most)
        for signs in itertools.product((1.0, -1.0), repeat=len(chosen))
    )


@pytest.mark.theorem("docs/theory/correlated-noise.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("seed", range(12))
def test_no_pattern_moves_the_output_farther_and_one_attains_it(seed):
    draws = np.random.default_rng(seed)
    steps, separation = int(draws.integers(2, 9)), int(draws.integers(1, 4))
    most = int(draws.integers(1, -(-steps // separation) + 1))
    column = np.sort(draws.uniform(size=int(draws.integers(1, steps + 1))))[::-1]
    found = toeplitz_sensitivity(column, steps, separation, most)
    exact = largest(column, steps, separation, most)
    assert exact <= found
    assert found <= exact * (1.0 + 1e-8)
    # the lower end is not above the truth, with or without a last band that the steps cut off
    priced = correlated_noise(
        noise_multiplier=1, coefficients=column, steps=steps, min_separation=separation, max_participations=most
    )
    lower = float(priced.lower_profile.remove(np.array([1.0]))[0])
    true = float(gaussian(noise_multiplier=1.0 / exact).profile.remove(np.array([1.0]))[0])
    assert true * (1.0 - 1e-6) <= lower <= true


@pytest.mark.theorem("docs/theory/correlated-noise.md, Theorem 1", exact=True)
@pytest.mark.parametrize("seed", range(4))
def test_bands_that_do_not_overlap_may_have_any_sign(seed):
    draws = np.random.default_rng(seed)
    column = draws.normal(size=3)
    assert largest(column, 8, 3, 3) <= toeplitz_sensitivity(column, 8, 3, 3)


@pytest.mark.theorem("docs/theory/correlated-noise.md, Theorem 2", exact=True, sharp=True)
def test_two_sampled_steps_are_the_mixture_in_the_plane():
    """One group of two takes part in the first of two steps, whose noise enters the second one too."""
    noise, rate, c = 1.3, 0.3, 0.7
    found = correlated_noise(
        noise_multiplier=noise, coefficients=[1.0, c], steps=2, min_separation=2, sampling_rate=rate
    )
    axis = np.linspace(-9.0, 9.0, 721)
    x, y = np.meshgrid(axis, axis)
    phi = np.exp(-0.5 * (x * x + y * y)) / (2.0 * math.pi) * (axis[1] - axis[0]) ** 2
    ratio = 1.0 - rate + rate * np.exp((x + c * y) / noise - 0.5 * (1.0 + c * c) / noise**2)
    for epsilon in (0.0, 0.1, 0.3, 0.8):
        a = math.exp(epsilon)
        exact = max(
            float(np.sum(phi * np.maximum(ratio - a, 0.0))), float(np.sum(phi * np.maximum(1.0 - a * ratio, 0.0)))
        )
        assert exact * (1.0 - 1e-3) <= found.delta(epsilon) <= exact * 1.005 + 1e-6


def test_special_cases():
    plain = correlated_noise(noise_multiplier=4, coefficients=1, steps=16)
    assert plain.epsilon(1e-6) == pytest.approx(gaussian(noise_multiplier=1).epsilon(1e-6), rel=1e-6)
    replaced = correlated_noise(noise_multiplier=4, coefficients=[1], steps=4, adjacency="replace_one")
    assert replaced.epsilon(1e-6) == pytest.approx(gaussian(noise_multiplier=1).epsilon(1e-6), rel=1e-6)
    # with one band and one group it is DP-SGD
    sampled = correlated_noise(noise_multiplier=1, coefficients=1, steps=100, sampling_rate=0.01)
    assert sampled.epsilon(1e-6) == pytest.approx(
        dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=100).epsilon(1e-6), rel=1e-6
    )
    # one participation: the norm of the column, 1 + 1/4 + 9/64
    once = correlated_noise(noise_multiplier=math.sqrt(89 / 64), coefficients=3, steps=50, max_participations=1)
    assert once.epsilon(1e-6) == pytest.approx(gaussian(noise_multiplier=1).epsilon(1e-6), rel=1e-6)


@pytest.mark.parametrize("rate", [None, 0.1])
def test_coefficients_of_any_size_have_the_price_of_those_near_one(rate):
    def price(unit, noise):
        return correlated_noise(
            noise_multiplier=noise, coefficients=[unit, 0.5 * unit], steps=4, min_separation=2, sampling_rate=rate
        )

    near = price(1.0, 0.7).delta(0.5)
    for power in (-149, -120, 155, 300):
        assert price(10.0**power, 0.7 * 10.0**power).delta(0.5) == pytest.approx(near, rel=1e-8)
    # squares of such coefficients are 0, and the noise is so much larger
    assert 0.0 < price(1e-200, 1e-150).delta(0.0) < 1e-49
    assert 0.0 < price(1e-10, 1e308).delta(0.0) < 1e-149
    with pytest.raises(ArgumentError, match="what a row of norm 1 moves"):
        price(1e10, 1e-150)


def test_a_last_block_that_is_cut_off_is_no_lower_end():
    def lower(steps):
        found = correlated_noise(
            noise_multiplier=1, coefficients=[1, 1], steps=steps, min_separation=2, sampling_rate=0.5
        )
        return float(found.lower_profile.remove(np.array([0.5]))[0])

    assert lower(3) == lower(2) < lower(4)


def test_half_of_many_participations_are_summed_at_once():
    column = np.ones(200_000)
    # 1, 2, ..., 100,000, and as many again of 100,000
    exact = sum(i * i for i in range(1, 100_001)) + 100_000 * 100_000**2
    assert toeplitz_sensitivity(column, column.size, 1, 100_000) == pytest.approx(math.sqrt(exact), rel=3e-9)


def test_many_steps_are_quick_and_few_participations_cost_less():
    every = correlated_noise(noise_multiplier=100, coefficients=1000, steps=100_000, min_separation=100)
    few = correlated_noise(
        noise_multiplier=100, coefficients=1000, steps=100_000, min_separation=100, max_participations=5
    )
    assert few.epsilon(1e-6) < every.epsilon(1e-6)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"coefficients": [0.0, 1.0]}, "begin with a number above 0"),
        ({"coefficients": []}, "begin with a number above 0"),
        ({"coefficients": 0}, "coefficients"),
        ({"coefficients": [1.0, -0.5]}, "no bound is known"),
        ({"coefficients": [1.0, 2.0]}, "no bound is known"),
        ({"coefficients": 3, "min_separation": 2, "sampling_rate": 0.1}, "min_separation"),
        ({"coefficients": 1, "sampling_rate": 0.1, "max_participations": 2}, "max_participations"),
        ({"coefficients": 1, "steps": 0}, "steps"),
        ({"coefficients": 1, "min_separation": 0}, "min_separation"),
        ({"coefficients": 1, "sampling_rate": 1.5}, "sampling_rate"),
        ({"coefficients": 1.5}, "coefficients"),
    ],
)
def test_what_has_no_proof_is_refused(settings, match):
    with pytest.raises(ArgumentError, match=match):
        correlated_noise(**{"noise_multiplier": 1.0, "steps": 10, **settings})
