"""Public domains: which values the arguments declare, for each type of column, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.domains import Doubles, Grid, Timestamps, WholeNumbers
from dpselect.ordered.public_domain import PublicDomain

INT, FLOAT, OBJECT, DAYS = np.dtype("i8"), np.dtype("f8"), np.dtype(object), np.dtype("M8[D]")


def test_integers_between_the_bounds():
    assert PublicDomain(lower=-1.5, upper=3.5).of_type(INT) == WholeNumbers(-1, 3)
    assert PublicDomain(lower=0, upper=1 << 80).of_type(OBJECT) == WholeNumbers(0, 1 << 80)
    assert PublicDomain(lower=np.int64(2**62 + 1), upper=2**63 - 1).of_type(INT) == WholeNumbers(2**62 + 1, 2**63 - 1)
    assert PublicDomain(domain_size=7).of_type(INT) == WholeNumbers(0, 6)


def test_multiples_of_a_granularity():
    assert PublicDomain(lower=0, upper=1, granularity=0.1).of_type(FLOAT) == Grid(0, 10, Fraction(1, 10))
    assert PublicDomain(lower=0.05, upper=0.95, granularity=0.1).of_type(INT) == Grid(1, 9, Fraction(1, 10))
    assert PublicDomain(domain_size=7).of_type(FLOAT) == Grid(0, 6, Fraction(1))


def test_doubles_have_fourteen_digits_of_the_larger_bound():
    found = PublicDomain(lower=-3, upper=1).of_type(FLOAT)
    assert isinstance(found, Grid)
    assert Fraction(3) / 2**49 < found.granularity <= Fraction(3) / 2**48
    assert found.granularity.numerator == 1
    assert PublicDomain(lower=0, upper=1, granularity="float64").of_type(FLOAT) == Doubles(0.0, 1.0)
    assert PublicDomain(lower=0, upper=0).of_type(FLOAT) == Grid(0, 0, Fraction(1))


def test_time_stamps_in_the_unit_of_the_column():
    found = PublicDomain(lower="1970-01-02T12:00", upper="1970-01-05").of_type(DAYS)
    assert found == Timestamps(2, 4, "D", 1)
    weeks = PublicDomain(lower=0, upper=60, granularity=np.timedelta64(1, "W")).of_type(DAYS)
    assert weeks == Timestamps(0, 60, "D", 7)


def test_without_a_column_the_bounds_say_the_type():
    assert PublicDomain(lower=0, upper=9).by_bounds() == WholeNumbers(0, 9)
    assert isinstance(PublicDomain(lower=0.0, upper=9).by_bounds(), Grid)
    assert isinstance(PublicDomain(lower=0.0, upper=9).by_bounds(doubles=True), Doubles)
    assert PublicDomain(lower=np.datetime64("1970-01-01"), upper=np.datetime64(61, "s")).by_bounds() == Timestamps(
        0, 61, "s", 1
    )
    assert PublicDomain(lower=5, upper=9).of_size(3).size() == 3


@pytest.mark.parametrize(
    ("public", "kind", "said"),
    [
        ({}, INT, "never read off the data"),
        ({"lower": 0}, INT, "Write lower=0, upper=100"),
        ({"domain_size": 3, "lower": 0}, INT, "not both"),
        ({"domain_size": 0}, INT, "domain_size"),
        ({"domain_size": (1 << 53) + 1}, FLOAT, "domain_size"),
        ({"domain_size": 3}, DAYS, "give timestamps a lower and an upper"),
        ({"lower": 1, "upper": 0}, INT, "lower must be at most upper, got 1 and 0"),
        ({"lower": 1, "upper": 0}, FLOAT, "lower must be at most upper"),
        ({"lower": 0.1, "upper": 0.9, "granularity": 1}, FLOAT, "leaves no value"),
        ({"lower": 0, "upper": 1, "granularity": 2.0**-54}, FLOAT, r"at least 2\*\*-53"),
        ({"lower": 0, "upper": 1, "granularity": "float32"}, FLOAT, "'float64', got 'float32'"),
        ({"lower": 0, "upper": (1 << 52) + 1, "granularity": 2}, INT, r"at most 2\*\*52"),
        ({"lower": "today", "upper": "1970-01-05"}, DAYS, "lower must be a timestamp"),
        ({"lower": 0, "upper": 1, "granularity": 0.5}, DAYS, "granularity must be a duration"),
        ({"lower": 0, "upper": 1, "granularity": np.timedelta64(0, "D")}, DAYS, "at least one unit"),
        ({"lower": 0, "upper": 1}, np.dtype("M8[2D]"), "whole units"),
    ],
)
def test_what_declares_no_domain_is_refused(public, kind, said):
    with pytest.raises(ArgumentError, match=said):
        PublicDomain(**public).of_type(kind)


def test_the_largest_domain_of_doubles_that_a_size_declares():
    assert PublicDomain(domain_size=1 << 53).of_type(FLOAT).size == 1 << 53
    assert PublicDomain(lower=0, upper=1, granularity=2.0**-53).of_type(FLOAT).size == (1 << 53) + 1
