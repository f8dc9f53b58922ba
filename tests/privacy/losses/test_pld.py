"""Privacy-loss distributions: the repair, the discretised profiles, and mixed compositions."""

from __future__ import annotations

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from hypothesis import given, strategies as st

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, approximate_dp, compose, dp_sgd, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.events import event_loss
from dpselect.privacy.losses.composition import Losses
from dpselect.privacy.losses.connect_the_dots import hull_points, lower_hull
from dpselect.privacy.losses.discretise import DominatingPair, _straighten
from dpselect.privacy.losses.pld import LossProfile, pair_from_losses, profile_loss, suitable_interval
from dpselect.privacy.mechanisms.laplace import LaplaceRenyi
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    MinimumProfile,
    RandomizedResponseProfile,
    RenyiProfile,
    TabulatedProfile,
    extend,
)
from dpselect.privacy.renyi import LinearRenyi

INFINITY = float("inf")


def sampled(noise, rate, steps):
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return event_loss(dp_accounting.SelfComposedDpEvent(event, steps), Adjacency.ADD_OR_REMOVE_ONE)


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


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12), st.integers(-8, 4), st.floats(-6.0, 6.0))
def test_hockey_stick_of_a_pair_is_the_sum_over_its_atoms(masses, lower, epsilon):
    total = sum(masses) + 1e-3
    upper = np.array(masses) / total
    losses = 0.5 * (lower + np.arange(upper.size))
    other = upper * np.exp(-losses)
    pair = DominatingPair(losses=losses, upper=upper, lower=other)
    direct = sum(max(p - np.exp(epsilon) * q, 0.0) for p, q in zip(upper, other, strict=True))
    assert pair.hockey_stick(np.array([epsilon]))[0] == pytest.approx(direct, rel=1e-9, abs=1e-13)
    swapped = sum(max(q - np.exp(epsilon) * p, 0.0) for p, q in zip(upper, other, strict=True))
    assert pair.swapped().hockey_stick(np.array([epsilon]))[0] == pytest.approx(swapped, rel=1e-9, abs=1e-13)


def test_a_hockey_stick_at_losses_beyond_the_exponent_range():
    pair = DominatingPair(
        losses=np.array([-INFINITY, 715.0, INFINITY]),
        upper=np.array([0.0, 0.9, 0.1]),
        lower=np.array([1.0, 0.9 * np.exp(-715.0), 0.0]),
    )
    with np.errstate(all="raise", under="ignore"):
        found = pair.hockey_stick(np.array([0.0, 709.0, 711.0, 714.9, 716.0, 1e6]))
    assert np.all(found[:4] >= np.array([1.0, 1.0, 0.9 * -np.expm1(-4.0) + 0.1, 0.1]) * (1 - 2e-3))
    assert found[4:].tolist() == [0.1, 0.1]


def test_bad_pairs_are_refused():
    with pytest.raises(ArgumentError, match="ascend"):
        DominatingPair(losses=np.array([1.0, 0.0]), upper=np.array([0.5, 0.5]), lower=np.array([0.5, 0.5]))
    with pytest.raises(ArgumentError, match="non-negative"):
        DominatingPair(losses=np.array([0.0]), upper=np.array([-0.5]), lower=np.array([0.5]))
    with pytest.raises(ArgumentError, match="one length"):
        DominatingPair(losses=np.array([0.0]), upper=np.array([0.5, 0.5]), lower=np.array([0.5]))


# Profiles


def single_step_truth(noise, rate, epsilon):
    """H(P || P') and H(P' || P) at exp(epsilon) for P = (1-q) N(0) + q N(1/noise) and P' = N(0), in closed form."""

    def gaussian_divergence(a):
        mu, e = 1 / mp.mpf(noise), mp.log(a)
        return mp.ncdf(mu / 2 - e / mu) - a * mp.ncdf(-mu / 2 - e / mu)

    q, a = mp.mpf(rate), mp.exp(mp.mpf(epsilon))
    inner = (a - 1 + q) / q
    remove = q * gaussian_divergence(inner) if inner > 0 else 1 - a
    share = 1 - a * (1 - q)
    add = share * gaussian_divergence(a * q / share) if share > 0 else mp.mpf(0)
    return remove, add


@pytest.mark.theorem("Zhu, Dong, Wang 2022, Theorem 11", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (1.0, 1e-6), (0.5, 0.3), (5.0, 0.9)])
def test_one_step_of_dp_sgd_against_its_closed_form(noise, rate):
    profile = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1).profile
    assert profile is not None
    epsilons = np.concatenate([np.geomspace(rate / 100, 3.0, 25), [0.0], -np.geomspace(rate / 100, 3.0, 25)])
    with mp.workdps(40):
        truth = np.array([[float(x) for x in single_step_truth(noise, rate, e)] for e in epsilons])
    for got, exact in ((profile.remove(epsilons), truth[:, 0]), (profile.add(epsilons), truth[:, 1])):
        assert np.all(got >= exact * (1 - 1e-13) - 1e-17)
        # a mesh wider than every loss leaves a chord from the top: then at most the total variation, below the rate
        assert np.all(got <= exact + 1e-8 + (1e-3 * rate if rate > 1e-4 else rate))


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


PROFILES = {
    "gaussian": GaussianProfile(1.0),
    "narrow gaussian": GaussianProfile(0.05),
    "laplace": LaplaceProfile(1.0),
    "randomised response": RandomizedResponseProfile(0.5),
    "failing": RandomizedResponseProfile(1.0, 1e-6),
    "nothing": RandomizedResponseProfile(0.0),
    "table": TabulatedProfile((0.0, 1.0, 2.0), (0.3, 1e-3, 1e-5)),
}


