"""More golden values of Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy".

Worked out from the printed formulas, apart from this library; the rest are in the tests of the theorems, of the laws of
K and of the interface. The base is 0.1-zCDP and delta = 1e-6 unless a test says otherwise.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.numerics.search import minimise
from dpselect.privacy import gaussian, pure_dp
from dpselect.privacy.renyi import LinearRenyi, epsilon_from_renyi, log_delta_at_orders
from dpselect.repetitions import Fixed, Geometric, Logarithmic, Poisson, TruncatedNegativeBinomial
from dpselect.repetitions.negative_binomial_theorems import corollary_4
from dpselect.repetitions.poisson import theorem_6
from dpselect.testing.exact import FinitePair, renyi_divergence

RHO = 0.1
approx = pytest.approx


def randomized_response(epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Worse answer first: the better one is the unlikely one under Q."""
    likely, unlikely = 1.0 / (1.0 + math.exp(-epsilon)), 1.0 / (1.0 + math.exp(epsilon))
    return (likely, unlikely), (unlikely, likely)


def test_fixed_repetition_is_tight():
    """Proposition 17: five runs of randomised response at epsilon = 1, and ten at 1/2."""
    pair = FinitePair(*randomized_response(1.0)).best_of(Fixed(count=5))
    assert renyi_divergence(pair.upper, pair.lower, math.inf) == approx(5.0, rel=1e-12)
    assert renyi_divergence(pair.lower, pair.upper, math.inf) == approx(0.232814996, rel=1e-8)
    for order, exact, lower in (
        (2.0, 3.453716861, 3.433691562),
        (4.0, 4.477897380, 4.477897187),
        (10.0, 4.825965729, 4.825965729),
    ):
        assert renyi_divergence(pair.upper, pair.lower, order) == approx(exact, rel=1e-9)
        assert 5.0 - 5.0 * math.log1p(math.exp(-1.0)) / (order - 1.0) == approx(lower, rel=1e-9)
        assert best_of(pure_dp(epsilon=1.0), Fixed(count=5), bound="renyi").renyi(order) >= exact * (1 - 1e-9)
    ten = FinitePair(*randomized_response(0.5)).best_of(Fixed(count=10))
    assert renyi_divergence(ten.upper, ten.lower, math.inf) == approx(5.0, rel=1e-12)
    assert ten.upper[1] == approx(0.008731921, rel=1e-6)


def test_fixed_repetition_with_constant_probability():
    """The second example after Proposition 17: epsilon0 = .1, ten runs; and with a random number of them."""
    q, q2 = (math.exp(-0.1), -math.expm1(-0.1)), (math.exp(-0.2), -math.expm1(-0.2))
    base = FinitePair(q, q2)
    assert renyi_divergence(q, q2, math.inf) == approx(0.1, rel=1e-12)
    assert renyi_divergence(q2, q, math.inf) == approx(0.644396660, rel=1e-8)
    kl = sum(b * math.log(b / a) for a, b in zip(q, q2, strict=True))
    assert kl == approx(0.034936222, rel=1e-7)
    assert kl <= 0.2 * math.log(2.0) == approx(0.138629436, rel=1e-8)
    for law, expected in (
        (Fixed(count=10), 1.0),
        (Poisson(mean=10), 0.861066650),
        (Geometric.with_mean(mean=10), 0.448851656),
        (Logarithmic.with_mean(mean=10), 0.304818996),
    ):
        best = base.best_of(law)
        # the outcome of no run counts as the worse output
        merged = [np.array([sum(side[:-1]), side[-1]]) for side in (best.upper, best.lower)]
        assert np.max(np.abs(np.log(merged[0] / merged[1]))) == approx(expected, rel=1e-7)


def test_the_order_of_corollary_4_and_its_conversion():
    """order0 = 5.798525912; the best order of the conversion is 12.6534 for every eta."""
    laws = [TruncatedNegativeBinomial.with_mean(eta=eta, mean=10) for eta in (-0.5, 0.0, 0.5, 1.0)]
    assert 1.0 + math.sqrt(math.log(10.0) / RHO) == approx(5.798525912, rel=1e-9)
    for law in laws:
        flat = corollary_4(law=law, order=[1.5, 5.7985259], rho=RHO)
        assert flat[0] == flat[1] < corollary_4(law=law, order=5.81, rho=RHO)

        def epsilon(logs, law=law):
            orders = 1.0 + np.exp(logs)
            renyi = corollary_4(law=law, order=orders, rho=RHO)
            return renyi + np.log1p(-1.0 / orders) - (math.log(1e-6) + np.log(orders)) / (orders - 1.0)

        # a minimum is known to the square root of the rounding of its value
        assert 1.0 + math.exp(minimise(epsilon, 0.0, 5.0)[0]) == approx(12.6534, abs=1e-3)


