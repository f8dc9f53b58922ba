"""Logarithms at both ends, and sums that round up."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.numerics.logs import log1mexp, log_weighted_sum, sum_up


def test_log1mexp_keeps_its_digits_at_both_ends():
    mp.mp.dps = 50
    xs = np.geomspace(1e-300, 700.0, 400)
    for x, got in zip(xs, log1mexp(xs), strict=True):
        truth = mp.log(-mp.expm1(-mp.mpf(float(x)))) if x < 1.0 else mp.log1p(-mp.exp(-mp.mpf(float(x))))
        assert abs(mp.mpf(float(got)) / truth - 1) < 4e-16
    assert log1mexp(0.0) == -np.inf
    assert log1mexp(np.inf) == 0.0


def test_log_weighted_sum_in_logs():
    # log(3 e^1000 + 5 e^1000) = 1000 + log 8: overflows outside logs
    assert float(log_weighted_sum([1000.0, 1000.0], [3.0, 5.0])) == pytest.approx(1000.0 + math.log(8.0), rel=1e-15)
    assert float(log_weighted_sum([0.0, 7.0], [2.0, 0.0])) == pytest.approx(math.log(2.0), rel=1e-15)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=30))
def test_sum_up_is_the_next_double_at_or_above_the_exact_sum(values):
    exact = sum(map(Fraction, values))
    total = sum_up(values)
    if math.isfinite(total):
        assert Fraction(total) >= exact
        assert total == 0.0 or Fraction(math.nextafter(total, -math.inf)) < exact


def test_sum_up_of_infinity():
    assert sum_up([1.0, float("inf")]) == float("inf")
