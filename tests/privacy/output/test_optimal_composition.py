"""Optimal composition of equal mechanisms (Kairouz, Oh, Viswanath 2015), and Table 1 of Hartmann et al. (2022)."""

from __future__ import annotations

import itertools
import math

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy.output.optimal_composition import composition_delta, composition_family, first_improvement
from tests.privacy.output.guarantee_cases import randomized_response

# delta, the printed column (one more than the formula in every column), delta_1 at the formula's count and one before
TABLE_1 = [
    (1e-5, 17, 6.033892e-6, 1.149358e-5),
    (1e-6, 20, 8.730192e-7, 1.662960e-6),
    (1e-7, 24, 6.631200e-8, 1.263136e-7),
    (1e-8, 27, 9.594412e-9, 1.827580e-8),
    (1e-9, 31, 7.287637e-10, 1.388176e-9),
    (1e-10, 35, 5.535477e-11, 1.054418e-10),
    (1e-11, 38, 8.009056e-12, 1.525595e-11),
    (1e-12, 42, 6.083446e-13, 1.158798e-12),
]


def enumerated(count, epsilon, delta, total):
    """The hockey stick of `count` randomised responses, over all 4^count views."""
    upper, lower = randomized_response(epsilon, delta)
    views = itertools.product(range(4), repeat=count)
    pairs = ((math.prod(upper[y] for y in view), math.prod(lower[y] for y in view)) for view in views)
    return math.fsum(max(p - math.exp(total) * q, 0.0) for p, q in pairs)


@pytest.mark.parametrize(("delta", "printed", "at", "before"), TABLE_1)
def test_table_1(delta, printed, at, before):
    count = first_improvement(epsilon=0.1, delta=delta)
    assert count == printed - 1
    assert composition_family(count=count, epsilon=0.1)[1].delta == pytest.approx(at, rel=1e-6)
    assert composition_family(count=count - 1, epsilon=0.1)[1].delta == pytest.approx(before, rel=1e-6)


def test_table_1_does_not_hold_one_earlier_on_the_exact_curve():
    """k = 16 and epsilon = 1.4 by the exact curve; and a small gain is there earlier, off the steps of 2 epsilon."""
    assert composition_delta(count=16, epsilon=0.1, total_epsilon=1.4) == pytest.approx(6.033892e-6, rel=1e-6)
    assert composition_delta(count=16, epsilon=0.1, total_epsilon=1.599) == pytest.approx(3.327026e-8, rel=1e-6)


@pytest.mark.theorem("Kairouz, Oh, Viswanath 2015, Theorem 3.3", exact=True, sharp=True)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.3, 0.01), (1.0, 0.2)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_family_is_the_exact_curve_of_randomised_responses(count, epsilon, delta):
    for member in composition_family(count=count, epsilon=epsilon, delta=delta):
        exact = enumerated(count, epsilon, delta, member.epsilon)
        assert member.delta == pytest.approx(exact, abs=1e-13)
        assert composition_delta(count=count, epsilon=epsilon, delta=delta, total_epsilon=member.epsilon) == (
            pytest.approx(exact, abs=1e-13)
        )
    for total in (0.0, 0.123, 0.9):
        exact = enumerated(count, epsilon, delta, total)
        found = composition_delta(count=count, epsilon=epsilon, delta=delta, total_epsilon=total)
        assert found == pytest.approx(exact, abs=1e-13)
        assert found >= exact - 1e-15 * 4**count  # rounded up; the enumeration itself rounds


def test_fact_18_one_stop_is_optimal_composition():
    found = composition_delta(count=10, epsilon=0.1, delta=1e-3, total_epsilon=0.8)
    assert found == pytest.approx(0.0102404842, abs=5e-11)


def test_a_hundred_mechanisms():
    """epsilon 4.306791 at delta 1e-5 (Hartmann et al., section 5.3, computed)."""
    assert composition_delta(count=100, epsilon=0.1, total_epsilon=4.306791) == pytest.approx(1e-5, rel=1e-5)


def test_extremes():
    assert composition_family(count=1, epsilon=0.0)[0].delta == 0.0
    assert composition_delta(count=3, epsilon=0.5, total_epsilon=1.5) == 0.0
    assert composition_delta(count=3, epsilon=0.5, delta=1.0, total_epsilon=1.5) == 1.0
    assert composition_delta(count=3000, epsilon=1e-3, total_epsilon=0.5) < 1
    assert first_improvement(epsilon=3.0, delta=0.9999) == 2
    for wrong in ({"epsilon": 0, "delta": 0.1}, {"epsilon": 0.1, "delta": 0}, {"epsilon": math.nan, "delta": 0.1}):
        with pytest.raises(ArgumentError):
            first_improvement(**wrong)
