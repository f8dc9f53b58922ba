"""Golden values where the base is pure, or so outside a failure mass: Papernot and Steinke 2022, "Hyperparameter Tuning
with Renyi Differential Privacy" (theorem numbers in each test). Unless a test says otherwise E[K] = 10."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of, pure_shift, searched_shift
from dpselect.accounting.best_of_k.theorems import lemma_20
from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
)
from dpselect.repetitions.negative_binomial_theorems import corollary_3
from dpselect.repetitions.poisson import corollary_21

NEGATIVE_BINOMIAL = {eta: TruncatedNegativeBinomial.with_mean(eta=eta, mean=10.0) for eta in (-0.5, 0.0, 0.5, 1.0)}


class TestPure:
    """The limit of Lemma 7, sharper than Corollary 3; attained by a three-point mechanism."""

    def test_values(self):
        ten = {-0.5: 1.496758440, 0.0: 1.939235759, 0.5: 2.298730239, 1.0: 2.591344078}
        small = {-0.5: 0.149723300, 0.0: 0.194749403, 0.5: 0.232328512, 1.0: 0.263591285}
        for eta, law in NEGATIVE_BINOMIAL.items():
            assert_allclose(pure_best_of(law=law, epsilon=1.0), ten[eta], rtol=1e-8)
            assert_allclose(pure_best_of(law=law, epsilon=0.1), small[eta], rtol=1e-7)
            assert ten[eta] < corollary_3(law=law, epsilon=1.0) == 2.0 + eta
        assert_allclose(pure_best_of(law=Geometric(gamma=0.01), epsilon=1.0), 2.953704234, rtol=1e-8)
        assert_allclose(pure_best_of(law=Geometric(gamma=0.001), epsilon=1.0), 2.995306436, rtol=1e-8)
        assert_allclose(pure_best_of(law=Poisson(mean=10), epsilon=1.0), 5.621171573, rtol=1e-8)
        assert_allclose(pure_best_of(law=Poisson(mean=10), epsilon=0.5), 2.949186624, rtol=1e-8)
        assert_allclose(pure_best_of(law=Fixed(count=5), epsilon=1.0), 5.0, rtol=1e-8)

    @pytest.mark.parametrize(
        "law",
        [
            NEGATIVE_BINOMIAL[-0.5],
            Geometric(gamma=0.1),
            Logarithmic(gamma=1e-6),
            Poisson(mean=10),
            Fixed(count=5),
            Binomial(trials=20, probability=0.5),
            ZeroTruncatedPoisson(mean=3),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
    def test_search_agrees_with_closed_forms(self, law, epsilon):
        searched = searched_shift(law, epsilon)
        assert_allclose(searched, pure_shift(law, epsilon), rtol=1e-8)

    @pytest.mark.full
    def test_hard_caps(self):
        """Harmonic K costs at most 2 epsilon, uniform 3, beta-binomial with shape g 2 + g (substitute p -> p e^-eps).

        All three are reached in the limit, so the certified search may stop 1e-7 above them.
        """
        for limit in (2, 10, 100):
            for epsilon in (0.1, 1.0, 4.0):
                assert epsilon < pure_best_of(law=Harmonic(limit=limit), epsilon=epsilon) <= 2 * epsilon * (1 + 1e-7)
                assert epsilon < pure_best_of(law=Uniform(limit=limit), epsilon=epsilon) <= 3 * epsilon * (1 + 1e-7)
                half = BetaBinomial(trials=limit, shape=0.5)
                assert epsilon < pure_best_of(law=half, epsilon=epsilon) <= 2.5 * epsilon * (1 + 1e-7)

    def test_three_point_attack_rises_to_the_bound(self):
        law, e = Geometric(gamma=0.1), math.e
        worse, other = e / (1 + e), 1 / (1 + e)
        for beta, expected in ((1e-2, 2.534066437), (1e-4, 2.590747829), (1e-6, 2.591338113)):
            top = law.increment(complement_after=1 - worse, mass=e * beta)
            bottom = law.increment(complement_after=1 - other, mass=beta)
            assert_allclose(math.log(top / bottom), expected, rtol=1e-8)
            assert expected < pure_best_of(law=law, epsilon=1.0)

    def test_randomised_response(self):
        """Log ratio on the worse and the better answer at epsilon = 1; all below the bound."""
        q, e = math.e / (1 + math.e), 1.0
        for law, worse, better in (
            (Geometric(gamma=0.1), 1.795672039, 0.204327961),
            (Logarithmic.with_mean(mean=10), 1.409918708, 0.333551278),
            (Poisson(mean=10), 4.621171573, 0.069668749),
        ):
            found = math.log(law.pgf(q) / law.pgf(1 - q))
            other = math.log(
                law.increment(complement_after=0.0, mass=q) / law.increment(complement_after=0.0, mass=1 - q)
            )
            assert_allclose((found, other), (worse, better), rtol=1e-8)
            assert max(worse, better) < pure_best_of(law=law, epsilon=e)


class TestFailure:
    """Lemma 20 and Corollary 21: bases that hold outside a failure mass."""

    def test_tilt(self):
        law, failure = lemma_20(law=TruncatedNegativeBinomial(eta=0.5, gamma=0.0625), failure=0.01)
        assert_allclose(law.gamma, 0.071875, rtol=1e-15)
        assert failure <= 0.01 * 10

    def test_mass(self):
        expected = {-0.5: 0.00923279883, 0.0: 0.00982349365, 0.5: 0.00988888804, 1.0: 0.00991080278}
        for eta, mass in expected.items():
            assert_allclose(lemma_20(law=NEGATIVE_BINOMIAL[eta], failure=1e-3)[1], mass, rtol=1e-8)
        assert_allclose(lemma_20(law=Poisson(mean=100), failure=1e-3)[1], 0.0951625820, rtol=1e-8)

    def test_approximate_base(self):
        """(epsilon + (1+eta) log((e^epsilon + gamma') / (1 + gamma' e^epsilon)), 1 - phi(1 - delta))."""
        law, epsilon, delta = NEGATIVE_BINOMIAL[0.5], 1.0, 1e-4
        gamma = law.gamma + (1 - law.gamma) * delta
        expected = epsilon + 1.5 * math.log((math.e + gamma) / (1 + gamma * math.e))
        total = best_of(approximate_dp(epsilon=epsilon, delta=delta), law, bound="pure")
        assert_allclose(total.failure, law.success_probability(delta), rtol=1e-12)
        assert total.failure <= law.mean * delta
        assert_allclose(total.epsilon(delta=total.failure), expected, rtol=1e-8)
        assert total.epsilon(delta=delta) == math.inf

    def test_corollary_21(self):
        order, epsilon, failure = corollary_21(law=Poisson(mean=10), epsilon=0.5, failure=1e-3)
        assert_allclose((order, epsilon), (2.541494083, 1.993735927), rtol=1e-9)
        assert_allclose(failure, -math.expm1(-10 * 1e-3), rtol=1e-12)
        ours = best_of(approximate_dp(epsilon=0.5, delta=1e-3), Poisson(mean=10), bound="renyi")
        assert float(ours.renyi_curve(np.array([order]))[0]) < epsilon
        with pytest.raises(ArgumentError, match="mean of at least 1"):
            corollary_21(law=Poisson(mean=0.9), epsilon=0.5, failure=1e-3)


class TestFixedRepetition:
    """Papernot, Steinke 2022, Section 4 (Proposition 17): a fixed number of runs costs what composition costs."""

    def test_tight_example(self):
        law, q = Fixed(count=5), math.e / (1 + math.e)
        loss = math.log(law.pgf(q) / law.pgf(1 - q))
        assert_allclose(loss, 5.0, rtol=1e-12)
        assert_allclose(law.pgf(q), 0.208814613, rtol=1e-8)
        assert_allclose(best_of(pure_dp(epsilon=1.0), law).epsilon(delta=0), loss, rtol=1e-9)


class TestPureAtSmallEpsilons:
    """The closed forms in 50 digits: two logarithms would cancel where epsilon is small."""

    @pytest.mark.parametrize("epsilon", [1e-16, 1e-12, 1e-8, 1e-4, 0.1, 1.0, 50.0, 900.0])
    def test_closed_forms(self, epsilon):
        with mp.workdps(50):
            e = mp.mpf(epsilon)
            for gamma in (0.1, 1e-4, 0.999999):
                g = mp.mpf(gamma)
                truth = e + mp.mpf("1.5") * mp.log((mp.exp(e) + g) / (1 + g * mp.exp(e)))
                found = pure_best_of(law=TruncatedNegativeBinomial(eta=0.5, gamma=gamma), epsilon=epsilon)
                assert truth <= found <= truth * (1 + mp.mpf("3e-12"))
            for probability in (0.3, 0.9, 0.999999):
                rest = 1 - mp.mpf(probability)
                truth = e + 9 * mp.log((rest + mp.exp(e)) / (1 + rest * mp.exp(e)))
                found = pure_best_of(law=Binomial(trials=10, probability=probability), epsilon=epsilon)
                assert truth <= found <= truth * (1 + mp.mpf("3e-12"))
