"""Intervals of shares and curves hold with their probability, by the exact distribution."""

import numpy as np
from scipy.stats import binom

from dpselect.study.metrics.intervals import curve_error, partial_sums, share_interval

# intervals


def test_a_share_lies_in_its_interval_by_the_exact_law():
    for rows, failure in ((7, 0.2), (40, 0.05), (200, 0.01)):
        ends = [share_interval(k / rows, k / rows, float(rows), failure) for k in range(rows + 1)]
        worst = 0.0
        for p in np.linspace(0.001, 0.999, 333):
            chances = binom.pmf(np.arange(rows + 1), rows, p)
            worst = max(worst, sum(c for c, (low, high) in zip(chances, ends, strict=True) if not low <= p <= high))
        assert failure / 30 < worst <= failure


def test_hardly_any_noise_has_hardly_any_sums():
    """Where its rate is beyond what exp takes, too."""
    found = [partial_sums(16, rate, 0.01) for rate in (1.0, 30.0, 700.0, 5000.0, 1e6)]
    assert found == sorted(found, reverse=True)
    assert 0.0 < found[-1] < found[0]


def test_no_partial_sum_is_beyond_its_bound_by_the_exact_law():
    """The law of the largest partial sum of three discrete Laplace variables, by adding up."""
    rate, failure = 0.7, 0.05
    bound = partial_sums(3, rate, failure)
    values = np.arange(-60, 61)
    each = np.exp(-rate * np.abs(values))
    each /= np.sum(each)
    inside = np.where(values == 0, 1.0, 0.0)
    for _ in range(3):
        inside = np.convolve(inside, each)[60:181] * (np.abs(values) <= bound)
    beyond = 1.0 - np.sum(inside)
    assert failure / 100 < beyond <= failure


def test_a_curve_is_within_its_error_of_the_expectation():
    """Of 400 samples of 50 uniform draws at most 0.05 in expectation 20 are beyond; by chance 45 once in 10**6."""
    random = np.random.default_rng(5)
    samples = np.sort(random.random((400, 50)), axis=1)
    steps = np.arange(51) / 50
    off = np.maximum(np.max(steps[1:] - samples, axis=1), np.max(samples - steps[:-1], axis=1))
    assert 1 <= np.sum(off > curve_error(50, 0.05)) <= 45
