"""Conversion of Renyi curves to epsilon and delta against many digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dpselect.numerics.search import root_between
from dpselect.privacy import (
    renyi_dp,
)
from dpselect.privacy.renyi import epsilon_from_renyi

# Golden values


def test_conversion_of_one_order():
    # Papernot, Steinke 2022, Lemma 14 (Canonne, Kamath, Steinke 2020, Proposition 12), evaluated in 60 digits
    g = renyi_dp(orders=[10.0], epsilons=[0.5])
    with mp.workdps(60):
        delta = mp.exp(9 * (mp.mpf("0.5") - 2)) / 10 * (1 - mp.mpf(1) / 10) ** 9
        epsilon = mp.mpf("0.5") + mp.log(mp.mpf("0.9")) - (mp.log(mp.mpf(10) ** -6) + mp.log(10)) / 9
    assert float(delta) == pytest.approx(5.3113764e-8, rel=1e-8)
    # lower orders have the same bound, by monotonicity, and never help here
    assert g.delta(2.0) == pytest.approx(float(delta), rel=1e-11)
    assert g.delta(2.0) >= delta
    assert g.epsilon(delta=1e-6) == pytest.approx(1.673853425, abs=5e-9)
    assert g.epsilon(delta=1e-6) >= epsilon


class RenyiOfPair:
    """The exact divergence of one finite law from another."""

    def __init__(self, first, second):
        self.first, self.second = np.array(first), np.array(second)

    def __call__(self, orders):
        found = self.first > 0
        logs = np.log(self.first[found]), np.log(self.second[found])
        terms = np.exp(orders[:, None] * logs[0] + (1.0 - orders[:, None]) * logs[1])
        return np.log(terms.sum(axis=1)) / (orders - 1.0)


def least_delta_at_no_cost(curve):
    """The smallest delta at which the curve gives epsilon 0."""
    return root_between(lambda delta: epsilon_from_renyi(curve, delta) == 0.0, safe=1.0, unsafe=0.0, relative=1e-9)


def test_a_delta_that_total_variation_cannot_exceed_costs_nothing():
    """Bretagnolle and Huber: an epsilon of 0 needs the total variation distance as its delta, and no pair has more."""
    chance = np.random.default_rng(3)
    for size in (2, 3, 5):
        for _ in range(4):
            first, second = chance.dirichlet(np.full(size, 0.3), size=2)
            distance = np.abs(first - second).sum() / 2.0
            assert least_delta_at_no_cost(RenyiOfPair(first, second)) >= distance
    # a point against almost nothing of it: attained within 1 %, as its divergence grows
    assert 0.0 <= least_delta_at_no_cost(RenyiOfPair([1.0, 0.0], [0.01, 0.99])) - 0.99 < 0.01 * 0.99
