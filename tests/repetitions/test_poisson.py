"""Poisson distributions of K, with and without K = 0, against the series and the printed theorems."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions import (
    Poisson,
    ZeroTruncatedPoisson,
)
from dpselect.repetitions.poisson import corollary_21, theorem_6
from tests.repetitions.exact_tables import agrees_with_table

DIGITS = pytest.approx


def test_spread_of_poisson():
    law = Poisson(mean=10)
    assert law.zero_probability == DIGITS(4.54e-5, rel=1e-3)
    assert [law.quantile(p) for p in (0.5, 0.9, 0.99, 0.999)] == [10, 14, 18, 21]
    assert law.second_derivative(0.0) + law.mean - law.mean**2 == DIGITS(10.0, rel=1e-13)


def exponential(rate: Fraction) -> Fraction:
    return sum((rate**k / math.factorial(k) for k in range(80)), Fraction(0))


def test_the_series():
    rate = Fraction(3, 2)
    exact = [rate**k / math.factorial(k) / exponential(rate) for k in range(40)]
    agrees_with_table(Poisson(mean=1.5), exact, tail=1e-30)


def test_the_series_without_its_first_term():
    law = ZeroTruncatedPoisson(mean=2.0)
    rate = Fraction(law._rate)
    exact = [Fraction(0)] + [rate**k / math.factorial(k) / (exponential(rate) - 1) for k in range(1, 40)]
    assert float(sum(k * p for k, p in enumerate(exact))) == DIGITS(2.0, abs=1e-15)
    agrees_with_table(law, exact, tail=1e-30)


def test_a_small_mean_keeps_the_digits_of_its_quantile():
    # 1 - (1 - exp(-m)) / m = m/2 - m**2/6 + m**3/24 - ...
    m = 1e-4
    assert Poisson(mean=m).expected_quantile() == pytest.approx(m / 2 - m**2 / 6 + m**3 / 24, rel=1e-13)
    assert Poisson(mean=0.1).expected_quantile() == pytest.approx(Poisson(mean=0.1 + 1e-15).expected_quantile(), 1e-12)


def test_the_pure_shift_is_the_mean_times_a_hyperbolic_tangent():
    assert Poisson(mean=7.0).pure_shift(0.5) == pytest.approx(7.0 * math.tanh(0.25), rel=1e-14)
    law = ZeroTruncatedPoisson(mean=7.0)
    assert law.pure_shift(0.5) == pytest.approx(law._rate * math.tanh(0.25), rel=1e-14)


def test_theorem_6_as_printed_and_as_a_form():
    orders, epsilons = np.array([2.0, 5.0]), np.array([0.3, 0.4])
    want = [0.3 + 4 * 0.1 + math.log(4), 0.4 + 4 * 0.1 + math.log(4) / 4]
    assert theorem_6(law=Poisson(mean=4.0), order=orders, epsilon=epsilons, hat_delta=0.1) == DIGITS(want, rel=1e-14)

    class Run:
        def hockey_stick(self, losses):  # at log(order / (order - 1))
            assert np.exp(losses) == DIGITS([2.0, 1.25], rel=1e-14)
            return np.full(2, 0.1)

    (form,) = Poisson(mean=4.0).renyi_forms(Run())
    assert form(orders, epsilons) == DIGITS(want, rel=1e-13)
    with pytest.raises(ArgumentError, match="mean of at least 1"):
        theorem_6(law=Poisson(mean=0.99), order=2.0, epsilon=0.0, hat_delta=0.0)


def test_corollary_21():
    order, epsilon, failure = corollary_21(law=Poisson(mean=10.0), epsilon=0.5, failure=1e-3)
    growth = math.exp(0.5) - 1
    assert order == DIGITS(1 + 1 / growth, rel=1e-14)
    assert epsilon == DIGITS(0.5 + growth * math.log(10), rel=1e-14)
    assert failure == DIGITS(1 - math.exp(-0.01), rel=1e-13)
    with pytest.raises(ArgumentError, match="mean of at least 1"):
        corollary_21(law=Poisson(mean=0.99), epsilon=0.5, failure=0.0)