@pytest.mark.parametrize("name", PROFILES)
def test_connecting_the_dots_lies_above_the_profile_at_both_signs(name):
    profile = PROFILES[name]
    discrete = LossProfile(profile_loss(profile), interval=1e-3)
    rng = np.random.default_rng(3)
    epsilons = np.concatenate([rng.uniform(-8, 8, 400), rng.uniform(0, 60, 100), rng.uniform(-1e-3, 1e-3, 50)])
    for got, exact in (
        (discrete.remove(epsilons), profile.remove(epsilons)),
        (discrete.add(epsilons), profile.add(epsilons)),
    ):
        assert np.all(got >= exact * (1 - 5e-13))  # the profile itself is inflated by 1e-12
        # chords err by an eighth of interval^2 times the second derivative, which is at most 1/mu at a Gaussian's top
        assert np.all(got <= exact + 3e-6)


def test_a_profile_that_is_not_convex_is_cut_to_its_hull_which_still_covers_the_truth():
    discrete = LossProfile(profile_loss(RenyiProfile(LinearRenyi(0.1))), interval=1e-3)
    epsilons = np.linspace(-5.0, 5.0, 1001)
    # N(0,1) against N(sqrt(0.2),1) is 0.1-concentrated
    assert np.all(discrete.remove(epsilons) >= GaussianProfile(np.sqrt(0.2)).remove(epsilons))


def test_the_two_directions_are_kept_apart():
    class OneSided:
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


def test_the_lower_hull_is_the_largest_convex_function_below_the_points():
    """Against all chords, on a curve with noise, one with corners and one that bends the wrong way."""
    random, epsilons = np.random.default_rng(3), np.sort(np.random.default_rng(4).uniform(0.0, 3.0, 60))
    x = np.exp(epsilons)
    noisy = np.exp(-2.0 * epsilons) * (1.0 + 0.1 * random.uniform(size=60))
    for values in (noisy, np.maximum(1.0 - epsilons, 0.0), 1.0 - 0.01 * epsilons**2, np.zeros(60)):
        kept = hull_points(epsilons, values)
        hull = np.interp(x, x[kept], values[kept])
        assert kept[0] == 0
        assert kept[-1] == 59
        for middle in range(60):
            left, right = np.arange(middle + 1)[:, None], np.arange(middle, 60)[None, :]
            share = (x[middle] - x[left]) / np.maximum(x[right] - x[left], 1e-300)
            lowest = np.min(values[left] * (1.0 - share) + values[right] * share)
            assert hull[middle] == pytest.approx(lowest, abs=1e-12)


def test_a_long_chord_of_the_lower_hull_keeps_its_small_end():
    """Between 1 and 1e-12 far away the chord is that of exact arithmetic, also where it is hardly above its end."""
    width, size = 2.0**-18, 1 << 14
    epsilons = np.arange(size) * width
    values = np.append(np.ones(size - 1), 1e-12)
    hull = lower_hull(epsilons, values)
    with mp.workdps(60):
        last = mp.exp(float(epsilons[-1]))
        for place in (1, size // 2, size - 3, size - 2):
            share = (last - mp.exp(float(epsilons[place]))) / (last - 1)
            exact = share + (1 - share) * mp.mpf(1e-12)
            assert exact <= mp.mpf(float(hull[place])) <= exact * (1 + mp.mpf(1e-14))


def straightened_one_by_one(low, high, rest):
    """The nearest atoms on either side give up what makes a unit of loss 0, until one of them is used up."""
    (l_low, p_low, q_low), (l_high, p_high, q_high) = (tuple(x.copy() for x in half) for half in (low, high))
    i, j = l_low.size - 1, 0
    while rest < 0.0 and i >= 0 and j < l_high.size:
        a, b = l_low[i], l_high[j]
        below, above = (x / np.expm1(a - b) for x in (np.expm1(-b), np.exp(-b) * np.expm1(a)))
        moved = min(-rest, q_low[i] / below, q_high[j] / above)
        q_low[i], q_high[j] = max(0.0, q_low[i] - moved * below), max(0.0, q_high[j] - moved * above)
        p_low[i], p_high[j] = q_low[i] * np.exp(a), q_high[j] * np.exp(b)
        rest += moved
        i, j = i - (q_low[i] == 0.0), j + (q_high[j] == 0.0)
    return (l_low, p_low, q_low), (l_high, p_high, q_high), min(rest, 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_is_straightened_as_if_atom_by_atom(seed):
    random = np.random.default_rng(seed)
    count, scale = random.integers(1, 30, 2), 10.0 ** random.uniform(-4, 1)
    low, high = -np.sort(random.exponential(scale, count[0]))[::-1], np.sort(random.exponential(scale, count[1]))
    q_low, q_high = (10.0 ** random.uniform(-12, -1, n) for n in count)
    halves = (low, q_low * np.exp(low), q_low), (high, q_high * np.exp(high), q_high)
    for share in (1e-9, 0.3, 3.0):
        rest = -share * min(np.sum(q_low), np.sum(q_high))
        found, wanted = _straighten(*halves, rest), straightened_one_by_one(*halves, rest)
        for half, other in zip(found[:2], wanted[:2], strict=True):
            for values, expected in zip(half, other, strict=True):
                assert values == pytest.approx(expected, abs=1e-15)
        assert found[2] == pytest.approx(wanted[2], abs=1e-15)
