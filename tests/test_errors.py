"""Parsing of numbers at the boundary."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError, BoundUnavailableError, StudyError, integer, number


@pytest.mark.parametrize(
    "one", [1, 1.0, Fraction(1), Decimal(1), np.int64(1), np.float32(1), np.float64(1), np.array(1)]
)
def test_every_spelling_of_one_is_one(one):
    assert number("x", one) == 1.0
    assert type(number("x", one)) is float
    whole = integer("x", one)
    assert whole == 1
    assert type(whole) is int


@pytest.mark.parametrize(
    "wrong", [True, False, np.True_, "1", b"1", bytearray(b"1"), np.str_("1"), None, [1.0], 1j, {}]
)
def test_what_is_not_a_number_is_a_type_error_that_names_the_argument(wrong):
    for parse in (number, integer):
        with pytest.raises(TypeError, match=r"^width must be"):
            parse("width", wrong)


@pytest.mark.parametrize(
    "wrong", [float("nan"), Decimal("nan"), np.float64("nan"), float("inf"), -float("inf"), 10**400]
)
def test_nan_and_infinity_are_refused(wrong):
    with pytest.raises(ArgumentError, match=r"^width"):
        number("width", wrong)


def test_infinity_only_where_it_is_allowed_and_nan_never():
    assert number("x", float("inf"), finite=False) == float("inf")
    with pytest.raises(ArgumentError):
        number("x", float("nan"), finite=False)


@pytest.mark.parametrize(
    ("limits", "good", "bad"),
    [
        ({"above": 0}, [5e-324, 1], [0, -1]),
        ({"at_least": 0}, [0, -0.0], [-5e-324]),
        ({"below": 1}, [1 - 2**-53, -3], [1, 2]),
        ({"at_most": 1}, [1], [1 + 2**-52]),
        ({"at_least": 0, "below": 1}, [0, 0.5], [1, -1]),
    ],
)
def test_limits_are_open_or_closed_as_named(limits, good, bad):
    for value in good:
        assert number("x", value, **limits) == value
    for value in bad:
        with pytest.raises(ArgumentError, match=r"^x must be"):
            number("x", value, **limits)


def test_the_message_names_the_limit_and_the_value():
    with pytest.raises(
        ArgumentError, match=r"^delta must be a finite number at least 0 and below 1, got 2. Write delta=1e-6$"
    ):
        number("delta", 2, at_least=0, below=1)
    with pytest.raises(ArgumentError, match=r"^steps must be an integer at least 1, got 0. Write steps=100$"):
        integer("steps", 0, at_least=1)
    with pytest.raises(ArgumentError, match=r"^steps must be an integer, got 1\.5. Write steps=2$"):
        integer("steps", 1.5)


def test_whole_numbers_keep_every_digit():
    assert integer("x", 2**53 + 1) == 2**53 + 1
    assert integer("x", np.int64(2**53 + 1)) == 2**53 + 1
    assert integer("x", np.uint64(2**64 - 1)) == 2**64 - 1
    assert integer("x", 10**400) == 10**400
    assert integer("x", 3.0) == 3


def test_errors_are_the_builtin_ones_that_callers_expect():
    for kind in (ArgumentError, AdjacencyError, BoundUnavailableError, StudyError):
        assert issubclass(kind, ValueError)
