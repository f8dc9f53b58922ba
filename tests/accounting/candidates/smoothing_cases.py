"""Counts drawn by their quantiles: how often they are apart, by enumeration."""

import math

import numpy as np
from scipy.stats import binom

WORST = np.concatenate((np.geomspace(1e-4, 0.6, 600), 1.0 - np.geomspace(1e-4, 0.4, 200)))


def apart(statistic, epsilon, probabilities=WORST):
    """The largest probability, over pairs at the edge of the base, that counts drawn by their quantiles are apart."""
    n, worst = statistic.samples, 0.0
    values = np.array([statistic.statistic(k) for k in range(n + 1)])
    for p in probabilities:
        q = min(math.exp(epsilon) * p, 1.0 - math.exp(-epsilon) * (1.0 - p))
        one, other = binom.cdf(np.arange(n), n, p), binom.cdf(np.arange(n), n, q)
        ends = np.concatenate(([0.0], np.sort(np.concatenate((one, other))), [1.0]))
        middles = 0.5 * (ends[1:] + ends[:-1])
        x, y = np.searchsorted(one, middles), np.searchsorted(other, middles)
        worst = max(worst, float(np.sum(np.diff(ends)[values[y] - values[x] > statistic.sensitivity])))
    return worst
