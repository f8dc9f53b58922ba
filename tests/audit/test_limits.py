"""Exact confidence limits of a probability."""

import numpy as np
import pytest
from scipy import stats

from dpselect.audit.limits import lower_limit, upper_limit


class TestLimits:
    @pytest.mark.parametrize("trials", [1, 2, 7, 40])
    @pytest.mark.parametrize("error", [0.3, 0.05, 1e-4])
    def test_coverage_by_enumeration(self, trials, error):
        """The definition, at every probability of a mesh and just beside every limit, where coverage is worst."""
        counts = np.arange(trials + 1)
        low, high = lower_limit(counts, trials, error), upper_limit(counts, trials, error)
        mesh = np.concatenate([np.linspace(0.001, 0.999, 97), low[1:] - 1e-9, high[:-1] + 1e-9])
        for p in mesh[(mesh > 0) & (mesh < 1)]:
            masses = stats.binom.pmf(counts, trials, p)
            assert masses[low > p].sum() <= error * (1 + 1e-9)
            assert masses[high < p].sum() <= error * (1 + 1e-9)

    def test_closed_forms(self):
        """All or none of n: error**(1/n) and its complement (Clopper, Pearson 1934)."""
        for trials in (1, 10, 500_000):
            assert lower_limit(trials, trials, 0.01) == pytest.approx(0.01 ** (1 / trials), rel=1e-8)
            assert upper_limit(0, trials, 0.01) == pytest.approx(1 - 0.01 ** (1 / trials), rel=1e-6)
        assert lower_limit(0, 5, 0.01) == 0.0
        assert upper_limit(5, 5, 0.01) == 1.0

    def test_tails_at_the_limits_of_large_counts(self):
        for count, trials in ((17, 500_000), (250_000, 500_000), (499_999, 500_000)):
            assert stats.binom.sf(count - 1, trials, float(lower_limit(count, trials, 0.005))) <= 0.005
            assert stats.binom.cdf(count, trials, float(upper_limit(count, trials, 0.005))) <= 0.005
