"""`best_of`, `calibrate`, `mixture` and conditional sampling as their users meet them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError, BoundUnavailableError
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
from dpselect.repetitions import Fixed, Geometric, Harmonic, Logarithmic, Poisson, TruncatedNegativeBinomial
from dpselect.testing.exact import finite_guarantee

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
