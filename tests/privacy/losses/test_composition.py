"""Composing loss distributions: exact laws of sums, tails far below the noise of one transform, never below the truth.

The truth is computed without transforms: sums of fractions, direct convolutions of positive masses (relative error at
most 1e-15 times their length), binomial and Gaussian closed forms.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

from dpselect.privacy import compose, dp_sgd, laplace
from dpselect.privacy.losses import composition as loss_composition
from dpselect.privacy.losses.composition import BothLosses, Losses, compose_distributions, compose_losses, unit_mass
from dpselect.privacy.losses.pld import (
    DEFAULT_INTERVAL,
    LossProfile,
    composed_interval,
    pair_from_losses,
    sampled_gaussian_loss,
)
from dpselect.privacy.profile import both_directions

WIDTH = 0.01


def direct(masses, count):
    """The count-fold convolution by repeated squaring, every sum of positive terms."""
    result, square = np.ones(1), np.asarray(masses, dtype=np.float64)
    while count:
        if count & 1:
            result = np.convolve(result, square)
        count >>= 1
        square = np.convolve(square, square) if count else square
    return result


def tails_from(losses, first, size):
    """P(loss >= (first + i) width), infinity included, for i = 0, ..., size - 1."""
    placed = np.zeros(size)
    start = losses.first - first
    placed[start : start + losses.masses.size] = losses.masses
    return np.cumsum(placed[::-1])[::-1] + losses.infinite


def assert_encloses(found, parts, excess=1e-5):
    """The tails of `found` are at least those of the direct convolution, and at most `excess` above them."""
    exact, finite = np.ones(1), 1.0
    for part, count in parts:
        exact = np.convolve(exact, direct(part.masses, count))
        finite *= (1.0 - part.infinite) ** count
    first = sum(part.first * count for part, count in parts)
    truth = np.cumsum(exact[::-1])[::-1] + (1.0 - finite)
    got = tails_from(found, first, exact.size)
    rounding = 1e-15 * exact.size
    assert np.all(got[truth > 0.0] >= truth[truth > 0.0] * (1.0 - rounding))
    assert np.all(got <= truth * (1.0 + excess + rounding) + 1.1e-40)


def losses_of(masses, first, infinite=0.0):
    masses = np.asarray(masses, dtype=np.float64)
    return Losses(WIDTH, first, masses * (1.0 - infinite) / masses.sum(), infinite)


@given(
    st.lists(st.floats(1e-12, 1.0), min_size=3, max_size=20),
    st.sampled_from([1, 2, 7, 60, 400, 1000]),
    st.integers(-15, 0),
    st.sampled_from([0.0, 0.0, 1e-9, 1e-3]),
)
@settings(max_examples=40, deadline=None)
def test_small_laws_against_direct_convolution(masses, count, first, infinite):
    part = losses_of(masses, first, infinite)
    assert_encloses(compose_losses([(part, count)]), [(part, count)])


@given(st.lists(st.floats(1e-9, 1.0), min_size=3, max_size=8), st.lists(st.floats(1e-9, 1.0), min_size=3, max_size=8))
@settings(max_examples=20, deadline=None)
def test_two_laws_against_direct_convolution(one, two):
    parts = [(losses_of(one, -2), 40), (losses_of(two, -5, 1e-7), 9)]
    assert_encloses(compose_losses(parts), parts)


def unlike_laws(count, seed=1):
    """Small laws of unlike shapes, some with infinite loss."""
    random = np.random.default_rng(seed)
    return [
        (losses_of(random.random(int(random.integers(2, 12))) ** 3, -int(random.integers(0, 9)), infinite), times)
        for infinite, times in zip(
            random.choice([0.0, 1e-9, 1e-4], count), random.integers(1, 4, count).tolist(), strict=True
        )
    ]


@pytest.mark.parametrize(("count", "together"), [(20, 8), (70, 8), (33, 2)])
def test_a_tree_against_direct_convolution(count, together, monkeypatch):
    """Three rounds of sums, or six: the tails stay above the truth, and as near to it as those of one round."""
    parts = unlike_laws(count)
    at_once = loss_composition._compose_together(parts)
    monkeypatch.setattr(loss_composition, "_TOGETHER", together)
    found = compose_losses(parts)
    assert_encloses(found, parts)
    epsilons = np.linspace(0.0, 2.0, 9)
    by_tree, flat = (pair_from_losses(losses).hockey_stick(epsilons) for losses in (found, at_once))
    assert np.allclose(by_tree, flat, rtol=1e-6, atol=0.0)


def test_a_sum_without_its_tail_is_caught(monkeypatch):
    """Tails lack mass if what an inner sum counts as infinite is forgotten."""
    whole = loss_composition._compose_together
    monkeypatch.setattr(
        loss_composition,
        "_compose_together",
        lambda parts: replace(whole(parts), infinite=0.0) if len(parts) < 8 else whole(parts),
    )
    parts = unlike_laws(20)
    with pytest.raises(AssertionError):
        assert_encloses(compose_losses(parts), parts)


@pytest.mark.parametrize("count", [9, 14])
def test_unlike_randomised_responses_exactly(count):
    """All 2^count outcomes in fractions of exp(-1/50): the sum of the parts' losses, each a multiple of the mesh."""
    steps = [3 + 2 * k for k in range(count)]
    growth = Fraction(math.exp(0.02))
    exact: dict[int, Fraction] = {0: Fraction(1)}
    for step in steps:
        likely = growth**step / (1 + growth**step)
        sums: dict[int, Fraction] = {}
        for loss, mass in exact.items():
            for moved, share in ((step, likely), (-step, 1 - likely)):
                sums[loss + moved] = sums.get(loss + moved, Fraction(0)) + mass * share
        exact = {loss: mass.limit_denominator(10**60) for loss, mass in sums.items()}
    parts = []
    for step in steps:
        likely = 1.0 / (1.0 + math.exp(-0.02 * step))
        masses = np.zeros(2 * step + 1)
        masses[0], masses[-1] = 1.0 - likely, likely
        parts.append((Losses(0.02, -step, masses, 0.0), 1))
    total = sum(steps)
    found = tails_from(compose_losses(parts), -total, 2 * total + 1)
    truth = np.cumsum([float(exact.get(loss, 0)) for loss in range(total, -total - 1, -1)])[::-1]
    assert np.all(found >= truth * (1.0 - 1e-12))
    assert np.all(found <= truth * (1.0 + 1e-8) + 1.1e-40)


