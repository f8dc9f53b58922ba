"""Privacy-loss distributions: the repair, the discretised profiles, and mixed compositions."""

from __future__ import annotations

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from hypothesis import given, strategies as st

from dpselect.privacy import approximate_dp, compose, dp_sgd, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.losses.composition import Losses
from dpselect.privacy.losses.pld import (
    LossProfile,
    pair_from_losses,
    profile_loss,
    sampled_gaussian_loss,
    suitable_interval,
)
from dpselect.privacy.mechanisms.laplace import LaplaceRenyi
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    MinimumProfile,
    PrivacyProfile,
    RenyiProfile,
    extend,
)
from dpselect.privacy.renyi import LinearRenyi, SumRenyi

INFINITY = float("inf")


def sampled(noise, rate, steps):
    return sampled_gaussian_loss(noise, rate, steps)


@pytest.mark.cases(1)
@pytest.mark.parametrize("setting", [(1.0, 0.01, 1000), (1.0, 0.01, 1), (2.0, 1e-3, 100)])
def test_the_repair_never_falls_below_dp_accounting_and_stays_beside_it(setting):
    distribution = sampled(*setting)(1e-4)
    epsilons = np.concatenate([np.linspace(0.0, 12.0, 301), np.geomspace(1e-6, 1.0, 50)])
    for losses in distribution:
        ours = pair_from_losses(losses).hockey_stick(epsilons)
        pmf = pld_pmf.DensePLDPmf(losses.width, losses.first, losses.masses, losses.infinite, True)
        theirs = np.array([pmf.get_delta_for_epsilon(e) for e in epsilons])
        # theirs sums terms of both signs of noise; 1e-12 relative is the rounding of both sums, which profiles add
        assert np.all(ours >= theirs * (1 - 1e-12) - 1e-17)
        assert np.all(ours <= theirs + np.maximum(1e-6 * theirs, 2e-12))


@pytest.mark.parametrize("setting", [(1.0, 0.01, 1000), (1.0, 1e-4, 10000)])
def test_the_repaired_pair_is_a_pair_of_distributions(setting):
    distribution = sampled(*setting)(1e-4)
    for losses in distribution:
        pair = pair_from_losses(losses)
        assert np.sum(pair.upper) == pytest.approx(1.0, abs=1e-12)
        assert np.sum(pair.lower) == pytest.approx(1.0, abs=1e-12)
        assert np.all(pair.upper >= 0)
        assert np.all(pair.lower >= 0)
        inner = (pair.upper > 0) & (pair.lower > 0)
        # only the atoms that were cut to unit mass may have a larger ratio than their loss says
        ratio = np.log(pair.upper[inner] / pair.lower[inner])
        assert np.mean(np.abs(ratio - pair.losses[inner]) < 1e-9) > 0.99


def small_losses(probabilities, infinity=0.0, lower=0):
    return Losses(0.5, lower, np.array(probabilities), infinity)


def test_missing_excess_and_negative_mass():
    missing = pair_from_losses(small_losses([0.5, 0.2], 0.1))
    assert missing.upper[-1] == pytest.approx(0.3)
    excess = pair_from_losses(small_losses([0.5, 0.8], 0.1))
    assert excess.upper.tolist() == pytest.approx([0.0, 0.1, 0.8, 0.1])
    noisy = pair_from_losses(small_losses([0.5, -1e-3, 0.5]))
    assert np.all(noisy.upper >= 0)
    assert noisy.upper[-1] >= 4e-3
    below_zero = pair_from_losses(small_losses([1.0], -1e-17))
    assert below_zero.upper[-1] == 0.0


def test_many_steps_lie_above_an_optimistic_estimate():
    event = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, value_discretization_interval=1e-3, sampling_prob=0.1
    ).self_compose(30)
    profile = dp_sgd(noise_multiplier=1.0, sampling_rate=0.1, steps=30).profile
    assert profile is not None
    epsilons = np.linspace(0.0, 6.0, 61)
    for ours, pmf in ((profile.remove(epsilons), event._pmf_remove), (profile.add(epsilons), event._pmf_add)):
        # the library's own composition counts 1e-15 of truncated tail as infinite loss; ours has no such floor
        assert np.all(ours >= np.array([pmf.get_delta_for_epsilon(e) for e in epsilons]) - 1.1e-15)


def test_a_profile_that_is_not_convex_is_cut_to_its_hull_which_still_covers_the_truth():
    discrete = LossProfile(profile_loss(RenyiProfile(LinearRenyi(0.1))), interval=1e-3)
    epsilons = np.linspace(-5.0, 5.0, 1001)
    # N(0,1) against N(sqrt(0.2),1) is 0.1-concentrated
    assert np.all(discrete.remove(epsilons) >= GaussianProfile(np.sqrt(0.2)).remove(epsilons))


def test_the_two_directions_are_kept_apart():
    class OneSided(PrivacyProfile):
        def remove(self, epsilons):
            return GaussianProfile(1.0).remove(epsilons)

        def add(self, epsilons):
            return GaussianProfile(0.5).add(epsilons)

    discrete = LossProfile(profile_loss(OneSided()), interval=1e-3)
    grid = np.array([0.1, 1.0, 2.0])
    assert discrete.remove(grid) == pytest.approx(GaussianProfile(1.0).at(grid), abs=1e-6)
    assert discrete.add(grid) == pytest.approx(GaussianProfile(0.5).at(grid), abs=1e-6)


