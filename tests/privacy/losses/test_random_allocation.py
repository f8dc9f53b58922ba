"""Random allocation: the mean of lognormals against integrals, finite outputs and samples, and its meshes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

from dpselect.errors import ArgumentError
from dpselect.privacy import random_allocation
from dpselect.privacy.losses.pld import LossProfile, pair_from_losses
from dpselect.privacy.losses.random_allocation import allocation_mesh, mean_ratio, random_allocation_loss

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def call(strike, s):
    """E (L - strike)_+ of one lognormal L with mean 1."""
    if strike <= 0.0:
        return 1.0 - strike
    near = -math.log(strike) / s + 0.5 * s
    return float(ndtr(near) - strike * ndtr(near - s))


def mean_call(a, s, steps):
    """E (R - a)_+ of the mean of two or three lognormals, by the trapezoid rule on all but one of them."""
    x = np.linspace(-11.0, 11.0 + s, 353 if steps == 3 else 40_001)
    density = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (x[1] - x[0])
    ratio = np.exp(s * x - 0.5 * s * s)
    if steps == 3:
        ratio, density = np.add.outer(ratio, ratio).ravel(), np.outer(density, density).ravel()
    strike = steps * a - ratio
    with np.errstate(invalid="ignore", divide="ignore"):
        near = -np.log(strike) / s + 0.5 * s
        prices = np.where(strike > 0.0, ndtr(near) - strike * ndtr(near - s), 1.0 - strike)
    return float(np.sum(density * prices)) / steps


def exact_delta(epsilon, s, steps):
    """Of P from Q, and of Q from P by parity: (1 - aR)_+ = a (R - 1/a)_+ - (aR - 1)."""
    a = math.exp(epsilon)
    return mean_call(a, s, steps), a * mean_call(1.0 / a, s, steps) - (a - 1.0)


def test_the_integral_of_two_is_that_of_an_adaptive_rule():
    for s, a in ((0.5, 1.2), (1.0, 1.0), (2.0, 3.0)):
        adaptive, _ = integrate.quad(
            lambda x, s=s, a=a: (
                math.exp(-0.5 * x * x) * call(2.0 * a - math.exp(s * x - 0.5 * s * s), s) / math.sqrt(8.0 * math.pi)
            ),
            -12.0,
            12.0 + s,
            epsabs=1e-13,
            limit=500,
        )
        assert mean_call(a, s, 2) == pytest.approx(adaptive, abs=1e-8)


@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("noise", [0.4, 0.7, 1.0, 3.0])
def test_two_and_three_steps_against_integrals(noise, steps):
    ratio = mean_ratio(noise, steps, allocation_mesh(noise, steps))
    remove, add = (pair_from_losses(losses) for losses in ratio.both())
    for epsilon in EPSILONS:
        for found, exact in zip((remove, add), exact_delta(epsilon, 1.0 / noise, steps), strict=True):
            bound = float(found.hockey_stick(np.array([epsilon]))[0])
            assert exact <= bound + 1e-8
            assert bound <= exact * 1.01 + 2e-6


@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 2", exact=True)
@pytest.mark.parametrize("seed", range(3))
def test_any_mesh_is_a_bound(seed):
    """Coarse meshes, fine ones and those of another width, each above a mesh that is finer."""
    draws = np.random.default_rng(seed)
    noise, steps = 10 ** draws.uniform(-0.5, 1.0), int(draws.integers(2, 12))
    own = allocation_mesh(noise, steps)
    epsilons = np.geomspace(0.01 / noise, 4.0 / noise, 12)
    finest = LossProfile(random_allocation_loss(noise, steps), own)
    for width in (own * 0.7, own * 1.7, own * 9.0):
        profile = LossProfile(random_allocation_loss(noise, steps), width)
        for found, least in ((profile.remove, finest.remove), (profile.add, finest.add)):
            assert np.all(found(epsilons) >= least(epsilons) * (0.98 if width < own * 2.0 else 1.0) - 1e-12)


@pytest.mark.parametrize(("noise", "steps"), [(0.05, 3), (0.3, 1000), (1.0, 7), (50.0, 64)])
def test_the_masses_keep_their_sum_and_their_mean(noise, steps):
    ratio = mean_ratio(noise, steps, allocation_mesh(noise, steps))
    assert 1.0 <= float(np.sum(ratio.masses)) <= 1.0 + 1e-6
    assert 1.0 - 1e-9 <= float(np.sum(ratio.masses * np.exp(ratio.losses))) <= 1.0 + 1e-6
    assert max(ratio.zero, ratio.infinite) < 1e-30


def test_less_noise_than_float64_holds_is_refused():
    with pytest.raises(ArgumentError, match="noise_multiplier"):
        mean_ratio(0.04, 2, 0.1)


def cells(mean):
    edges = np.linspace(-3.0, 3.0, 14)
    return np.diff(ndtr(np.concatenate(([-np.inf], edges, [np.inf])) - mean))


@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 1", exact=True)
@pytest.mark.parametrize("seed", range(4))
def test_three_adaptive_steps_with_finite_outputs(seed):
    """Outputs are rounded to cells. The row's gradient depends on the cells before. All 15^3 outputs are listed."""
    draws = np.random.default_rng(seed)
    noise = draws.uniform(0.5, 2.0)
    zero = cells(0.0)
    rules = [draws.uniform(-1.0, 1.0, size=15**k) if seed else np.ones(15**k) for k in range(3)]
    taken, untouched = [], np.ones(1)
    for step in range(3):
        # the outputs of a row that takes part in this step: given the cells before, its own gradient
        with_row = np.concatenate([cells(gradient / noise) for gradient in rules[step]])
        repeated = np.repeat(untouched, 15)
        taken = [np.repeat(each, 15) * np.tile(zero, 15**step) for each in taken] + [repeated * with_row]
        untouched = repeated * np.tile(zero, 15**step)
    first, second = np.mean(taken, axis=0), untouched
    assert first.sum() == pytest.approx(1.0)
    guarantee = random_allocation(noise_multiplier=noise, steps_per_epoch=3)
    for (one, other), epsilon in itertools.product([(first, second), (second, first)], EPSILONS):
        exact = float(np.sum(np.maximum(one - math.exp(epsilon) * other, 0.0)))
        assert exact <= guarantee.delta(epsilon)
    if not seed:
        largest = max(float(np.sum(np.maximum(one - other, 0.0))) for one, other in ((first, second), (second, first)))
        assert guarantee.delta(0.0) <= largest * 1.03


@pytest.mark.full
@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "steps", "epsilon"), [(1.0, 100, 0.2), (0.5, 100, 2.0), (1.0, 400, 0.1)])
def test_many_steps_against_samples(noise, steps, epsilon):
    """delta as the mean of values in [0, 1]: an empirical Bernstein bound that fails once in 1e9, on either side."""
    draws, s, blocks, rows = np.random.default_rng(7), 1.0 / noise, 40, 10_000
    found = []
    for _ in range(blocks):
        x = draws.standard_normal((rows, steps))
        x[:, 0] += s
        found.append(np.maximum(1.0 - math.exp(epsilon) / np.mean(np.exp(s * x - 0.5 * s * s), axis=1), 0.0))
    values = np.concatenate(found)
    log = math.log(3e9)
    radius = math.sqrt(2.0 * float(np.var(values)) * log / values.size) + 3.0 * log / values.size
    bound = float(
        LossProfile(random_allocation_loss(noise, steps), allocation_mesh(noise, steps)).remove(np.array([epsilon]))[0]
    )
    assert abs(bound - float(np.mean(values))) <= radius + 1e-3 * bound
    assert radius < 0.2 * bound