def test_a_rare_large_loss_keeps_its_bumps():
    """A law that is not log-concave: one loss of 5 in 1e6, whose multiples stand out of the bulk's tail."""
    masses = np.zeros(501)
    masses[0], masses[1], masses[2], masses[500] = 0.3, 0.4, 0.3 - 1e-6, 1e-6
    part = losses_of(masses, -1)
    assert_encloses(compose_losses([(part, 30)]), [(part, 30)], excess=1e-2)


def test_fractions():
    masses = [Fraction(1, 16), Fraction(9, 16), Fraction(5, 16), Fraction(1, 16)]
    exact = [Fraction(1)]
    for _ in range(30):
        exact = [
            sum(exact[i - j] * masses[j] for j in range(4) if 0 <= i - j < len(exact)) for i in range(len(exact) + 3)
        ]
    part = losses_of([float(m) for m in masses], -1)
    found = tails_from(compose_losses([(part, 30)]), -30, len(exact))
    for i, got in enumerate(found):
        truth = sum(exact[i:], Fraction(0))
        assert got >= truth * Fraction(10**13 - 1, 10**13)
        assert got <= float(truth) * (1 + 1e-9) + 1.1e-40


def test_an_understated_mass_is_caught(monkeypatch):
    """With every bin one part in 1e9 too small some tail is below the truth: the comparison above has teeth."""
    whole = loss_composition._tilted
    monkeypatch.setattr(loss_composition, "_tilted", lambda *args: whole(*args) * (1 - 1e-9))
    part = losses_of([0.2, 0.5, 0.3], -1)
    with pytest.raises(AssertionError):
        assert_encloses(compose_losses([(part, 100)]), [(part, 100)])


