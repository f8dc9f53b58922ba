"""Power sums fitted by short polynomials, against high precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpselect.repetitions import (
    Uniform,
)
from dpselect.repetitions.panels import Panels, power_sum


def test_a_long_table_matches_its_closed_form():
    """The uniform law on 0 .. 100,000 has phi(s) = (1 - s**(n + 1)) / ((n + 1) (1 - s))."""
    n = 100_000
    law = Uniform(limit=n)
    complement, mass = np.array([0.0, 1e-9, 1e-5, 0.01, 0.4]), np.array([1e-12, 1e-3, 1e-18, 0.3, 1e-10])
    got = law.increment(complement_after=complement, mass=mass)
    with mpmath.workdps(80):

        def phi(v: mpmath.mpf) -> mpmath.mpf:
            return -mpmath.expm1((n + 1) * mpmath.log1p(-v)) / ((n + 1) * v) if v else mpmath.mpf(1)

        want = [phi(mpmath.mpf(c)) - phi(mpmath.mpf(c) + mpmath.mpf(m)) for c, m in zip(complement, mass, strict=True)]
    assert got == pytest.approx([float(w) for w in want], rel=1e-13)
    assert law.third_derivative(0.0) == pytest.approx((n - 1) * (n - 2) * n / 4.0, rel=1e-12)


def test_values_and_integrals_of_a_steep_sum():
    """Of 1 + 5 (1 - v)**200: its values, and integrals within one part, across parts and across panels."""
    coefficients = np.zeros(201)
    coefficients[0], coefficients[200] = 1.0, 5.0
    fitted = Panels.fit(coefficients)
    v = np.array([0.0, 1e-9, 0.003, 0.05, 0.5, 1.0])
    assert fitted(v) == pytest.approx(1.0 + 5.0 * (1.0 - v) ** 200, rel=1e-13)
    for length in (1e-14, 1e-3, 0.3, 1.0):
        start = np.array([0.0, 0.004, 0.2, 0.7])
        step = np.minimum(length, 1.0 - start)
        powers = np.exp(201 * np.log1p(-start)) * -np.expm1(
            201 * np.log1p(np.maximum(-step / (1.0 - start), -1 + 1e-16))
        )
        assert fitted.integral(start, step) == pytest.approx(step + 5.0 / 201 * powers, rel=1e-12)


def test_no_coefficients_give_zero():
    assert Panels.fit(np.zeros(3))(np.array([0.0, 0.5])).tolist() == [0.0, 0.0]


def test_a_power_sum_by_blocks():
    coefficients = np.arange(1.0, 12.0)
    got = power_sum(coefficients, np.log(np.array([0.5, 0.9, 1.0])))
    assert got == pytest.approx([sum(c * s**k for k, c in enumerate(coefficients)) for s in (0.5, 0.9, 1.0)], rel=1e-14)
    assert power_sum(coefficients, np.array([-np.inf])).tolist() == [1.0]
