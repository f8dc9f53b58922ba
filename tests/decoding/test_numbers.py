"""Exact numbers in text: read as fractions, or refused before they are made."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from dpselect.decoding.limits import LimitError
from dpselect.decoding.numbers import fraction_of
from tests.decoding.limits_cases import _nothing

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=5) | FINITE)
def test_exact_numbers_are_read_as_fractions(value):
    assert fraction_of(str(value)) == Fraction(str(value))


NUMBER_SIGNS = ["1", "0", "/", ".", "e", "E", "-", "+", "_", " ", "99", "inf", "٣"]


@given(st.lists(st.sampled_from(NUMBER_SIGNS), max_size=8).map("".join))
def test_any_text_is_an_exact_number_or_refused(text):
    huge = re.search(r"[eE][+-]?\d{4}", text)
    with _nothing() as refused:
        found = fraction_of(text)
    expected = None
    if text.isascii() and "_" not in text and not huge:
        with suppress(ValueError, ZeroDivisionError):
            expected = Fraction(text)
    if expected is not None:
        assert not refused
    assert refused or huge or found == expected


TOO_LONG = ["1e999999999999", "1e-99999999", "1e4301", "9" * 5000, "1/" + "9" * 5000, "." + "0" * 5000 + "1"]


@pytest.mark.parametrize("text", [*TOO_LONG, "1e" + "9" * 90])
def test_exact_numbers_are_bounded_before_they_are_made(text):
    start = time.process_time()
    with pytest.raises(LimitError):
        fraction_of(text)
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize("text", ["1e4299", "1e-4299", "9" * 4300, "0." + "0" * 4297 + "11", "1/" + "9" * 4300])
def test_exact_numbers_can_be_written_again(text):
    assert Fraction(str(fraction_of(text))) == Fraction(text)


@pytest.mark.parametrize("text", ["1e4300", "1e-4300", "9" * 4300 + "e1", "." + "0" * 4299 + "1", "1" * 4000 + "e4000"])
def test_exact_numbers_that_cannot_be_written_again_are_refused(text):
    with pytest.raises(LimitError, match="more than 4300 digits when it is written out"):
        fraction_of(text)