@pytest.mark.parametrize(
    ("mean", "expected"),
    [(2, 2.49092), (5, 3.00280), (10, 3.77546), (20, 5.23229), (50, 9.11767), (100, 13.69377), (1000, 33.61781)],
)
def test_figure_4_for_poisson_with_the_exact_delta(mean, expected):
    """Theorem 6 with the Gaussian's own profile, (epsilon, 1e-6); the default does not exceed it."""
    base = gaussian(noise_multiplier=1.0 / math.sqrt(2.0 * RHO))

    def printed(orders):
        hat_delta = base.profile.remove(np.log1p(1.0 / (orders - 1.0)))
        return theorem_6(law=Poisson(mean=mean), order=orders, epsilon=RHO * orders, hat_delta=hat_delta)

    assert epsilon_from_renyi(printed, 1e-6) == approx(expected, abs=1e-4)
    # the outcome of no run, which the printed form leaves out, costs up to 1 % at mean 2
    assert best_of(base, Poisson(mean=mean), bound="renyi").epsilon(1e-6) <= expected * 1.01


@pytest.mark.parametrize(
    ("a", "order", "s", "t", "acceptance", "exact"),
    [
        (0.1, 4.0, 1.078158, 1.397880, 0.0680444, 1.632768),
        (0.1, 8.0, 1.128605, 1.289475, 0.0646968, 1.711256),
        (0.1, 16.0, 1.753506, 1.870406, 0.0346332, 2.910883),
        (0.1, 32.0, 3.274277, 3.379899, 0.00756884, 5.939957),
        (0.01, 8.0, 1.457379, 1.665530, 0.00465692, 2.373827),
        (0.01, 32.0, 3.348554, 3.456572, 0.000702703, 6.090726),
    ],
)
def test_figure_8(a, order, s, t, acceptance, exact):
    """Pairs with both divergences 0.1 order at one order, and what accepting the first two outputs makes of them."""
    q = np.array([a * math.exp(-s), a * math.exp(-s), 1.0 - 2.0 * a * math.exp(-s)])
    q2 = np.array([a * math.exp(-s - t), a, 1.0 - a - a * math.exp(-s - t)])
    for first, second in ((q, q2), (q2, q)):
        assert renyi_divergence(first, second, order) == approx(RHO * order, rel=1e-4)  # six digits of s and t
    assert q[0] + q[1] == approx(acceptance, rel=1e-5)
    accepted = renyi_divergence(q[:2] / (q[0] + q[1]), q2[:2] / (q2[0] + q2[1]), order)
    assert accepted == approx(exact, rel=1e-5)
    assert accepted >= s + t - order * math.log(2.0) / (order - 1.0)


@pytest.mark.parametrize(("m", "chance", "runs"), [(10, 0.8698970, 4.34294e8), (100, 0.8849485, 2.17e18)])
def test_selection_needs_very_many_runs(m, chance, runs):
    """Appendix D.4: the logarithmic law with gamma = m^-10, whose success bound is 9/10 - 1/(10 log2 m)."""
    law = Logarithmic(gamma=float(m) ** -10)
    assert 0.9 - 0.1 / math.log2(m) == approx(chance, rel=1e-6)
    assert law.mean == approx(runs, rel=1e-3)
    # phi(1 - exp(-epsilon t)) - phi(1 - 1/m) with exp(epsilon t) = m^10 - 1, phi's difference by its complement
    found = law.success_probability(1.0 / m) - law.success_probability(1.0 / (float(m) ** 10 - 1.0))
    assert found >= chance * (1 - 1e-6)


def test_corollary_21_with_the_tilted_mean():
    """The last line of its proof, with log(E[K] (1 - delta0)): 1.993086882 at epsilon0 = 1/2, delta0 = 1e-3."""
    tilted = Poisson(mean=10).tilted(1.0 - 1e-3)
    assert 0.5 + math.expm1(0.5) * math.log(tilted.mean) == approx(1.993086882, rel=1e-9)


def test_conversion_signs():
    """Lemma 14: at (10, .5) delta falls as epsilon grows, unlike in the printed remark after Theorem 6."""
    logs = log_delta_at_orders(np.array([10.0]), np.array([0.5]), np.array([1.0, 2.0, 3.0]))
    assert np.exp(logs[1]) == approx(5.3113764e-8, rel=1e-6)
    assert np.all(np.diff(logs) < 0.0)
    assert epsilon_from_renyi(LinearRenyi(RHO), 1e-6) == approx(2.141939, abs=2e-6)


def test_a_fixed_number_of_pure_runs_is_a_product_and_printed_as_one():
    assert best_of(pure_dp(epsilon=1), Fixed(count=20)).epsilon(0) == 20.0
    third = best_of(pure_dp(epsilon=0.1), Fixed(count=3)).epsilon(0)
    assert Fraction(third) >= 3 * Fraction(0.1)