def test_randomized_response_is_a_binomial():
    """Losses of n randomised responses are those of a binomial count: delta summed in logarithms, to 1e-20."""
    epsilon0, n, width = 0.5, 60, 0.01
    likely = 1.0 / (1.0 + np.exp(-epsilon0))
    once = Losses.of(pld_pmf.create_pmf({50: likely, -50: 1.0 - likely}, width, 0.0, True))
    pair = pair_from_losses(compose_distributions([(BothLosses(once, once), n)]).remove)
    successes = np.arange(n + 1)
    losses = epsilon0 * (2 * successes - n)
    for epsilon in (0.0, 5.0, 15.0, 25.0):
        terms = binom.pmf(successes, n, likely) * -np.expm1(np.minimum(epsilon - losses, 0.0))
        exact = float(np.sum(terms))
        assert exact * (1 - 1e-9) <= pair.hockey_stick(np.array([epsilon]))[0] <= exact * (1 + 1e-6)


@pytest.mark.full
@pytest.mark.parametrize("steps", [1000, 10000])
def test_dp_sgd_has_no_floor(steps):
    """The library's single transform stalls near 1e-14; in its bulk both agree."""
    single = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, value_discretization_interval=1e-4, sampling_prob=0.01
    )
    theirs = single.self_compose(steps)
    ours = sampled_gaussian_loss(1.0, 0.01, steps)(1e-4)
    for losses, peer in ((ours.remove, theirs._pmf_remove), (ours.add, theirs._pmf_add)):
        pair = pair_from_losses(losses)
        for epsilon in (0.5, 1.0, 2.0):
            found = pair.hockey_stick(np.array([epsilon]))[0]
            assert found == pytest.approx(peer.get_delta_for_epsilon(epsilon), rel=1e-4)
    tail = pair_from_losses(ours.remove).hockey_stick(np.linspace(5.0, 14.0, 91))
    assert np.all(np.diff(tail) <= 0.0)
    assert 0.0 < tail[-1] < 1e-17
    # log-concave: the fall never slows down before the 1e-40 that count as infinite
    assert np.all(np.diff(np.log(tail[tail > 1e-35]), 2) < 1e-3)


@pytest.mark.full
def test_a_finer_mesh_changes_epsilon_by_little():
    """The mesh of `dp_sgd` costs about 1e-5 of epsilon, also where its losses are far below 1e-4."""
    for noise, rate, steps in ((1.0, 0.01, 1000), (20.0, 1e-3, 10_000), (0.5, 0.3, 20)):
        total = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=steps)
        finer = LossProfile(total.loss, total.profile.interval / 4)
        epsilon = total.epsilon(delta=1e-6)
        at, below = both_directions(finer, np.array([epsilon, epsilon * (1 - 1e-4)]))
        assert at <= 1e-6 < below


def test_an_infinite_part_makes_the_sum_infinite():
    part = Losses(WIDTH, 0, np.zeros(1), 1.0)
    assert compose_losses([(part, 3), (losses_of([0.5, 0.5], 0), 2)]).infinite == 1.0


def test_repairs_raise_tails():
    masses, infinite = unit_mass(np.array([0.3, 0.5, -1e-3, 0.4]), 0.05)
    assert infinite == pytest.approx(0.05 + 4 * 1e-3 * 2)
    assert masses.tolist() == pytest.approx([0.042, 0.5, 0.0, 0.4])


def test_a_tail_below_the_noise_of_a_transform_survives_composition():
    """Laplace and sampled Gaussian together: delta continues falling below 1e-25."""
    total = compose(laplace(scale=2.0), dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=100))
    curve = total.profile.remove(np.linspace(0.0, 12.0, 121))
    assert np.all(np.diff(curve[curve > 1e-36]) < 0.0)
    assert 0.0 < curve[-1] < 1e-38


@pytest.mark.full
def test_the_mesh_of_a_composition_counts_the_steps_of_trainings():
    """Each step adds its own error: 2 trainings of 3,000 steps are 6,000 distributions, not 2."""
    training = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=3000)
    twice = compose(training, training)
    assert twice.loss.parts == 6000
    finest = LossProfile(twice.loss, DEFAULT_INTERVAL)
    epsilons = np.array([1.0, 3.0, 5.0])
    assert np.allclose(twice.profile.remove(epsilons), finest.remove(epsilons), rtol=1e-9, atol=0.0)
    # a mesh for 2 parts would be wider, and its curve higher by more than that
    assert composed_interval(twice.renyi_curve, math.inf, 2) > DEFAULT_INTERVAL
    wider = LossProfile(twice.loss, composed_interval(twice.renyi_curve, math.inf, 2))
    assert np.all(wider.remove(epsilons) > 1.0001 * finest.remove(epsilons))
