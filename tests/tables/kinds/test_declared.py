"""Declarations of cells: missing values, and errors that name what is wrong."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError
from dpselect.tables import KINDS, Declared
from dpselect.tables.categories import category, is_missing, positions
from dpselect.tables.kinds.declared import other_dates
from tests.tables.object_columns import objects

BERLIN = "Europe/Berlin"
EVERY = [
    Declared(),
    Declared(missing_values=[-99, "NA"]),
    Declared(kind="integer"),
    Declared(kind="boolean"),
    Declared(kind="boolean", true_values=["J", 2], false_values=["N", 3], missing_values=["?"]),
    Declared(kind="date"),
    Declared(kind="timestamp", format="%d.%m.%y %H:%M", two_digit_years_from=1950, missing_values=["01.01.70 00:00"]),
    Declared(kind="date", time_zone=BERLIN),
    Declared(kind="duration", missing_values=["0:00"]),
]


def test_what_is_missing_everywhere():
    pd = pytest.importorskip("pandas")
    none = [
        None,
        math.nan,
        np.nan,
        np.datetime64("NaT"),
        np.timedelta64("NaT"),
        pd.NaT,
        pd.NA,
        Decimal("NaN"),
        Decimal("sNaN"),
    ]
    assert all(is_missing(cell) and category(cell) == "" for cell in none)
    for declared in EVERY:
        assert np.isnan(declared.read(objects([*none, "", " "]))).all()
    assert not any(map(is_missing, ["", "NaN", b"", 0, False, Decimal(0)]))


@pytest.mark.parametrize(
    ("kind", "cells"), [("date", ["31.12.9999", "31.12.9999 "]), ("integer", ["-99", "-99.0", -99])]
)
def test_what_is_declared_missing_is_missing_however_it_is_written(kind, cells):
    form = "%d.%m.%Y" if kind == "date" else None
    declared = Declared(kind=kind, format=form, missing_values=[cells[0]])
    assert np.isnan(declared.read(objects(cells))).all()
    assert not declared.block(cells)[1].any()


def test_a_letter_with_an_accent_is_one_category_unless_it_is_declared_exact():
    names = ("caf\u00e9", "tea")
    assert positions(["cafe\u0301", "tea"], names).tolist() == [0, 1]
    exact = Declared(kind="category", unicode="exact", missing_values=["tea"])
    assert positions(["cafe\u0301", "caf\u00e9", "tea"], names[:1], exact.category).tolist() == [-1, 0, -1]
    assert exact.category("tea") == ""


class Hostile:
    """A cell whose own code raises."""

    def __init__(self, error):
        self.error = error

    def _raise(self, *_):
        raise self.error

    __str__ = __float__ = __eq__ = __ne__ = __hash__ = __bool__ = __int__ = __index__ = _raise


TEXTS = ["J", "N", "-99", "NA", "1.5", "2024-02-30", "2024-02-29", "01.01.70 00:00", "29.02.00 23:59", "1e999", "nan"]
TEXTS += ["9999-12-31T23:59-14:00", "0001-01-01T00:00+14:00", "1:30", "-5 days", "9" * 400]
ODD = [np.datetime64(2**62, "ns"), np.timedelta64(1, "Y"), np.float32(1), 10**400]
CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(TEXTS),
    st.sampled_from(ODD),
    st.binary(max_size=6),
    st.floats(),
    st.integers(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.booleans(),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.builds(Hostile, st.sampled_from([RuntimeError(), ValueError()])),
)


@settings(max_examples=60, deadline=None)
@given(cells=st.lists(CELLS, min_size=1, max_size=6), other=CELLS)
def test_no_cell_raises_or_changes_how_another_is_read(cells, other):
    place = len(cells) // 2
    changed = objects([*cells[:place], other, *cells[place + 1 :]])
    cells = objects(cells)
    rest = np.arange(len(cells)) != place
    for declared in EVERY:
        assert declared.read(cells)[rest].tobytes() == declared.read(list(changed))[rest].tobytes()
        for found, again in zip(declared.block(cells), declared.block(list(changed)), strict=True):
            assert found is again is None or found[rest].tobytes() == again[rest].tobytes()
    found, again = (positions(column, ("a", 1, ""), EVERY[1].category) for column in (cells, changed))
    assert found[rest].tolist() == again[rest].tolist()
    assert not other_dates(["x"], EVERY[0].read(["x"]))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kind": "day"}, "unknown kind 'day'; one of boolean, category, date"),
        ({"time_zone": BERLIN}, 'time_zone: goes with kind = "date" or "timestamp", not with kind = "number"'),
        ({"kind": "date", "time_zone": "Europe"}, "time_zone: 'Europe' is no name"),
        ({"kind": "date", "time_zone": "../../etc/passwd"}, "time_zone: .* is no name"),
        ({"kind": "date", "time_zone": "CEST"}, "time_zone: 'CEST' is no name"),
        ({"kind": "date", "time_zone": "+24:00"}, "time_zone: .* nor an offset"),
        ({"kind": "date", "format": "%d.%q"}, "format: .* is none of Python's strptime"),
        ({"kind": "date", "format": 3}, "format: must be a text"),
        ({"kind": "date", "format": "%d.%m.%Y", "two_digit_years_from": 1920}, "goes with a format that has %y"),
        ({"kind": "date", "format": "%y", "two_digit_years_from": 0}, "must be a year"),
        ({"kind": "boolean", "true_values": ["J"]}, "give both"),
        ({"kind": "boolean", "true_values": ["1"], "false_values": [True]}, "in two of them"),
        ({"kind": "boolean", "true_values": ["J"], "false_values": ["N"], "missing_values": ["N"]}, "in two of them"),
        ({"missing_values": "NA"}, "missing_values: must be a list"),
        ({"missing_values": []}, "missing_values: must be a list"),
        ({"missing_values": [None]}, "missing_values: must be a list"),
        ({"kind": "category", "unicode": "NFD"}, 'unicode: must be "NFC" or "exact"'),
    ],
)
def test_what_is_declared_wrong_is_named(keys, said):
    with pytest.raises(ArgumentError, match=said):
        Declared(**keys)


@pytest.mark.parametrize("form", ["%y", "%d.%m.%y", "%x", "%%%y"])
def test_two_digits_of_a_year_need_their_hundred(form):
    assert "two_digit_years_from = 1920" in Declared(kind="date", format=form).unclear
    assert Declared(kind="date", format=form, two_digit_years_from=1920).unclear is None


@pytest.mark.parametrize("form", [None, "%Y", "%%y %Y", "%d.%m.%Y"])
def test_other_formats_need_none(form):
    assert Declared(kind="date", format=form).unclear is None


def test_kinds_have_names_that_a_study_can_use():
    assert list(KINDS) == ["boolean", "category", "date", "duration", "integer", "number", "text", "timestamp"]
    with pytest.raises(TypeError, match="give categories"):
        Declared(kind="category").read(["a"])
