"""The Renyi curve of the best of K runs: the smallest of its bounds, closed monotonically, rounded up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.renyi import (
    MinimumRenyi,
    NodedCurve,
    outside_failure,
    published,
    renyi,
    renyi_curve_of,
)
from dpselect.accounting.best_of_k.theorems import lemma_22
from dpselect.privacy import Adjacency, Guarantee, approximate_dp, from_profile, gaussian, pure_dp, zcdp
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.renyi import LinearRenyi
from dpselect.repetitions import Fixed, Geometric, Logarithmic, Poisson
from dpselect.repetitions.negative_binomial_theorems import refined_theorem_2
from tests.accounting.best_of_k.theorems_cases import RHO, PrintedTheorem2, negative_binomial


class TestTruncation:
    """Lemma 22: K redrawn until it is at most m."""

    def test_geometric(self):
        law = Geometric(gamma=0.1)
        found = lemma_22(law=law, limit=50, order=8.0, bound=PrintedTheorem2(law))
        assert_allclose(found, 2.848351 + 0.000738 + 0.031411, atol=2e-6)
        assert_allclose((law.survival(50), law.size_biased_survival(50)), (0.00515378, 0.0309227), rtol=1e-5)

    def test_size_biased_tails(self):
        law = Logarithmic.with_mean(mean=10)
        assert_allclose((law.survival(200), law.size_biased_survival(200)), (1.83338e-4, 0.00426447), rtol=1e-5)
        assert_allclose(negative_binomial(-0.5).size_biased_survival(1000), 0.018518, rtol=1e-4)

    def test_each_closed_form_pays_for_what_is_cut_off(self):
        """-log P(K <= m) / (order - 1) - log(1 - E[K 1{K > m}] / E[K]) more than without the limit, by hand."""
        law, orders, run = Geometric(gamma=0.1), np.array([1.5, 8.0, 64.0]), NodedCurve(zcdp(rho=RHO))
        forms, cut = law.renyi_forms(run), law.at_most(20).renyi_forms(run)
        assert len(forms) == len(cut) > 0
        more = -math.log1p(-(0.9**20)) / (orders - 1.0) - math.log1p(-3.0 * 0.9**20)
        for form, with_limit in zip(forms, cut, strict=True):
            assert_allclose(with_limit(orders, RHO * orders), form(orders, RHO * orders) + more, rtol=1e-12)

    def test_best_of_is_tighter_than_the_lemma(self):
        law = Geometric(gamma=0.1)
        orders = np.array([2.0, 8.0, 32.0])
        lemma = lemma_22(law=law, limit=50, order=orders, bound=PrintedTheorem2(law))
        found = best_of(zcdp(rho=RHO), law.at_most(50), bound="renyi").renyi_curve(orders)
        assert np.all(found < lemma)


ORDERS = np.array([1.5, 2.0, 8.0, 64.0])


def test_the_curve_of_a_base_is_the_smaller_one_that_is_known():
    linear = zcdp(rho=0.1)
    assert renyi_curve_of(linear) == LinearRenyi(0.1)
    both = Guarantee(adjacency=Adjacency.ADD_OR_REMOVE_ONE, theorem="", pure_epsilon=1.0, renyi_curve=LinearRenyi(0.1))
    curve = renyi_curve_of(both)
    response = RandomizedResponseRenyi(1.0)
    assert isinstance(curve, MinimumRenyi)
    assert_allclose(curve(ORDERS), np.minimum(0.1 * ORDERS, response(ORDERS)), rtol=1e-15)
    assert renyi_curve_of(pure_dp(epsilon=1.0)) == response
    assert renyi_curve_of(from_profile([0.0, 1.0], [0.5, 0.1])) is None


def test_the_sources_of_a_minimum_are_named_once():
    class Named:
        theorem = "Theorem A"

    class Nameless: ...

    assert MinimumRenyi((Named(), Nameless(), Named())).theorem == "Theorem A; Renyi curve"


def test_no_bound_is_above_the_printed_one_nor_below_one_run():
    law = Geometric(gamma=0.1)
    found = renyi(zcdp(rho=RHO), law).renyi_curve(ORDERS)
    closed = published(zcdp(rho=RHO), law).renyi_curve(ORDERS)
    assert np.all(found <= closed)
    assert np.all(found >= RHO * ORDERS * (1 - 1e-12))
    hats = np.geomspace(1.0001, 300.0, 4000)
    refined = {"law": law, "hat_order": hats, "hat_epsilon": RHO * hats}
    printed = [np.min(refined_theorem_2(order=m, epsilon=RHO * m, **refined)) for m in ORDERS]
    assert np.all(closed <= np.array(printed) * (1 + 1e-3))
    # past its lowest point the printed curve rises; before it the value there holds for all smaller orders
    assert_allclose(closed[2:], printed[2:], rtol=1e-3)


def test_a_curve_rises_up_to_the_distance_of_its_nodes():
    values = renyi(zcdp(rho=1e-3), Geometric(gamma=0.01)).renyi_curve(np.geomspace(1.01, 200.0, 300))
    assert np.all(values[1:] >= values[:-1] * (1 - 1e-5))


def test_a_fixed_number_costs_its_composition():
    curve = renyi(zcdp(rho=RHO), Fixed(count=3)).renyi_curve
    assert_allclose(curve(np.array([64.0])), 3 * RHO * 64.0, rtol=1e-9)
    assert curve(np.array([[2.0], [3.0]])).shape == (2, 1)


def test_a_failure_mass_is_amplified_outside_the_curve():
    base = approximate_dp(epsilon=0.5, delta=1e-3)
    total = renyi(base, Poisson(mean=10.0))
    assert total.failure == pytest.approx(1 - math.exp(-10 * 1e-3), rel=1e-12)
    inside = outside_failure(base)
    assert (inside.failure, inside.profile, inside.pure_epsilon) == (0.0, None, 0.5)
    assert outside_failure(pure_dp(epsilon=1.0)) == pure_dp(epsilon=1.0)
    assert renyi(from_profile([0.0, 1.0], [0.5, 0.1]), Poisson(mean=10.0)) is None


def test_a_noded_base_knows_its_curve_and_what_it_allows_of_events():
    noded = NodedCurve(gaussian(noise_multiplier=2.0))
    assert_allclose(noded.epsilons, noded.orders / 8.0, rtol=1e-12)
    assert noded.pure_epsilon == math.inf
    losses = np.array([0.0, 0.5, 1.0])
    assert_allclose(noded.hockey_stick(losses), gaussian(noise_multiplier=2.0).profile.remove(losses), rtol=1e-12)
    order, value = noded.smallest(lambda m, e: e + 2.0 / m, noded.epsilons + 2.0 / noded.orders, zooms=2)
    assert order == pytest.approx(4.0, rel=1e-3)
    assert value == pytest.approx(1.0, rel=1e-6)
