"""`best_of`, `calibrate`, `mixture` and conditional sampling as their users meet them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from dpselect.accounting import best_of, calibrate, mixture
from dpselect.accounting.candidates.conditional import conditional_sampling, corollary_16, proposition_15
from dpselect.errors import AdjacencyError, ArgumentError, BoundUnavailableError, BudgetError
from dpselect.privacy import (
    Adjacency,
    Guarantee,
    approximate_dp,
    compose,
    dp_sgd,
    from_profile,
    gaussian,
    laplace,
    pure_dp,
    renyi_dp,
    zcdp,
)
from dpselect.privacy.renyi import LinearRenyi, epsilon_from_renyi
from dpselect.repetitions import Fixed, Geometric, Harmonic, Logarithmic, Poisson, TruncatedNegativeBinomial
from dpselect.testing.exact import FinitePair, finite_guarantee, renyi_divergence

LAW = Geometric(gamma=0.1)
BASES = [
    pure_dp(epsilon=0.7),
    approximate_dp(epsilon=0.5, delta=1e-7),
    zcdp(rho=0.05),
    laplace(scale=2.0),
    gaussian(noise_multiplier=4.0),
    renyi_dp(orders=[2.0, 8.0, 32.0], epsilons=[0.1, 0.4, 1.6]),
    from_profile([0.0, 0.5, 1.0, 2.0], [0.2, 0.05, 1e-4, 1e-8]),
]


class TestBestOf:
    @pytest.mark.full
    @pytest.mark.parametrize("base", BASES, ids=lambda g: g.terms["mechanism"])
    @pytest.mark.parametrize("law", [LAW, Poisson(mean=3), Harmonic(limit=10)], ids=str)
    def test_smallest_of_all(self, base, law):
        total = best_of(base, law)
        assert total.adjacency is base.adjacency
        found = []
        for bound in ("optimal", "renyi", "pure"):
            try:
                found.append(best_of(base, law, bound=bound))
            except BoundUnavailableError:
                continue
        assert_allclose(total.epsilon(1e-5), min(g.epsilon(1e-5) for g in found), rtol=1e-9)
        # the cross-check is above, up to the width at which the optimal bound is enclosed
        assert best_of(base, law, bound="profile").epsilon(1e-5) >= total.epsilon(1e-5) * (1 - 2e-3)

    def test_terms(self):
        total = best_of(gaussian(noise_multiplier=4), LAW, bound="profile")
        assert total.terms == {
            "mechanism": "best-of",
            "base": {"mechanism": "gaussian", "noise_multiplier": 4.0},
            "repetitions": {"law": "geometric", "gamma": 0.1},
            "bound": "profile",
        }

    @pytest.mark.cases(1)
    @pytest.mark.parametrize("base", [*BASES, dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=50)])
    def test_pickles(self, base):
        total = best_of(base, LAW)
        expected = total.epsilon(1e-5)
        assert pickle.loads(pickle.dumps(total)).epsilon(1e-5) == expected

    @pytest.mark.parametrize("law", [LAW, Poisson(mean=3), LAW.at_most(20)], ids=str)
    def test_published_is_valid_and_looser(self, law):
        orders = 1.0 + np.geomspace(0.05, 200.0, 20)
        base = gaussian(noise_multiplier=4)
        published = best_of(base, law, bound="published").renyi_curve(orders)
        assert np.all(np.isfinite(published))
        # 1e-4: each curve's smallest value is found to that
        assert np.all(published >= best_of(base, law, bound="renyi").renyi_curve(orders) * (1 - 1e-4))

    def test_unknown_bound(self):
        known = "'optimal', 'profile', 'published', 'pure', 'renyi', got 'best'"
        with pytest.raises(BoundUnavailableError, match=known):
            best_of(zcdp(rho=0.1), LAW, bound="best")

    def test_absent_bound_lists_the_others(self):
        with pytest.raises(
            BoundUnavailableError, match="'pure' does not exist for this base; available: 'optimal', 'renyi'"
        ):
            best_of(zcdp(rho=0.1), LAW, bound="pure")
        with pytest.raises(BoundUnavailableError, match="'renyi' does not exist"):
            best_of(from_profile([0.5, 1.0], [1e-3, 1e-5]), LAW, bound="renyi")

    def test_law_of_another_type(self):
        with pytest.raises(TypeError, match="repetitions must be a distribution"):
            best_of(zcdp(rho=0.1), 10)

    def test_base_without_a_statement(self):
        with pytest.raises(BoundUnavailableError, match="makes no statement"):
            best_of(Guarantee(adjacency=Adjacency.REPLACE_ONE, theorem="none"), LAW)

    def test_adjacency_is_kept(self):
        assert best_of(zcdp(rho=0.1, adjacency="replace_one"), LAW).adjacency is Adjacency.REPLACE_ONE

    def test_perfect_privacy_stays_perfect(self):
        assert best_of(pure_dp(epsilon=0.0), LAW).epsilon(delta=0) == 0.0
        assert best_of(zcdp(rho=0.0), LAW, bound="renyi").renyi(8.0) >= 0.0

    def test_one_run_costs_one_run(self):
        base = gaussian(noise_multiplier=2)
        assert_allclose(best_of(base, Fixed(count=1)).epsilon(1e-6), base.epsilon(1e-6), rtol=1e-4)

    @pytest.mark.full
    def test_nested_searches(self):
        inner = best_of(gaussian(noise_multiplier=20), Geometric(gamma=0.4))
        outer = best_of(inner, Geometric(gamma=0.4), bound="profile")
        assert inner.epsilon(1e-6) < outer.epsilon(1e-6) < 4 * inner.epsilon(1e-6)

    @pytest.mark.full
    def test_composition_of_search_and_training(self):
        base = dp_sgd(noise_multiplier=2.0, sampling_rate=0.01, steps=100)
        search = best_of(base, LAW)
        total = compose(search, base)
        assert search.epsilon(1e-5) < total.epsilon(1e-5) <= search.epsilon(5e-6) + base.epsilon(5e-6)

    def test_approximate_delta_is_amplified_not_hidden(self):
        total = best_of(approximate_dp(epsilon=0.5, delta=1e-6), LAW)
        assert_allclose(total.failure, LAW.success_probability(1e-6), rtol=1e-12)
        assert total.epsilon(1e-6) == math.inf
        assert total.renyi(8.0) == math.inf

    @pytest.mark.full
    @settings(max_examples=25, deadline=None)
    @given(
        eta=st.floats(-0.9, 4.0),
        mean=st.floats(1.5, 200.0),
        noise=st.floats(0.5, 30.0),
        more=st.floats(1.01, 3.0),
    )
    def test_monotone_laws(self, eta, mean, noise, more):
        """More runs or less noise never cost less; orders are closed; nothing is NaN (0.5 % for the width of cells)."""
        law, larger = (TruncatedNegativeBinomial.with_mean(eta=eta, mean=m) for m in (mean, mean * more))
        orders = 1.0 + np.geomspace(0.02, 500.0, 30)
        curve = best_of(gaussian(noise_multiplier=noise), law, bound="renyi").renyi_curve(orders)
        more_runs = best_of(gaussian(noise_multiplier=noise), larger, bound="renyi").renyi_curve(orders)
        less_noise = best_of(gaussian(noise_multiplier=noise / more), law, bound="renyi").renyi_curve(orders)
        assert np.all(np.isfinite(curve))
        assert np.all(curve[1:] >= curve[:-1] * (1 - 5e-3))
        assert np.all(more_runs >= curve * (1 - 5e-3))
        assert np.all(less_noise >= curve * (1 - 5e-3))
        assert np.all(curve >= gaussian(noise_multiplier=noise).renyi_curve(orders) * (1 - 1e-9))


class TestCalibrate:
    @pytest.mark.full
    @pytest.mark.parametrize(
        ("make", "epsilon", "delta"),
        [
            (lambda s: best_of(gaussian(noise_multiplier=s), LAW), 3.0, 1e-5),
            (lambda s: best_of(gaussian(noise_multiplier=s), LAW, bound="renyi"), 0.05, 1e-6),
            (lambda s: best_of(pure_dp(epsilon=1 / s), LAW), 3.0, 0.0),
            (lambda s: best_of(laplace(scale=s), LAW), 30.0, 1e-5),
            (lambda s: gaussian(noise_multiplier=s), 1.0, 1e-6),
        ],
    )
    def test_safe_and_close(self, make, epsilon, delta):
        found = calibrate(make, epsilon=epsilon, delta=delta)
        assert make(found).epsilon(delta) <= epsilon
        assert make(found * (1 - 1.1e-4)).epsilon(delta) > epsilon

    @pytest.mark.full
    def test_full_guarantee_not_only_renyi(self):
        """The profile of DP-SGD allows less noise than its Renyi curve does."""

        def make(bound):
            return lambda s: best_of(dp_sgd(noise_multiplier=s, sampling_rate=0.05, steps=200), LAW, bound=bound)

        full = calibrate(make(None), epsilon=3.0, delta=1e-5, relative=1e-3)
        renyi = calibrate(make("renyi"), epsilon=3.0, delta=1e-5, relative=1e-3)
        assert full < 0.95 * renyi
        assert make(None)(full).epsilon(1e-5) <= 3.0

    def test_few_evaluations(self):
        calls = 0

        def make(noise):
            nonlocal calls
            calls += 1
            return best_of(gaussian(noise_multiplier=noise), LAW, bound="renyi")

        calibrate(make, epsilon=3.0, delta=1e-5)
        assert calls <= 8

    @pytest.mark.parametrize("target", [1e-3, 0.5, 9.0])
    @pytest.mark.parametrize(
        "price",
        [
            lambda s: 20.0 if s < 3.3 else 1e-4,
            lambda s: 0.0 if s > 7.0 else 100.0,
            lambda s: 12.0 - 1e-3 * math.log(s) if s < 50.0 else 0.5 / s,
            lambda s: min(s**-8, 1e200),
        ],
        ids=["jump", "to zero", "flat, then a jump", "steep"],
    )
    def test_awkward_prices_are_bracketed(self, price, target):
        calls = 0

        def make(noise):
            nonlocal calls
            calls += 1
            return pure_dp(epsilon=price(noise))

        found = calibrate(make, epsilon=target, delta=0.0)
        assert price(found) <= target < price(found * (1 - 1.1e-4))
        assert calls <= 60

    def test_impossible(self):
        with pytest.raises(BudgetError, match="no parameter up to"):
            calibrate(lambda s: approximate_dp(epsilon=1 / s, delta=1e-5), epsilon=1.0, delta=1e-6)
        with pytest.raises(BudgetError, match=r"no parameter up to 2 meets epsilon=0\.1"):
            calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=0.1, delta=1e-6, high=2.0)

    def test_low_end_is_enough(self):
        assert calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=5.0, delta=1e-6, low=3.0) == 3.0

    @pytest.mark.parametrize(
        "wrong", [{"epsilon": 0.0}, {"epsilon": -1.0}, {"delta": 1.0}, {"delta": -0.1}, {"relative": 0.0}, {"low": 0.0}]
    )
    def test_bad_arguments(self, wrong):
        arguments = {"epsilon": 1.0, "delta": 1e-6, **wrong}
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            calibrate(lambda s: gaussian(noise_multiplier=s), **arguments)


class TestMixture:
    def test_renyi_average(self):
        """rho in {.2, .05}, order 8: 1.50101 instead of 1.6 (joint convexity of the moments)."""
        mixed = mixture([zcdp(rho=0.2), zcdp(rho=0.05)])
        assert_allclose(mixed.renyi(8.0), 1.50101, atol=5e-6)

    def test_profile_average(self):
        one, two = gaussian(noise_multiplier=1), gaussian(noise_multiplier=2)
        mixed = mixture([one, two], weights=[1, 3])
        epsilons = np.array([-0.5, 0.0, 1.0, 3.0])
        expected = 0.25 * one.profile.remove(epsilons) + 0.75 * two.profile.remove(epsilons)
        assert_allclose(mixed.profile.remove(epsilons), expected, rtol=1e-9)
        assert two.epsilon(1e-6) < mixed.epsilon(1e-6) < one.epsilon(1e-6)

    def test_truth_is_covered(self):
        """Draw one of two randomised responses, publish its index: exact moments are the averages."""
        pairs = [(0.7, 0.3), (0.55, 0.45)]
        p = np.array([0.5 * x for pair in pairs for x in pair])
        q = np.array([0.5 * x for pair in pairs for x in pair[::-1]])
        mixed = mixture([pure_dp(epsilon=math.log(a / b)) for a, b in pairs])
        for order in (1.5, 4.0, 20.0):
            assert renyi_divergence(p, q, order) <= mixed.renyi(order) * (1 + 1e-12)
        truth = FinitePair(tuple(p), tuple(q))
        epsilons = np.linspace(-1, 1, 21)
        assert np.all(truth.remove(epsilons) <= mixed.profile.remove(epsilons) * (1 + 1e-12))

    def test_failure_averages(self):
        mixed = mixture([approximate_dp(epsilon=1, delta=1e-4), pure_dp(epsilon=0.5)], weights=[0.25, 0.75])
        assert_allclose(mixed.failure, 2.5e-5, rtol=1e-12)
        assert mixed.pure_epsilon == 1.0

    def test_equal_gaussians_keep_their_trade_off(self):
        base = gaussian(noise_multiplier=3)
        total, mixed = best_of(base, LAW), best_of(mixture([base, base]), LAW)
        assert_allclose(mixed.epsilon(1e-6), total.epsilon(1e-6), rtol=1e-6)

    def test_wrong_input(self):
        with pytest.raises(AdjacencyError):
            mixture([zcdp(rho=0.1), zcdp(rho=0.1, adjacency="replace_one")])
        with pytest.raises(ArgumentError, match="weights must be one for each"):
            mixture([zcdp(rho=0.1)], weights=[0.5, 0.5])
        with pytest.raises(ArgumentError, match="weights must be a finite number above 0"):
            mixture([zcdp(rho=0.1)], weights=[0.0])
        with pytest.raises(ArgumentError, match="at least one candidate"):
            mixture([])


class TestConditionalSampling:
    """Papernot, Steinke 2022, Appendix C."""

    CURVE = LinearRenyi(0.1)

    def test_corollary_16_example(self):
        """s = t = 3, a = .2, order 8: exact 5.210307479, inequality 2 gives 5.801957995."""
        s = t = 3.0
        a = 0.2
        q = np.array([a * math.exp(-s), a * math.exp(-s), 1 - 2 * a * math.exp(-s)])
        q2 = np.array([a * math.exp(-s - t), a, 1 - a - a * math.exp(-s - t)])
        assert_allclose(renyi_divergence(q, q2, 8.0), 2.341508914, rtol=1e-9)
        assert_allclose(renyi_divergence(q2, q, 8.0), 2.770080298, rtol=1e-9)
        assert_allclose(renyi_divergence(q2, q, 7.0), 2.731760351, rtol=1e-9)
        exact = renyi_divergence(q[:2] / q[:2].sum(), q2[:2] / q2[:2].sum(), 8.0)
        assert_allclose(exact, 5.210307479, rtol=1e-9)
        bound = corollary_16(
            inequality=2,
            order=8.0,
            divergence=lambda o: np.where(o == 8.0, renyi_divergence(q, q2, 8.0), renyi_divergence(q2, q, 7.0)),
            acceptance=float(q[:2].sum()),
        )
        assert_allclose(bound, 5.801957995, rtol=1e-9)

    def test_orders_below_two_are_refused(self):
        """At order 1.5 with everything accepted the printed bound .1633881 is below the truth .2587995."""
        q, q2 = (0.7, 0.3), (0.4, 0.6)
        assert_allclose(renyi_divergence(q, q2, 1.5), 0.258799476, rtol=1e-8)
        for inequality in (2, 3, 5):
            with pytest.raises(ArgumentError, match="order must be at least 2"):
                corollary_16(
                    inequality=inequality, order=1.5, divergence=FinitePair(q, q2), pure_epsilon=1.0, acceptance=1.0
                )
        fourth = corollary_16(
            inequality=4, order=1.5, divergence=FinitePair(q, q2), pure_epsilon=math.log(2), acceptance=1.0
        )
        assert fourth > 0.258799476

    def test_tenth_zcdp(self):
        """Inequality 2 with floor .1 at orders 2, 5, 10, 20; and its (epsilon, 1e-6) for three floors."""
        found = [
            corollary_16(inequality=2, order=o, divergence=self.CURVE, acceptance=0.1) for o in (2.0, 5.0, 10.0, 20.0)
        ]
        assert_allclose(found, (4.805170, 1.951293, 2.311686, 4.042377), rtol=1e-6)
        for floor, expected in ((0.1, 3.485531), (0.01, 3.967015), (0.001, 4.398200)):

            def printed(orders, floor=floor):
                values = [
                    corollary_16(inequality=2, order=o, divergence=self.CURVE, acceptance=floor) if o >= 2 else math.inf
                    for o in orders
                ]
                return np.array(values)

            assert_allclose(epsilon_from_renyi(printed, 1e-6), expected, rtol=1e-5)

    def test_inequality_5_at_r_one_is_inequality_2(self):
        for order in (2.0, 3.5, 20.0):
            values = [
                corollary_16(inequality=i, order=order, divergence=self.CURVE, acceptance=0.1, r=1.0) for i in (2, 5)
            ]
            assert_allclose(values[0], values[1], rtol=1e-12)
        direct = proposition_15(order=3.5, p_inverse=0.0, q_inverse=0.0, divergence=self.CURVE, acceptance=0.1)
        assert_allclose(direct, values[1] if order == 3.5 else direct, rtol=1e-12)

    @pytest.mark.cases(2)
    @pytest.mark.parametrize(
        ("floor", "renyi", "hockey_stick"),
        [(0.1, 2.68697, 2.5342), (0.01, 3.20770, 3.0678), (0.001, 3.68495, 3.5499)],
    )
    def test_numeric_forms(self, floor, renyi, hockey_stick):
        """With the Gaussian curve and the floor coin; the coin's averaging of the moment may gain up to 1 %."""
        total = conditional_sampling(gaussian(noise_multiplier=0.2**-0.5), floor=floor)
        assert renyi * 0.99 <= epsilon_from_renyi(total.renyi_curve, 1e-6) <= renyi * 1.001
        assert hockey_stick * (1 - 1e-4) <= total.epsilon(1e-6) <= hockey_stick * 1.001

    def test_pure(self):
        total = conditional_sampling(pure_dp(epsilon=1.0), floor=0.1)
        expected = 1.0 + math.log((math.e + 0.1) / (1 + 0.1 * math.e))
        assert_allclose(total.epsilon(delta=0), expected, rtol=1e-9)
        assert expected < corollary_16(inequality=1, order=2.0, divergence=self.CURVE, pure_epsilon=1.0, acceptance=0.1)

    @pytest.mark.full
    def test_truth_is_covered(self):
        """Exact output laws of random finite mechanisms, all acceptance sets of three outputs out of four."""
        rng = np.random.default_rng(11)
        for _ in range(75):
            p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
            pure = float(np.max(np.abs(np.log(p / q))))
            floor = float(rng.choice([0.01, 0.1, 0.5]))
            total = conditional_sampling(pure_dp(epsilon=pure), floor=floor)
            for left_out in range(4):
                kept = np.arange(4) != left_out
                a, b = (np.append(floor, (1 - floor) * m[kept]) / (floor + (1 - floor) * m[kept].sum()) for m in (p, q))
                assert np.max(np.abs(np.log(a / b))) <= total.pure_epsilon * (1 + 1e-9)
                assert renyi_divergence(a, b, 3.0) <= total.renyi(3.0) * (1 + 1e-9)
                epsilons = np.array([0.0, 0.3, 1.0])
                assert np.all(FinitePair(tuple(a), tuple(b)).remove(epsilons) <= total.profile.remove(epsilons) + 1e-12)

    def test_failure_mass_goes_through_the_profile(self):
        total = conditional_sampling(approximate_dp(epsilon=0.5, delta=1e-6), floor=0.1)
        assert total.renyi_curve is None
        assert total.delta(20.0) >= 1e-6
        assert 0.5 < total.epsilon(1e-4) < 2.0

    def test_pickles(self):
        total = conditional_sampling(gaussian(noise_multiplier=2), floor=0.1)
        assert pickle.loads(pickle.dumps(total)).epsilon(1e-6) == total.epsilon(1e-6)

    @pytest.mark.parametrize("floor", [0.0, 1.0, -0.1, math.nan])
    def test_bad_floor(self, floor):
        with pytest.raises(ArgumentError, match="floor"):
            conditional_sampling(zcdp(rho=0.1), floor=floor)


