"""DP-SGD under replacing a row: its pair against closed forms, rows of other directions, and adaptive steps."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from dpselect.privacy import dp_sgd
from dpselect.privacy.losses.replaced_gaussian import replaced_gaussian_curve


def truth(noise, rate, epsilon):
    """H of (1-q) N(0) + q N(s) against (1-q) N(0) + q N(-s): P(x > c) - a Q(x > c) at the c with this loss."""
    s, q, a = 1 / mp.mpf(noise), mp.mpf(rate), mp.exp(mp.mpf(epsilon))
    k, rest = mp.exp(-s * s / 2), (1 - q) * (a - 1)
    c = mp.log((rest + mp.sqrt(rest * rest + 4 * a * q * q * k * k)) / (2 * q * k)) / s
    first, second = (1 - q) * mp.ncdf(-c) + q * mp.ncdf(s - c), (1 - q) * mp.ncdf(-c) + q * mp.ncdf(-s - c)
    return first - a * second


def cases(count, seed):
    draws = np.random.default_rng(seed)
    return [
        (10 ** draws.uniform(-0.7, 3.0), min(10 ** draws.uniform(-5.0, 0.0), 0.999), draws.uniform(0.0, 1.0) ** 2)
        for _ in range(count)
    ]


@pytest.mark.theorem("docs/theory/samples.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "rate", "share"), cases(24, seed=1))
def test_the_curve_is_its_closed_form_and_its_error_is_bounded(noise, rate, share):
    s = 1.0 / noise
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + s * (s + 10.0) - 0.5 * s * s)
    epsilon = share * min(float(far), 300.0)
    values, error = replaced_gaussian_curve(noise, rate, np.array([epsilon]))
    with mp.workdps(60):
        exact = truth(noise, rate, epsilon)
        assert exact <= mp.mpf(float(values[0])) + mp.mpf(float(error[0]))
        assert mp.mpf(float(values[0])) * (1 - mp.mpf("2e-12")) - 2 * mp.mpf(float(error[0])) <= exact
    assert error[0] <= 1e-9 * values[0]


@pytest.mark.theorem("docs/theory/samples.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (1.0, 1e-6), (0.5, 0.3), (5.0, 0.9)])
def test_one_step_under_replacement_against_its_closed_form(noise, rate):
    guarantee = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1, adjacency="replace_one")
    assert guarantee.profile is not None
    epsilons = np.geomspace(rate / 100, 3.0, 25)
    with mp.workdps(40):
        exact = np.array([float(truth(noise, rate, e)) for e in epsilons])
    found = guarantee.profile.remove(epsilons)
    assert np.all(found >= exact * (1 - 1e-13) - 1e-17)
    assert np.all(found <= exact + 1e-8 + (2e-3 * rate if rate > 1e-4 else rate))
    assert guarantee.profile.add(epsilons) == pytest.approx(found, rel=1e-9)


def two_dimensional(rate, a, first, second):
    """H_a of (1-q) N(0) + q N(first) against (1-q) N(0) + q N(second) in the plane, by the trapezoid rule."""
    axis = np.linspace(-9.0, 9.0, 361)
    x, y = np.meshgrid(axis, axis)
    phi = np.exp(-0.5 * (x * x + y * y)) / (2.0 * math.pi)
    f, g = (np.exp(u * x + v * y - 0.5 * (u * u + v * v)) for u, v in (first, second))
    inside = np.maximum((1.0 - rate) * (1.0 - a) + rate * (f - a * g), 0.0)
    return float(np.sum(phi * inside)) * (axis[1] - axis[0]) ** 2


@pytest.mark.theorem("docs/theory/samples.md, Theorem 4", exact=True)
@pytest.mark.parametrize("seed", range(4))
def test_no_two_rows_of_bounded_norm_exceed_the_curve(seed):
    """Rows of any two directions and lengths, opposite ones of full length among them."""
    draws = np.random.default_rng(seed)
    for trial in range(12):
        noise, rate, epsilon = 10 ** draws.uniform(-0.3, 0.7), draws.uniform(0.01, 0.9), draws.uniform(-1.0, 2.0)
        lengths = np.sqrt(draws.uniform(size=2)) / noise
        angles = draws.uniform(0.0, 2.0 * math.pi, size=2)
        if trial % 4 == 0:
            lengths[:], angles[1] = 1.0 / noise, angles[0] + math.pi
        first, second = ((r * math.cos(w), r * math.sin(w)) for r, w in zip(lengths, angles, strict=True))
        found = two_dimensional(rate, math.exp(epsilon), first, second)
        values, _ = replaced_gaussian_curve(noise, rate, np.array([abs(epsilon)]))
        bound = float(values[0])
        if epsilon < 0.0:  # reciprocity
            bound = -math.expm1(epsilon) + math.exp(epsilon) * bound
        assert found <= bound + 2e-5 * rate
        if trial % 4 == 0:
            assert found >= bound - 2e-5 * rate


def masses(edges, mean):
    return np.diff(ndtr(np.concatenate(([-np.inf], edges, [np.inf])) - mean))


@pytest.mark.theorem("docs/theory/samples.md, Theorem 4", exact=True)
@pytest.mark.parametrize("seed", range(4))
def test_two_adaptive_steps_with_finite_outputs(seed):
    """Outputs are rounded to cells, and the gradients of the second step depend on the first cell: all outputs."""
    draws = np.random.default_rng(seed)
    noise, rate = draws.uniform(0.6, 2.0), draws.uniform(0.05, 0.8)
    edges = np.linspace(-4.0, 4.0, 41)

    def step(gradient):
        return (1.0 - rate) * masses(edges, 0.0) + rate * masses(edges, gradient / noise)

    pairs = [(1.0, -1.0), *draws.uniform(-1.0, 1.0, size=(41, 2)).tolist()]
    if seed == 0:
        pairs = [(1.0, -1.0)] * 42
    before, after = (step(each) for each in pairs[0])
    first = np.concatenate([p * step(u) for p, (u, _) in zip(before, pairs[1:] + pairs[:1], strict=True)])
    second = np.concatenate([p * step(v) for p, (_, v) in zip(after, pairs[1:] + pairs[:1], strict=True)])
    assert first.sum() == pytest.approx(1.0)
    guarantee = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=2, adjacency="replace_one")
    for (one, other), epsilon in itertools.product([(first, second), (second, first)], (0.0, 0.3, 1.0, 2.0)):
        exact = float(np.sum(np.maximum(one - math.exp(epsilon) * other, 0.0)))
        bound = guarantee.delta(epsilon)
        assert exact <= bound
        if seed == 0 and epsilon <= 1.0:  # cells lose little
            assert bound <= exact * 1.02 + 1e-6


def test_the_bracket_of_many_steps_is_narrow():
    low, high = dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=1000, adjacency="replace_one").epsilon_bracket(
        1e-5
    )
    # dp-accounting 0.6.0 gives 2.8434 by connecting the dots
    assert high == pytest.approx(2.8434, abs=5e-4)
    assert low < high < low * 1.0005


def test_a_rate_near_zero_costs_next_to_nothing():
    for steps, noise in ((1, 1.0), (1000, 1.0), (1, 0.02)):
        found = dp_sgd(noise_multiplier=noise, sampling_rate=1e-310, steps=steps, adjacency="replace_one")
        assert 0.0 <= found.delta(0.0) <= 1e-12
        assert found.epsilon_bracket(1e-6)[0] == 0.0


@pytest.mark.parametrize("noise", [1e4, 1e6, 1e8])
def test_small_divergences_at_epsilon_zero_are_rounded_up(noise):
    for rate in (0.1, 0.5, 0.9):
        truth = rate * math.erf(1.0 / noise / math.sqrt(2.0))  # q (Phi(s) - Phi(-s))
        found = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1, adjacency="replace_one").delta(0.0)
        assert truth * (1.0 - 1e-14) <= found <= truth * (1.0 + 1e-3) + 1e-13