@given(st.floats(0.05, 3.0), st.floats(-8.0, 8.0))
def test_reciprocity(mu, epsilon):
    profile = GaussianProfile(mu)
    e = np.array([epsilon])
    assert profile.remove(-e)[0] == pytest.approx(1 - np.exp(-epsilon) + np.exp(-epsilon) * profile.add(e)[0], abs=1e-9)
    assert extend(e, profile.at, profile.at)[0] <= 1.0


def test_minimum_profile_is_below_both():
    parts = (GaussianProfile(1.0), LaplaceProfile(1.5))
    both = MinimumProfile(parts)
    grid = np.linspace(-3.0, 3.0, 50)
    assert np.array_equal(both.remove(grid), np.minimum(parts[0].remove(grid), parts[1].remove(grid)))
    assert np.array_equal(both.add(grid), np.minimum(parts[0].add(grid), parts[1].add(grid)))


# Compositions


def test_mixed_composition_against_dp_accounting():
    ours = compose(gaussian(noise_multiplier=2.0), laplace(scale=2.0), laplace(scale=2.0))
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    accountant.compose(dp_accounting.LaplaceDpEvent(2.0), 2)
    for delta in (1e-9, 1e-6, 1e-3):
        assert ours.epsilon(delta=delta) == pytest.approx(accountant.get_epsilon(delta), rel=2e-5)


def test_composing_randomised_response_is_a_binomial():
    # k of n answers are the likelier ones with loss (2k - n) epsilon: exact by hand
    n, epsilon = 6, 0.5
    total = compose(*[pure_dp(epsilon=epsilon)] * n)
    p = 1 / (1 + np.exp(-epsilon))
    k = np.arange(n + 1)
    weight = np.array([float(mp.binomial(n, int(i))) for i in k])
    upper, lower = weight * p**k * (1 - p) ** (n - k), weight * (1 - p) ** k * p ** (n - k)
    for e in (0.0, 0.3, 1.0, 2.0, 2.9):
        truth = np.sum(np.maximum(upper - np.exp(e) * lower, 0.0))
        assert truth * (1 - 1e-13) <= total.delta(e) <= truth + 1e-6
    assert total.delta(3.0) == 0.0


def test_a_failure_survives_composition():
    total = compose(approximate_dp(epsilon=0.1, delta=1e-3), gaussian(noise_multiplier=5.0))
    assert total.failure >= 1e-3
    assert total.delta(20.0) >= 1e-3
    assert total.epsilon(delta=0.99e-3) == INFINITY
    assert total.renyi(2.0) == INFINITY


def test_identity_and_equality_of_parts_do_not_matter():
    one, same = laplace(scale=1.0), laplace(scale=1.0)
    assert compose(one, one).epsilon(delta=1e-4) == pytest.approx(compose(one, same).epsilon(delta=1e-4), rel=1e-9)


def test_a_mesh_wide_enough_for_huge_losses_and_none_past_all_use():
    assert suitable_interval(LinearRenyi(0.1)) == 1e-4
    wide = suitable_interval(LinearRenyi(1e3))
    assert wide is not None
    assert 1e-3 < wide < 1e-2
    assert suitable_interval(LinearRenyi(1e9)) is None
    assert suitable_interval(None) == 1e-4
    assert suitable_interval(LaplaceRenyi(1.0), 1.0) == 1e-4


@pytest.mark.parametrize("noise", [0.3, 0.02, 1e-3, 1e-6])
def test_tiny_noise_is_answered_in_bounded_memory(noise):
    g = dp_sgd(noise_multiplier=noise, sampling_rate=0.3, steps=20)
    epsilon = g.epsilon(delta=1e-6)
    # at least the loss of one certain step; at most that of twenty unsampled ones, by concentration
    rho = 10 / noise**2
    assert epsilon <= 1.02 * (rho + 2 * np.sqrt(rho * np.log(1e6)))  # orders start at 1.01
    assert epsilon > 1.0


def test_huge_compositions_are_answered_in_bounded_memory():
    total = compose(*[zcdp(rho=100.0)] * 50, pure_dp(epsilon=300.0))
    assert 5000 < total.epsilon(delta=1e-6) < 6500
    assert compose(*[pure_dp(epsilon=1e4)] * 5, laplace(scale=1e-4)).epsilon(delta=0) >= 6e4


@pytest.mark.parametrize(
    "base", [dp_sgd(noise_multiplier=2.0, sampling_rate=0.1, steps=20), compose(*[laplace(scale=4.0)] * 3)]
)
def test_a_wider_mesh_is_close_above(base):
    epsilons = np.linspace(0.0, 1.0, 9)
    fine, rough = base.profile, base.profile.rougher()
    assert rough.interval == 2.0 * fine.interval
    for one, other in ((rough.remove, fine.remove), (rough.add, fine.add)):
        assert np.all(one(epsilons) >= other(epsilons) * (1 - 1e-9))
        assert np.all(one(epsilons) <= other(epsilons) * 1.01 + 1e-9)
    pairs = base.profile.pair_source()
    assert pairs.rougher().profile == rough


def test_the_mesh_of_a_sum_is_that_of_its_curve():
    """The sum of what was computed of its parts before."""
    one, other = pure_dp(epsilon=0.3), zcdp(rho=0.01)
    parts = compose(one, other)
    again = compose(parts, one)
    direct = SumRenyi(((one.renyi_curve, 2), (other.renyi_curve, 1)))
    assert suitable_interval(again.renyi_curve) == suitable_interval(lambda orders: direct(orders))
