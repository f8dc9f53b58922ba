"""Logarithms of ratios of gamma functions, against exact products and high precision."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from dpselect.repetitions.gamma_ratio import log_gamma_ratio


def test_whole_steps_are_products():
    # Gamma(x + 3) / Gamma(x) = x (x + 1) (x + 2)
    x = np.array([0.25, 1.0, 15.9, 16.0, 100.0])
    assert log_gamma_ratio(x, 3) == pytest.approx(np.log(x * (x + 1) * (x + 2)), rel=1e-13)
    assert log_gamma_ratio(5, 0).tolist() == 0.0
    assert log_gamma_ratio(5, -2) == pytest.approx(-math.log(4 * 3), rel=1e-13)


@pytest.mark.parametrize("x", [16.0, 17.5, 1e3, 1e8, 1e15])
@pytest.mark.parametrize("d", [-0.5, 1e-9, 0.5, 3.7, 1e4])
def test_nothing_cancels_at_large_arguments(x, d):
    with mpmath.workdps(60):
        want = float(mpmath.loggamma(mpmath.mpf(x) + mpmath.mpf(d)) - mpmath.loggamma(x))
    assert float(log_gamma_ratio(x, d)) == pytest.approx(want, rel=3e-15, abs=1e-14)
