"""Random allocation under replacing a row: integrals, adaptive steps with finite outputs, samples, and the knots."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpselect.privacy.losses.pld import LossProfile
from dpselect.privacy.losses.replaced_allocation import (
    replaced_allocation_delta,
    replaced_allocation_knots,
    replaced_allocation_loss,
    replaced_allocation_mesh,
)
from dpselect.privacy.profile import GaussianProfile

EPSILONS = (0.0, 0.2, 0.6, 1.5, 3.0)


def call(strike, a, s):
    """E (D + strike)_+ of one D, exact."""
    x = (0.5 * math.log(a) + np.arcsinh(-0.5 * strike * math.exp(0.5 * s * s - 0.5 * math.log(a)))) / s
    return ndtr(s - x) - a * ndtr(-s - x) + strike * ndtr(-x)


def exact_delta(noise, steps, epsilon):
    """The divergence of two or three steps, by the trapezoid rule on all but one of them."""
    s, a = 1.0 / noise, math.exp(epsilon)
    x = np.linspace(-9.0 - s, 9.0 + s, 401 if steps == 3 else 20_001)
    weights = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (x[1] - x[0])
    sums = np.exp(s * x - 0.5 * s * s) - a * np.exp(-s * x - 0.5 * s * s)
    if steps == 3:
        sums, weights = np.add.outer(sums, sums).ravel(), np.outer(weights, weights).ravel()
    return float(np.sum(weights * call(sums, a, s))) / steps


@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "steps"), [(0.8, 2), (1.0, 3), (3.0, 2), (3.0, 3)])
def test_two_and_three_steps_against_integrals(noise, steps):
    for epsilon in EPSILONS:
        bound, exact = replaced_allocation_delta(noise, steps, epsilon), exact_delta(noise, steps, epsilon)
        assert exact <= bound * (1.0 + 1e-7)
        assert bound <= exact * (1.005 if exact > 1e-3 else 1.03)


def test_the_integral_at_epsilon_zero_is_that_of_one_step():
    # one step of an epoch is a Gaussian that moves by two
    assert replaced_allocation_delta(1.0, 1, 0.7) == pytest.approx(
        float(GaussianProfile(2.0).at(np.array(0.7))), rel=5e-3
    )


def cells(mean):
    edges = np.linspace(-4.0, 4.0, 21)
    return np.diff(ndtr(np.concatenate(([-np.inf], edges, [np.inf])) - mean))


@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("seed", range(4))
def test_two_adaptive_steps_with_finite_outputs(seed):
    """Outputs are rounded to cells. Both rows' gradients depend on the cell before. All outputs are listed."""
    draws = np.random.default_rng(seed)
    noise = draws.uniform(0.7, 2.0)
    zero, count = cells(0.0), cells(0.0).size
    chosen = draws.uniform(-1.0, 1.0, size=(2, count + 1))
    if seed == 1:
        chosen = np.sign(chosen)
    if seed == 0:
        chosen[0], chosen[1] = 1.0, -1.0
    laws = []
    for first, *later in chosen:
        second = np.array([cells(gradient / noise) for gradient in later])
        laws.append(0.5 * (np.outer(cells(first / noise), zero) + zero[:, None] * second).ravel())
    assert laws[0].sum() == pytest.approx(1.0)
    for (one, other), epsilon in itertools.product([laws, laws[::-1]], EPSILONS):
        exact = float(np.sum(np.maximum(one - math.exp(epsilon) * other, 0.0)))
        bound = replaced_allocation_delta(noise, 2, epsilon)
        assert exact <= bound
        if not seed and epsilon <= 0.6:  # cells lose little
            assert bound <= exact * 1.03


@pytest.mark.full
@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "steps", "epsilon"), [(1.0, 100, 0.3), (0.5, 100, 2.0), (1.0, 1000, 0.05)])
def test_many_steps_against_samples(noise, steps, epsilon):
    """delta as the mean of values in [0, 1], between empirical Bernstein bounds that fail once in 1e9."""
    draws, s = np.random.default_rng(7), 1.0 / noise
    found = []
    for _ in range(40):
        x = draws.standard_normal((1_000_000 // steps, steps))
        x[:, 0] += s
        ratio = np.mean(np.exp(-s * x), axis=1) / np.mean(np.exp(s * x), axis=1)
        found.append(np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0))
    values = np.concatenate(found)
    log = math.log(3e9)
    radius = math.sqrt(2.0 * float(np.var(values)) * log / values.size) + 3.0 * log / values.size
    bound = replaced_allocation_delta(noise, steps, epsilon)
    assert float(np.mean(values)) - radius <= bound
    assert bound <= (float(np.mean(values)) + radius) * 1.02


@pytest.mark.theorem("docs/theory/random-allocation.md, Theorem 4", exact=True)
def test_blocks_of_steps_on_wider_meshes_stay_above_one_sum():
    """300 steps take blocks of 4; with all sums on one mesh the bound is smaller, by little."""
    from dpselect.privacy.losses import replaced_allocation as module

    one, width, cut = module._difference(1.0, math.exp(0.2), 300)
    plain = module.compose_losses([(one.repaired(), 300)])
    least = float(np.sum(plain.masses * np.maximum(plain.values, 0.0))) / 300 * width / 1e-3 + cut
    assert least <= replaced_allocation_delta(1.0, 300, 0.2) <= least * 1.005


def test_chords_between_the_knots_are_near_and_epochs_compose():
    epsilons, deltas = replaced_allocation_knots(5.0, 20)
    assert epsilons[0] == 0.0
    assert np.all(np.diff(epsilons) > 0.0)
    assert np.all(np.diff(deltas) <= 0.0)
    assert deltas[-1] <= 1e-15
    profile = LossProfile(replaced_allocation_loss(5.0, 20), replaced_allocation_mesh(5.0, 20))
    between = 0.5 * (epsilons[4] + epsilons[5])
    exact = replaced_allocation_delta(5.0, 20, between)
    assert exact <= float(profile.remove(np.array([between]))[0]) <= exact * 1.03
    assert profile.add(np.array([between])) == profile.remove(np.array([between]))
    twice = LossProfile(replaced_allocation_loss(5.0, 20, 2), replaced_allocation_mesh(5.0, 20))
    assert float(twice.remove(np.array([between]))[0]) > exact
