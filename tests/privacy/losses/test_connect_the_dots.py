"""Pairs from points of a privacy profile: above the profile, and from below only with their correction."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dpselect.privacy.losses.below import dots_below
from dpselect.privacy.losses.connect_the_dots import connect_the_dots, hull_points, lower_hull
from dpselect.privacy.losses.pld import LossProfile, profile_loss
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    RandomizedResponseProfile,
    TabulatedProfile,
)
from tests.privacy.losses.below_cases import as_pair, random_pair

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


def test_the_lower_hull_is_the_largest_convex_function():
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


def test_dots_from_below_need_their_correction():
    """Convex curves with a kink anywhere: chords between mesh points are above, the lowered ones do not."""
    random = np.random.default_rng(1)
    for _ in range(20):
        pair = as_pair(*random_pair(random, 5))
        width = float(random.uniform(0.05, 0.3))
        half = np.arange(2 * int(6.0 / width) + 1) * (0.5 * width)
        curve = pair.hockey_stick(half)
        infinite = float(np.sum(pair.upper[pair.losses == np.inf]))
        epsilons = np.linspace(0.0, 6.0, 331)
        found = dots_below(width, (curve * (1 - 1e-13), curve * (1 + 1e-13)), infinite * (1 - 1e-13))
        assert np.all(found.hockey_stick(epsilons) <= pair.hockey_stick(epsilons))


def test_the_lower_hull_of_points_any_distance_apart():
    """exp(2000) is no float64. From 0 to 2000 the chord is 1 at 1000, and 1 - exp(-1) at 1999."""
    assert hull_points(np.array([0.0, 1000.0, 2000.0]), np.array([1.0, 0.25, 0.125])).tolist() == [0, 1, 2]
    assert hull_points(np.array([0.0, 1999.0, 2000.0]), np.array([1.0, 0.64, 0.0])).tolist() == [0, 2]
    assert hull_points(np.array([0.0, 1999.0, 2000.0]), np.array([1.0, 0.63, 0.0])).tolist() == [0, 1, 2]


def test_both_tails_are_those_of_the_formulas():
    """Of curves with an error, too: the last fall is below it then, and no mass may be negative."""
    width, e = 0.01, np.arange(200) * 0.01
    curve, none = GaussianProfile(1.0).remove(e), np.zeros(200)
    found = connect_the_dots(width, (curve, none), (curve, none))
    losses = (found.first + np.arange(found.masses.size)) * width
    for at in (1, 2, 50, 150):
        slope = (curve[at - 1] - curve[at]) / np.expm1(width)
        tail = np.sum(found.masses[losses > e[at] - 1e-6]) + found.infinite
        assert tail == pytest.approx(curve[at - 1] + slope, rel=1e-9)
        assert np.sum(found.masses[losses < 1e-6 - e[at]]) == pytest.approx(np.exp(-e[at - 1]) * slope, rel=1e-9)
    assert np.min(connect_the_dots(width, (curve, none + 0.01), (curve, none + 0.01)).masses) >= 0.0
