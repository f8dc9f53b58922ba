"""One candidate drawn with fixed weights, its index released."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpselect.accounting import best_of, mixture
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import (
    approximate_dp,
    from_profile,
    gaussian,
    pure_dp,
    zcdp,
)
from dpselect.repetitions import Geometric
from dpselect.testing.exact import FinitePair, renyi_divergence

LAW = Geometric(gamma=0.1)


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

    def test_an_average_is_rounded_up(self):
        tables = [from_profile([0.1, 1.0], deltas) for deltas in ([0.3, 0.1], [0.2, 0.0])]
        at = np.array([0.3, 0.7])
        values = [table.profile.remove(at) for table in tables]
        for share in (3, 7, 11, 49):
            found = mixture(tables, weights=[1, share - 1]).profile.remove(at)
            for place in range(2):
                exact = (Fraction(values[0][place]) + (share - 1) * Fraction(values[1][place])) / share
                assert exact <= Fraction(found[place]) <= exact * Fraction(1.000001)

    def test_only_one_gaussian_for_all_stays_one(self):
        """Composed by its mu, a mixture of two would count as the smaller or the larger one."""
        one, two = gaussian(noise_multiplier=1), gaussian(noise_multiplier=2)
        assert mixture([one, two]).gaussian_mu is None
        assert mixture([one, pure_dp(epsilon=1)]).gaussian_mu is None
        assert mixture([one, one]).gaussian_mu == one.gaussian_mu

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
