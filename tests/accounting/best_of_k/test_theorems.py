"""Golden values of the Renyi theorems: Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential
Privacy" (theorem numbers in each test). Unless a test says otherwise the base is 0.1-zCDP, E[K] = 10, delta = 1e-6."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.renyi import NodedCurve
from dpselect.accounting.best_of_k.theorems import composition_bound, with_empty_outcome
from dpselect.errors import ArgumentError
from dpselect.numerics.search import minimise
from dpselect.privacy import gaussian, zcdp
from dpselect.privacy.renyi import LinearRenyi, epsilon_from_renyi, profile_from_renyi
from dpselect.repetitions import Fixed, Geometric, Logarithmic, Poisson, TruncatedNegativeBinomial, ZeroTruncatedPoisson
from dpselect.repetitions.negative_binomial import second_order_cost
from dpselect.repetitions.negative_binomial_theorems import corollary_4, refined_theorem_2, theorem_2
from dpselect.repetitions.poisson import theorem_6
from tests.accounting.best_of_k.theorems_cases import RHO, PrintedTheorem2, negative_binomial

MU = math.sqrt(2 * RHO)
ETAS = (-0.5, 0.0, 0.5, 1.0)


@dataclass
class PrintedTheorem6:
    """Theorem 6 with delta converted from zCDP."""

    law: Poisson
    rho: float = RHO

    def __call__(self, orders):
        flat = np.ravel(orders)
        hat_delta = profile_from_renyi(LinearRenyi(self.rho), np.log1p(1.0 / (flat - 1.0)))
        return theorem_6(law=self.law, order=flat, epsilon=self.rho * flat, hat_delta=hat_delta).reshape(orders.shape)


# Corollary 4 at orders up to order0 = 5.798525912, and at 8, 16, 32; best second order; Theorem 2 at order 2
COROLLARY_4 = {
    -0.5: ((1.777095432, 1.846330978, 2.470895923, 3.991667189), 7.673902500, 3.219975343),
    0.0: ((2.162194339, 2.231429884, 2.855994829, 4.376766095), 6.012445781, 3.605074249),
    0.5: ((2.489366491, 2.558602036, 3.183166982, 4.703938247), 5.265537695, 3.932246402),
    1.0: ((2.779115547, 2.848351092, 3.472916038, 4.993687303), 4.798525912, 4.221995458),
}


class TestTheorem2:
    @pytest.mark.parametrize("eta", ETAS)
    def test_corollary_4(self, eta):
        law = negative_binomial(eta)
        expected, hat, at_two = COROLLARY_4[eta]
        assert_allclose(corollary_4(law=law, order=[3.0, 8.0, 16.0, 32.0], rho=RHO), expected, rtol=1e-8)
        assert_allclose(math.sqrt(math.log(1 / law.gamma) / RHO), hat, rtol=1e-8)
        unclosed = theorem_2(law=law, order=2.0, epsilon=0.2, hat_order=hat, hat_epsilon=RHO * hat)
        assert_allclose(unclosed, at_two, rtol=1e-8)

    def test_figure_2(self):
        """Corollary 4, eta = 0, several means."""
        table = {
            2.0: (1.23547724, 1.28221026, 1.68593982, 2.64540490, 5.62306933),
            10.0: (2.16219434, 2.16219434, 2.35833194, 3.22367785, 6.14948069),
            100.0: (2.96652612, 2.96652612, 3.02098361, 3.75167541, 6.60328110),
            1000.0: (3.57203610, 3.57203610, 3.57730632, 4.17334403, 6.95075256),
        }
        for mean, expected in table.items():
            found = corollary_4(law=negative_binomial(0.0, mean), order=[2.0, 5.0, 10.0, 20.0, 50.0], rho=RHO)
            assert_allclose(found, expected, rtol=1e-7)

    def test_refined(self):
        expected = (1.846151302, 2.227113944, 2.542206873, 2.811844521)
        for eta, value in zip(ETAS, expected, strict=True):
            law = negative_binomial(eta)

            def constant(t, law=law):
                return second_order_cost(law, 1 + np.exp(t), RHO * (1 + np.exp(t)))

            hat = 1.0 + math.exp(minimise(constant, -5.0, 10.0)[0])
            found = refined_theorem_2(law=law, order=8.0, epsilon=0.8, hat_order=hat, hat_epsilon=RHO * hat)
            assert_allclose(found, value, rtol=1e-8)
            plain = theorem_2(law=law, order=8.0, epsilon=0.8, hat_order=hat, hat_epsilon=RHO * hat)
            assert found < plain
            orders = np.array([1.1, 1.5, 8.0])
            bound = refined_theorem_2(law=law, order=orders, epsilon=RHO * orders, hat_order=hat, hat_epsilon=RHO * hat)
            (form,) = law.renyi_forms(NodedCurve(zcdp(rho=RHO)))
            assert_allclose(form(orders, RHO * orders), bound, rtol=1e-6)

    @pytest.mark.parametrize("order", [1.0, 0.5, [2.0, 1.0]])
    def test_orders_are_above_one(self, order):
        with pytest.raises(ArgumentError, match="order"):
            refined_theorem_2(law=negative_binomial(1.0), order=order, epsilon=0.1, hat_order=2.0, hat_epsilon=0.2)

    @pytest.mark.parametrize("eta", ETAS)
    def test_best_of_never_exceeds_the_closed_forms(self, eta):
        law = negative_binomial(eta)
        orders = np.array([1.1, 3.0, 8.0, 16.0, 32.0, 100.0])
        found = best_of(zcdp(rho=RHO), law, bound="renyi").renyi_curve(orders)
        assert np.all(found <= corollary_4(law=law, order=orders, rho=RHO))
        assert np.all(np.diff(found) >= 0)

    def test_hat_order_one_needs_no_epsilon(self):
        law = Geometric(gamma=0.1)
        found = theorem_2(law=law, order=2.0, epsilon=0.2, hat_order=1.0, hat_epsilon=math.inf)
        assert_allclose(found, 0.2 + 2 * math.log(10) + math.log(10), rtol=1e-14)

    def test_large_rho_refuses_corollary_4(self):
        """rho = 1 > log(1 / 0.9): the second order is 1; 3.131931891 at order 3."""
        law = Logarithmic(gamma=0.9)
        with pytest.raises(ArgumentError, match="rho must be at most"):
            corollary_4(law=law, order=3.0, rho=1.0)
        by_hand = theorem_2(law=law, order=3.0, epsilon=3.0, hat_order=1.0, hat_epsilon=0.0)
        assert_allclose(by_hand, 3.131931891, rtol=1e-9)
        assert best_of(zcdp(rho=1.0), law, bound="renyi").renyi(3.0) <= 3.131931891 * (1 + 1e-9)

    def test_mean_near_one_recovers_the_base(self):
        orders = np.array([1.5, 2.0, 8.0, 50.0])
        for eta in ETAS:
            law = TruncatedNegativeBinomial(eta=eta, gamma=1 - 1e-9)
            found = best_of(zcdp(rho=RHO), law, bound="renyi").renyi_curve(orders)
            assert_allclose(found, RHO * orders, rtol=1e-6)

    def test_monotone_in_eta_and_mean(self):
        by_eta = [best_of(zcdp(rho=RHO), negative_binomial(eta), bound="renyi").renyi(8.0) for eta in ETAS]
        by_mean = [best_of(zcdp(rho=RHO), negative_binomial(0.0, m), bound="renyi").renyi(8.0) for m in (2, 10, 100)]
        assert by_eta == sorted(by_eta)
        assert by_mean == sorted(by_mean)


FIGURE_4 = {
    2: (2.62479, 2.81497, 2.95172, 3.05915, 2.65817),
    5: (2.90103, 3.21970, 3.47561, 3.69283, 3.42062),
    10: (3.06574, 3.45084, 3.77801, 4.06776, 4.60737),
    20: (3.21310, 3.65083, 4.03976, 4.39645, 6.87095),
    50: (3.39137, 3.88559, 4.34634, 4.78456, 12.71565),
    100: (3.51734, 4.04773, 4.55750, 5.05289, 18.75875),
    1000: (3.89840, 4.52526, 5.17713, 5.84000, 42.82056),
}


class TestFigure4:
    """(epsilon, 1e-6) of the printed bounds; 1e-4. The default must not exceed them."""

    @pytest.mark.parametrize("mean", FIGURE_4)
    def test_table(self, mean):
        *expected, poisson = FIGURE_4[mean]
        found = [epsilon_from_renyi(PrintedTheorem2(negative_binomial(eta, mean)), 1e-6) for eta in ETAS]
        assert_allclose(found, expected, atol=1e-4)
        assert_allclose(epsilon_from_renyi(PrintedTheorem6(Poisson(mean=mean)), 1e-6), poisson, rtol=5e-6, atol=1e-4)

    def test_best_of_is_tighter(self):
        base = zcdp(rho=RHO)
        for eta, printed in zip(ETAS, FIGURE_4[10], strict=False):
            assert best_of(base, negative_binomial(eta), bound="renyi").epsilon(1e-6) < printed - 0.2
        assert best_of(base, Poisson(mean=10), bound="renyi").epsilon(1e-6) < FIGURE_4[10][4] - 0.3

    def test_crossover_of_figure_5(self):
        """Poisson and eta = 1/2 meet at epsilon = 4.1679 with equal expected quantiles (1e-3)."""
        poisson, half = Poisson(mean=8.12), negative_binomial(0.5, 28.95)
        assert_allclose(epsilon_from_renyi(PrintedTheorem6(poisson), 1e-6), 4.1679, atol=2e-3)
        assert_allclose(epsilon_from_renyi(PrintedTheorem2(half), 1e-6), 4.1679, atol=2e-3)
        assert_allclose([poisson.expected_quantile(), half.expected_quantile()], 0.87692, atol=1e-3)


class TestTheorem6:
    LAW = Poisson(mean=10)
    ORDERS = np.array([2.0, 4.0, 8.0, 16.0])

    def test_converted_delta(self):
        hat_delta = profile_from_renyi(LinearRenyi(RHO), np.log1p(1.0 / (self.ORDERS - 1.0)))
        assert_allclose(hat_delta, (0.0378118533, 0.143835812, 0.206241647, 0.236967135), rtol=2e-5)
        found = theorem_6(law=self.LAW, order=self.ORDERS, epsilon=RHO * self.ORDERS, hat_delta=hat_delta)
        assert_allclose(found, (2.880703626, 2.605886488, 3.191357202, 4.123177025), rtol=1e-5)

    def test_exact_gaussian_delta(self):
        base = gaussian(noise_multiplier=1 / MU)
        hat_delta = base.profile.remove(np.log1p(1.0 / (self.ORDERS - 1.0)))
        assert_allclose(hat_delta, (0.0162265323, 0.0800260768, 0.126380715, 0.151369577), rtol=1e-8)
        expected = (2.664850416, 1.967789132, 2.392747881, 3.267201442)
        found = theorem_6(law=self.LAW, order=self.ORDERS, epsilon=RHO * self.ORDERS, hat_delta=hat_delta)
        assert_allclose(found, expected, rtol=1e-9)
        best = best_of(base, self.LAW, bound="renyi").renyi_curve(self.ORDERS)
        # the outcome K = 0 adds 4e-8 at order 4
        assert np.all(best <= np.array(expected) + 5e-8)

    def test_best_of_a_zcdp_base_never_exceeds_the_printed_theorem(self):
        orders = 1.0 + np.geomspace(0.05, 1e3, 60)
        best = best_of(zcdp(rho=RHO), self.LAW, bound="renyi").renyi_curve(orders)
        assert np.all(best <= PrintedTheorem6(self.LAW)(orders))

    def test_mean_below_one(self):
        """Errata: with equal base laws the printed form is negative; the outcome K = 0 must be counted."""
        law = Poisson(mean=0.5)
        with pytest.raises(ArgumentError, match="mean of at least 1"):
            theorem_6(law=law, order=2.0, epsilon=0.0, hat_delta=0.0)
        equal = with_empty_outcome(np.array([math.log(0.5)]), np.array([2.0]), law.zero_probability)
        assert_allclose(equal, math.log(math.exp(-0.5) + 0.5), rtol=1e-12)
        assert equal[0] >= 0.0
        assert best_of(zcdp(rho=0.0), law, bound="renyi").renyi(2.0) >= 0.0

    def test_sound_form(self):
        """rho = .1, order 4, exact Gaussian delta: printed .543835812 and sound .567001804 at mean 1; 7e-9 at 10."""
        base = gaussian(noise_multiplier=1 / MU)
        hat_delta = float(base.profile.remove(np.log1p(np.array([1.0 / 3.0])))[0])
        for mean, printed, sound in ((1.0, 0.543835812, 0.567001804), (2.0, 0.918720685, 0.921574615)):
            # Papernot, Steinke's own conversion of zCDP gives the printed values
            law = Poisson(mean=mean)
            converted = float(profile_from_renyi(LinearRenyi(RHO), np.log1p(np.array([1.0 / 3.0])))[0])
            plain = theorem_6(law=law, order=4.0, epsilon=0.4, hat_delta=converted)
            assert_allclose(plain, printed, rtol=1e-5)
            assert_allclose(with_empty_outcome(plain, np.array(4.0), law.zero_probability), sound, rtol=1e-5)
        plain = theorem_6(law=self.LAW, order=4.0, epsilon=0.4, hat_delta=hat_delta)
        assert_allclose(with_empty_outcome(plain, np.array(4.0), self.LAW.zero_probability), plain, atol=1e-7)

    def test_zero_truncated(self):
        """phi' is divided by P(K > 0): Theorem 6 plus log(1 / (1 - exp(-10))) / (order - 1)."""
        rate = 10.0
        law = ZeroTruncatedPoisson(mean=rate / -math.expm1(-rate))
        base = gaussian(noise_multiplier=1 / MU)
        expected = (1.967789132, 2.392747881, 3.267201442)
        orders = self.ORDERS[1:]
        found = best_of(base, law, bound="renyi").renyi_curve(orders)
        assert np.all(found <= (expected - math.log(-math.expm1(-rate)) / (orders - 1.0)) * (1 + 1e-8))


class TestComposition:
    def test_poisson(self):
        expected = (1.106072245, 1.557683018, 2.214027582, 4.110594002)
        orders = np.array([1.1, 1.5, 2.0, 3.0])
        law = Poisson(mean=10)
        found = composition_bound(law=law, order=orders, epsilon=RHO * orders)
        assert_allclose(found, expected, rtol=1e-9)
        assert np.all(best_of(zcdp(rho=RHO), law, bound="renyi").renyi_curve(orders) <= found * (1 + 1e-9))

    def test_geometric_radius(self):
        orders = np.array([1.1, 1.5, 2.0])
        found = composition_bound(law=Geometric(gamma=0.1), order=orders, epsilon=RHO * orders)
        assert_allclose(found[:2], (1.158567559, 2.564338200), rtol=1e-9)
        assert found[2] == math.inf

    def test_fixed_is_composition(self):
        orders = np.array([1.5, 8.0, 500.0])
        found = best_of(zcdp(rho=RHO), Fixed(count=7), bound="renyi").renyi_curve(orders)
        assert_allclose(found, 7 * RHO * orders, rtol=1e-9)
