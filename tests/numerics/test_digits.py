"""Numbers as text, rounded to their own side."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from dpselect.numerics.digits import rounded, rounded_down, rounded_up

positive = st.floats(1e-300, 1e300)


@given(value=positive, digits=st.integers(1, 12))
def test_up_is_never_below_and_down_never_above_by_at_most_one_digit(value, digits):
    up, down = float(rounded_up(value, digits=digits)), float(rounded_down(value, digits=digits))
    assert down <= value <= up
    assert up - down <= 1.000001 * 10.0 ** (math.floor(math.log10(value)) + 1 - digits) + 4e-16 * value


@pytest.mark.parametrize(
    ("value", "up", "down", "nearest"),
    [
        (9.9999995, "10", "9.99999", "10"),
        (0.1, "0.1", "0.1", "0.1"),
        (1234.565, "1234.57", "1234.56", "1235"),
        (0.0, "0", "0", "0"),
        (math.inf, "inf", "inf", "inf"),
        (1.5e-12, "1.5e-12", "1.5e-12", "1.5e-12"),
        (2.00005e-7, "2.00005e-07", "2.00005e-07", "2e-07"),
    ],
)
def test_known_texts(value, up, down, nearest):
    assert (rounded_up(value), rounded_down(value), rounded(value)) == (up, down, nearest)


def test_nearest_goes_to_even_at_a_tie():
    assert rounded(0.5, digits=1) == "0.5"
    assert rounded(2.5, digits=1) == "2"
    assert rounded(3.5, digits=1) == "4"
