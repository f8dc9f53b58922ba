"""Counts of drawn outputs, and a test that they fit a distribution."""

from __future__ import annotations

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6


def fits(found, law):
    draws = sum(found.values())
    cells = [y for y, p in law.items() if p * draws >= 10]
    observed = [found.get(y, 0) for y in cells]
    expected = [law[y] * draws for y in cells]
    observed.append(draws - sum(observed))
    expected.append(draws - sum(expected))
    if expected[-1] < 1e-6:
        assert observed.pop() == 0
        expected.pop()
    return stats.chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue > FALSE_ALARM


def counted(outputs):
    found = {}
    for output in outputs:
        found[output] = found.get(output, 0) + 1
    return found
