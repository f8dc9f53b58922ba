"""Counts drawn by their quantiles from one uniform number, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpselect.accounting.best_of_k.feasible_region import PureTradeOff
from dpselect.accounting.candidates.quantile_coupling import apart_by_quantiles, blocks, tail_error
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds, far_apart_probability
from tests.accounting.candidates.smoothing_cases import apart


@pytest.mark.cases(2)
@pytest.mark.parametrize(("kind", "reach"), [(SmoothedOdds, 2.0), (SmoothedCount, 1.0)])
@pytest.mark.parametrize(("samples", "smoothing"), [(1, 0.4), (9, 0.7), (30, 1.5), (80, 2.0)])
def test_the_coupled_probability_is_the_enumerated_one(kind, reach, samples, smoothing):
    """Never below the enumeration, and within a quarter of it where it is not negligible."""
    epsilon = 0.3
    statistic = kind(samples=samples, smoothing=smoothing, sensitivity=reach * (epsilon + 0.1))
    bound, exact = far_apart_probability(statistic, PureTradeOff(epsilon), coupled=True), apart(statistic, epsilon)
    assert exact <= bound * (1 + 1e-9)
    assert bound <= 1.26 * exact + 1e-9


def test_a_count_that_must_not_grow_errs_where_one_is_larger():
    """With one draw and close(k) = k the counts differ with probability p' - p, and never if all are close."""
    breaks = np.array([[0.0, 1.0, 2.0]])
    low, far = np.array([0.25]), np.array([0.375])
    found = apart_by_quantiles(np.array([[0.0, 1.0]]), breaks, 1, low, far)
    assert 0.125 <= found[0] <= 0.125 * (1 + 1e-10)
    assert apart_by_quantiles(np.array([[1.0, 1.0]]), breaks, 1, low, far)[0] < 1e-11


def test_single_counts_are_exact_and_larger_blocks_are_above():
    n, p, q = 40, 0.2, 0.3
    k = np.arange(n + 1)
    close = np.minimum(k + 4, n)
    one, other = binom.cdf(k, n, p), binom.cdf(close, n, q)
    exact = float(np.sum(np.maximum(0.0, one - np.maximum(np.append(0.0, one[:-1]), other))))
    every = np.arange(n + 2.0)[None, :]
    low, far = np.array([p]), np.array([q])
    found = apart_by_quantiles(close[None, :].astype(float), every, n, low, far)[0]
    assert exact <= found <= exact * (1 + 1e-9)
    pairs = np.append(every[:, ::2], [[n + 1.0]], axis=1)
    coarse = apart_by_quantiles(np.minimum(pairs[:, :-1] + 4, n), pairs, n, low, far)[0]
    # P(a <= count < b) above F'(close(a)), for the blocks {0, 1}, {2, 3}, ..., {40}
    ends = np.append(np.arange(1, n, 2), n)
    upto, near = binom.cdf(ends, n, p), binom.cdf(close[::2], n, q)
    blocked = float(np.sum(np.maximum(0.0, upto - np.maximum(np.append(0.0, upto[:-1]), near))))
    assert exact < blocked <= coarse <= blocked * (1 + 1e-9)


def test_blocks_are_single_counts_where_those_are_few():
    assert blocks(5, np.array([0.1, 0.5]), 10).tolist() == [[0, 1, 2, 3, 4, 5, 6]] * 2
    many = blocks(10_000, np.array([0.01, 0.5]), 300)
    assert many.shape == (2, 300)
    assert np.all(np.diff(many, axis=1) >= 0)
    for row in many.tolist():
        assert {*range(100), *range(9902, 10_002)} <= set(row)
    assert many[1, 150] == pytest.approx(5000, abs=20)
    few = blocks(10_000, np.array([0.5]), 20)
    assert (few.shape, few[0, 0], few[0, -1]) == ((1, 20), 0.0, 10_001.0)


def test_the_error_of_a_tail_grows_with_the_draws():
    assert tail_error(0) == 1e-12
    assert tail_error(10**9) == pytest.approx(1e-4, rel=1e-7)
