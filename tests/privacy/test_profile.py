"""Closed-form and quadrature curves against the same formulas at 40 to 60 digits: never below, hardly above."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import from_profile, renyi_dp
from dpselect.privacy.mechanisms.laplace import LaplaceRenyi
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.profile import GaussianProfile, LaplaceProfile, RandomizedResponseProfile, TabulatedProfile
from dpselect.privacy.renyi import LinearRenyi, TabulatedRenyi, profile_from_renyi
from dpselect.privacy.sampled_gaussian import SampledGaussianRenyi
from tests.privacy.profile_cases import assert_encloses


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def randomized_response(epsilon, order):
    """The definition: the Renyi divergence of (p, q) from (q, p)."""
    e, a = mp.mpf(epsilon), mp.mpf(order)
    p, q = 1 / (1 + mp.exp(-e)), 1 / (1 + mp.exp(e))
    return mp.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)


def laplace_mechanism(epsilon, order):
    """Mironov 2017, Proposition 6."""
    e, a = mp.mpf(epsilon), mp.mpf(order)
    return mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)


@pytest.mark.parametrize(
    ("curve", "formula"), [(RandomizedResponseRenyi, randomized_response), (LaplaceRenyi, laplace_mechanism)]
)
def test_renyi_of_pure_mechanisms_over_the_whole_range(curve, formula):
    orders = 1.0 + np.geomspace(1e-6, 1e6, 25)
    for epsilon in [*np.geomspace(1e-8, 50.0, 25).tolist(), 1e3, 1e4]:
        for order, got in zip(orders, curve(epsilon)(orders), strict=True):
            assert_encloses(got, formula(epsilon, order))


def test_renyi_of_no_loss_is_zero():
    orders = 1.0 + np.geomspace(1e-6, 1e6, 25)
    assert np.all(RandomizedResponseRenyi(0.0)(orders) == 0.0)


def gaussian_delta(mu, epsilon):
    """Balle, Wang 2018, Theorem 8."""
    mu, e = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


@pytest.mark.theorem("Balle, Wang 2018, Theorem 8", exact=True, sharp=True)
@pytest.mark.parametrize("mu", [1e-4, 1e-3, 0.01, 0.1, 0.4999999, 0.5, 0.7, 1.0, 2.0, 3.3, 10.0, 25.0, 50.0])
def test_gaussian_profile(mu):
    near = mu * mu / 2 + mu * np.linspace(-2.0, 36.0, 25)
    epsilons = np.concatenate([[0.0], np.geomspace(1e-8, 700.0, 25), near[near > 0]])
    for epsilon, got in zip(epsilons, GaussianProfile(mu).at(epsilons), strict=True):
        truth = gaussian_delta(mu, epsilon)
        if truth > 1e-290:
            assert_encloses(got, truth, excess=1e-11)  # its own slack for rounding grows to 4e-12 at mu = 50
        else:
            assert 0.0 < got < 1e-280  # a delta that underflows is not zero


@pytest.mark.parametrize("mu", [1e-6, 0.3, 1.0, 300.0, 4.7e4, 1.7e5, 3.904e6, 1.7e7, 1e8])
def test_gaussian_profile_of_any_size_from_both_sides(mu):
    """About epsilon = mu^2 / 2 digits are lost in proportion to mu; phi(near) (M(near) - M(far)) has none to lose."""
    near = mu * mu / 2 + mu * np.array([-30.0, -3.0, -0.5, -1e-3, 0.0, 1e-3, 0.25, 1.0, 8.0, 30.0])
    epsilons = np.concatenate([[0.0, mu / 10.0, mu * mu / 4.0], near[near > 0]])
    profile = GaussianProfile(mu)
    with mp.workdps(80):
        for epsilon, above, below in zip(epsilons, profile.at(epsilons), profile.below(epsilons), strict=True):
            e = mp.mpf(float(epsilon))
            x, y = (e / mu + sign * mp.mpf(mu) / 2 for sign in (-1, 1))
            # exp(e) Phi(-y) is phi(x) M(y), for large y by its series
            tail = mp.exp(e) * mp.ncdf(-y) if y < 50.0 else mp.npdf(x) * (1 - y**-2 + 3 * y**-4 - 15 * y**-6) / y
            truth = mp.ncdf(-x) - tail
            assert below <= truth <= above
            # relative to what one rounding of epsilon / mu does
            assert above - below <= truth * (1e-11 + 1e-14 * (abs(x) + 2) * y)


def test_gaussian_profile_without_mean_or_without_noise():
    epsilons = np.array([0.0, 1.0, 1e6])
    assert np.all(GaussianProfile(1e-310).at(epsilons) <= 1e-200)
    assert np.all(GaussianProfile(1e-310).at(epsilons) > 0.0)
    assert np.all(GaussianProfile(float("inf")).at(epsilons) == 1.0)
    assert np.all(GaussianProfile(1e150).at(epsilons) >= 1.0)


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1.0, 30.0])
def test_laplace_and_randomised_response_profiles(size):
    epsilons = np.array([0.0, 0.1 * size, 0.5 * size, size * (1 - 1e-9), size, 2 * size])
    e0 = mp.mpf(size)
    for epsilon, got in zip(epsilons, LaplaceProfile(size).at(epsilons), strict=True):
        e = mp.mpf(float(epsilon))
        assert_encloses(got, max(-mp.expm1((e - e0) / 2), mp.mpf(0)))
    failure = mp.mpf(1e-5)
    for epsilon, got in zip(epsilons, RandomizedResponseProfile(size, 1e-5).at(epsilons), strict=True):
        e = mp.mpf(float(epsilon))
        truth = failure + (1 - failure) * max(mp.exp(e0) - mp.exp(e), 0) / (1 + mp.exp(e0))
        assert_encloses(got, truth)


class TestTabulatedRenyi:
    def test_values_at_its_orders_and_infinity_past_the_last(self):
        curve = TabulatedRenyi((1.5, 2.0, 10.0), (0.1, 0.2, 0.5))
        assert curve(np.array([1.5, 2.0, 10.0])).tolist() == [0.1, 0.2, 0.5]
        assert curve(np.array([10.0 + 1e-9, 1e6])).tolist() == [np.inf, np.inf]
        # constant below the first order: the chord from (order - 1) epsilon = 0 at order 1
        assert curve(np.array([1 + 1e-9, 1.25])) == pytest.approx(0.1, rel=2e-12)

    @pytest.mark.parametrize("truth", [LinearRenyi(0.3), LaplaceRenyi(2.0), SampledGaussianRenyi(1.0, 0.1, 7)])
    def test_chords_lie_above_the_curve_and_close_to_it_on_a_fine_table(self, truth):
        orders = 1.0 + np.geomspace(1e-3, 200.0, 120)
        curve = TabulatedRenyi(tuple(orders.tolist()), tuple(truth(orders).tolist()))
        asked = 1.0 + np.geomspace(1e-6, 200.0, 3001)[:-1]
        ratio = curve(asked) / truth(asked)
        assert ratio.min() >= 1.0 - 1e-15
        assert ratio[asked > 1.01].max() < 1.06

    def test_a_chord_by_hand(self):
        # (order - 1) epsilon: 0.2 at 2, 4.5 at 10; half way at 6 it is 2.35, over 5
        assert TabulatedRenyi((2.0, 10.0), (0.2, 0.5))(np.array([6.0]))[0] == pytest.approx(0.47, rel=2e-12)

    def test_a_smaller_later_bound_holds_for_earlier_orders(self):
        curve = TabulatedRenyi((2.0, 3.0, 4.0), (9.0, 0.5, float("inf")))
        assert curve(np.array([2.0, 3.0])).tolist() == [0.5, 0.5]
        assert curve(np.array([3.5]))[0] == np.inf

    def test_nothing_known(self):
        assert np.all(np.isinf(TabulatedRenyi((2.0,), (float("inf"),))(np.array([1.5, 2.0, 3.0]))))

    @pytest.mark.parametrize(
        ("orders", "epsilons"),
        [([2], [1, 2]), ([], []), ([1.0], [1]), ([3, 2], [1, 1]), ([2, 2], [1, 1]), ([2], [-1]), ([2], [float("nan")])],
    )
    def test_bad_tables_are_refused(self, orders, epsilons):
        with pytest.raises(ArgumentError):
            renyi_dp(orders=orders, epsilons=epsilons)


class TestTabulatedProfile:
    TABLE = from_profile([0.0, 1.0, 2.0], [0.3, 1e-3, 1e-5])

    def test_it_gives_back_what_was_put_in(self):
        for epsilon, delta in ((1.0, 1e-3), (2.0, 1e-5)):
            assert self.TABLE.delta(epsilon) == delta
            assert self.TABLE.epsilon(delta) <= epsilon * (1 + 1e-10)
        assert self.TABLE.epsilon(0.3) == 0.0

    def test_past_the_last_point_its_delta_holds_and_nothing_smaller(self):
        assert self.TABLE.delta(50.0) == 1e-5
        assert self.TABLE.epsilon(0.99e-5) == float("inf")

    def test_a_chord_by_hand(self):
        # weights in exp(epsilon) between exp(1) and exp(2)
        weight = (np.exp(1.5) - np.exp(1)) / (np.exp(2) - np.exp(1))
        assert self.TABLE.delta(1.5) == pytest.approx(1e-3 + weight * (1e-5 - 1e-3), rel=1e-11)

    def test_before_the_first_point_the_chord_starts_at_one(self):
        profile = TabulatedProfile((1.0,), (0.1,))
        assert profile.at(np.array([0.0]))[0] == pytest.approx(1 - 0.9 * np.exp(-1.0), rel=1e-11)

    @pytest.mark.parametrize("truth", [GaussianProfile(1.0), LaplaceProfile(2.0), RandomizedResponseProfile(1.5, 1e-3)])
    def test_chords_lie_above_a_true_profile(self, truth):
        known = np.linspace(0.0, 6.0, 13)
        profile = TabulatedProfile(tuple(known.tolist()), tuple(truth.at(known).tolist()))
        asked = np.concatenate([np.linspace(0.0, 8.0, 1001), known[1:] - 1e-9])
        assert np.all(profile.at(asked) >= truth.at(asked) * (1 - 1e-12))

    def test_no_digits_are_lost_beside_a_steep_fall(self):
        profile = TabulatedProfile((0.0, 1.0), (1.0, 1e-14))
        e = 1.0 - 1e-6
        truth = (mp.e - mp.exp(mp.mpf(e))) / (mp.e - 1) + (mp.exp(mp.mpf(e)) - 1) / (mp.e - 1) * mp.mpf(1e-14)
        assert_encloses(profile.at(np.array([e]))[0], truth)

    def test_later_larger_deltas_are_closed_down(self):
        assert from_profile([0.5, 1.0], [1e-6, 1e-3]).delta(2.0) == 1e-6

    @pytest.mark.parametrize(
        ("epsilons", "deltas"),
        [
            ([], []),
            ([1], [0.1, 0.2]),
            ([1, 1], [0.1, 0.1]),
            ([2, 1], [0.1, 0.1]),
            ([-1], [0.1]),
            ([1], [1.1]),
            ([1], [-0.1]),
        ],
    )
    def test_bad_tables_are_refused(self, epsilons, deltas):
        with pytest.raises(ArgumentError):
            from_profile(epsilons, deltas)


class TestProfileFromRenyi:
    def test_it_lies_above_the_exact_profile_of_the_same_curve(self):
        for mu in (0.01, 0.3, 1.0, 5.0):
            epsilons = np.linspace(0.0, mu * mu / 2 + 8 * mu, 300)
            assert np.all(profile_from_renyi(LinearRenyi(mu * mu / 2), epsilons) > GaussianProfile(mu).at(epsilons))

    def test_it_is_within_a_hair_of_the_best_order(self):
        # Canonne, Kamath, Steinke 2020, Proposition 12, minimised over a fine grid of orders in 60 digits
        for rho, epsilon in ((0.1, 2.0), (1e-4, 0.05), (5.0, 25.0)):
            orders = 1 + np.geomspace(0.1, 1e4, 4001)
            best = min(
                mp.exp((a - 1) * (rho * a - epsilon)) / a * (1 - 1 / a) ** (a - 1)
                for a in map(mp.mpf, orders[np.argsort(np.abs(rho * (2 * orders - 1) - epsilon))[:400]].tolist())
            )
            got = profile_from_renyi(LinearRenyi(rho), np.array([epsilon]))[0]
            assert abs(got / best - 1) < 1e-3

    def test_a_curve_that_is_infinite_at_most_orders(self):
        curve = TabulatedRenyi((32.0,), (0.5,))
        deltas = profile_from_renyi(curve, np.array([0.0, 0.4, 0.6, 5.0]))
        assert np.all((deltas > 0) & (deltas <= 1))
        # the last order alone gives this (F32's formula)
        truth = mp.exp(31 * (mp.mpf("0.5") - 5)) / 32 * (1 - mp.mpf(1) / 32) ** 31
        assert deltas[-1] >= truth

    def test_no_curve_at_all_and_no_loss_at_all(self):
        epsilons = np.array([0.0, 1.0])
        assert profile_from_renyi(TabulatedRenyi((2.0,), (float("inf"),)), epsilons).tolist() == [1.0, 1.0]
        assert profile_from_renyi(LinearRenyi(0.0), epsilons).tolist() == [0.0, 0.0]

    def test_long_vectors_and_the_answer_at_each_epsilon_agree(self):
        epsilons = np.linspace(0.0, 5.0, 9001)
        together = profile_from_renyi(LinearRenyi(0.1), epsilons)
        alone = np.array([profile_from_renyi(LinearRenyi(0.1), epsilons[i : i + 1])[0] for i in range(0, 9001, 500)])
        assert np.allclose(together[::500], alone, rtol=1e-2)
