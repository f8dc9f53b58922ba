"""Percentiles by sampling: how far counts move, and how much smoothing that takes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, poisson

from dpselect.accounting.best_of_k.feasible_region import PureTradeOff
from dpselect.accounting.candidates.sampled_percentile import (
    SmoothedCount,
    concentration_smoothing,
    far_apart_probability,
    lemma_4_3,
    lemma_4_3_smoothing,
)
from dpselect.accounting.candidates.sampled_search import (
    threshold_search,
)
from dpselect.privacy import pure_dp
from tests.accounting.candidates.test_threshold_published import E, near


def test_lemma_4_3():
    """C < 21, and the printed constants of A4 and A5 from it."""
    for (slack, epsilon, failure), smoothing in {
        (0.5, 0.5, 1e-3): 88.5117885,
        (0.1, 1.0, 1e-6): 731.951405,
        (0.2, 0.1, 1e-6): 1432.80211,
        (0.25, 0.5, 1e-6 / 40): 553.928263,
        (0.1, 1.0, 1e-6 / 400): 1034.21651,
        (0.1, 1.0, 1e-3 / 20): 534.592643,
        (0.1, 0.1, 1e-6 / 20): 5174.83703,
    }.items():
        assert lemma_4_3_smoothing(epsilon=epsilon, slack=slack, failure=failure) == near(smoothing)
        assert lemma_4_3(epsilon=epsilon, slack=slack, smoothing=smoothing) == near(failure, rel=1e-5)
    c = math.log(2.0 / 0.5) / lemma_4_3_smoothing(epsilon=1.0, slack=1 - 1e-12, failure=0.5)
    assert (1 - 1e-12) * (math.exp(2.0) - 1) / c == near(20.0755547)


@pytest.mark.theorem(
    "Liu, Talwar 2019, Lemma 4.3", exact=True, loose="a tail bound: the exact failure is 2.5e-22 where it says 1e-3"
)
def test_the_theorems_smoothing_is_far_more_than_needed():
    """n = 2000, epsilon_1 = slack = 0.5: the exact failure at 88.51 is 2.5e-22 and 9.967 would do for 1e-3."""
    n, p = 2000, np.geomspace(1e-4, 0.4, 120)

    def exact(smoothing):
        x = np.arange(n + 1)
        y_most = np.floor((x + smoothing) / E - smoothing)
        return max(float(np.sum(binom.pmf(x, n, math.exp(0.5) * a) * binom.cdf(y_most, n, a))) for a in p)

    assert exact(88.5117885) == pytest.approx(2.5e-22, rel=0.1)
    assert exact(9.967) == pytest.approx(1e-3, rel=0.02)
    # our bound holds for every coupling: two exact tails, well below the theorem
    statistic = SmoothedCount(samples=n, smoothing=88.5117885, sensitivity=1.0)
    bound = far_apart_probability(statistic, PureTradeOff(0.5))
    assert exact(88.5117885) <= bound < 1e-3 / 1e6


@pytest.mark.parametrize(("thresholds", "smoothing"), [(1, 20.0), (3, 250.0)])
def test_a_single_threshold_has_a_count_of_its_own(thresholds, smoothing):
    """It fails in one direction, once; several share one batch, where each may fail in either."""
    base, statistic = pure_dp(epsilon=0.5), SmoothedCount(samples=1000, smoothing=smoothing, sensitivity=0.6)
    apart = far_apart_probability(statistic, PureTradeOff(0.5), coupled=thresholds == 1)
    failure = threshold_search(base, statistic=statistic, epsilon=0.5, thresholds=thresholds).guarantee.failure
    assert failure == near((1 if thresholds == 1 else 2 * thresholds) * apart)


@pytest.mark.theorem("Liu, Talwar 2019, Lemma A.4", exact=True, loose="a tail bound")
def test_utility_needs_more_smoothing_than_privacy():
    """Erratum: with Delta = 534.6 concentration fails with probability 0.010137, where 5e-5 is claimed."""
    smoothing = lemma_4_3_smoothing(epsilon=1.0, slack=0.1, failure=1e-3 / 20)

    def fails(smoothing):
        mu = np.linspace(1.0, 20.0 * smoothing, 4000)
        return float(np.max(poisson.sf(np.floor(math.exp(0.05) * (mu + smoothing) - smoothing), mu)))

    assert fails(smoothing) == pytest.approx(0.010137, rel=0.01)
    repaired = concentration_smoothing(slack=0.1, failure=1e-3 / 20)
    assert repaired == near(7727.98040)
    assert fails(repaired) <= 5e-5