def test_logarithmic_matches_its_negative_binomial():
    one = best_of(zcdp(rho=0.1), Logarithmic(gamma=0.02), bound="renyi")
    two = best_of(zcdp(rho=0.1), TruncatedNegativeBinomial(eta=0.0, gamma=0.02), bound="renyi")
    orders = np.array([1.5, 4.0, 30.0])
    assert_allclose(one.renyi_curve(orders), two.renyi_curve(orders), rtol=1e-12)


def test_equal_laws_never_get_a_negative_price():
    """The divergence of these masses from themselves is summed to less than zero."""
    base = finite_guarantee((0.05, 0.25, 0.7), (0.05, 0.25, 0.7))
    orders = np.array([1.05, 1.5, 4.0])
    assert np.any(base.renyi_curve(orders) < 0.0)
    total = best_of(base, TruncatedNegativeBinomial(eta=5.0, gamma=1e-4))
    assert np.all(total.renyi_curve(orders) >= 0.0)
    assert total.pure_epsilon >= 0.0


@pytest.mark.parametrize("bound", ["pure", "renyi", "optimal", None])
def test_atoms_are_checked_for_every_bound(bound):
    with pytest.raises(ArgumentError, match="atoms"):
        best_of(pure_dp(epsilon=1.0), Harmonic(limit=50), bound=bound, atoms=3)
