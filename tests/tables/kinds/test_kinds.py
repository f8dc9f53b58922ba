"""Kinds of cells, as they are declared: what other libraries read under the same declaration."""

import datetime
import io
import math
import random
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.reading import parse_study
from dpselect.study.schema import Data
from dpselect.tables import KINDS, Declared
from dpselect.tables.categories import category, is_missing, positions
from dpselect.tables.kinds.declared import other_dates
from dpselect.tables.numbers import restated
from dpselect.tables.table import open_table

BERLIN = "Europe/Berlin"
MOMENTS = [
    datetime.datetime(1900, 1, 1) + datetime.timedelta(seconds=random.Random(7).randrange(0, 199 * 31_556_952) + step)
    for step in range(0, 10**8, 50_000)
]
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


def objects(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M%S", "%d-%b-%Y %H:%M:%S"])
def test_dates_of_a_format_are_those_of_pandas(form):
    pd = pytest.importorskip("pandas")
    texts = [moment.strftime(form) for moment in MOMENTS]
    expected = pd.to_datetime(pd.Series(texts), format=form).to_numpy().astype("M8[s]").astype(np.int64)
    assert Declared(kind="date", format=form).read(texts).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "zone", [BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca"]
)
def test_times_of_a_zone_are_those_of_zoneinfo(zone):
    declared = Declared(kind="timestamp", time_zone=zone)
    hours = [
        datetime.datetime(2024, month, 1) + datetime.timedelta(minutes=30 * k) for month in (3, 10) for k in range(1500)
    ]
    moments = [*MOMENTS[:500], *hours]
    expected = [moment.replace(tzinfo=ZoneInfo(zone)).timestamp() for moment in moments]
    assert declared.read([moment.isoformat() for moment in moments]).tolist() == expected
    assert declared.read(objects(moments)).tolist() == expected
    stamps, present = declared.block([moment.isoformat(" ") for moment in moments])
    assert stamps.dtype == "M8[us]"
    assert present.all()
    assert (stamps.astype(np.int64) / 1e6).tolist() == expected
    with_offset = [moment.isoformat() + "+05:30" for moment in moments]
    assert declared.read(with_offset).tolist() == Declared(kind="date").read(with_offset).tolist()


def test_an_offset_is_a_zone_too():
    assert Declared(kind="date", time_zone="-03:30").read(["2024-01-02", "2024-01-02T00:00Z"]).tolist() == [
        1704166200.0,
        1704153600.0,
    ]


def test_the_hour_that_occurs_twice_is_its_first():
    summer_ends, summer_begins = "2024-10-27T02:30", "2024-03-31T02:30"
    found = Declared(kind="date", time_zone=BERLIN).read([summer_ends, summer_begins])
    utc = Declared(kind="date").read(["2024-10-27T00:30", "2024-03-31T01:30"])
    assert found.tolist() == utc.tolist()


@pytest.mark.parametrize("first", [1, 1900, 1920, 1969, 1999, 2000, 2001, 2024])
def test_two_digits_are_a_year_of_the_declared_hundred(first):
    declared = Declared(kind="date", format="%d.%m.%y", two_digit_years_from=first)
    for day in ("01.03", "29.02"):
        for digits in range(100):
            year = next(year for year in range(first, first + 100) if year % 100 == digits)
            found = declared.read([f"{day}.{digits:02}"])[0]
            try:
                expected = datetime.datetime(year, int(day[3:]), int(day[:2]), tzinfo=datetime.UTC).timestamp()
            except ValueError:  # no leap year
                expected = math.nan
            np.testing.assert_equal(found, expected)


def test_durations_are_those_of_pandas():
    pd = pytest.importorskip("pandas")
    drawn = random.Random(3)
    texts = [
        f"{drawn.randrange(400)} days {drawn.randrange(24):02}:{k % 60:02}:{drawn.randrange(60):02}" for k in range(500)
    ]
    expected = pd.to_timedelta(pd.Series(texts)).dt.total_seconds()
    assert Declared(kind="duration").read(texts).tolist() == expected.tolist()
    spans = [datetime.timedelta(seconds=drawn.randrange(10**6)) for _ in range(50)]
    assert Declared(kind="duration").read(list(map(str, spans))).tolist() == [span.total_seconds() for span in spans]


def test_truth_values_and_missing_ones_are_those_of_pandas():
    pd = pytest.importorskip("pandas")
    cells = random.Random(5).choices(["J", "N", "TRUE", "False", "", "k.A."], k=300)
    frame = pd.read_csv(
        io.StringIO("x\n" + "\n".join(f'"{cell}"' for cell in cells)),
        true_values=["J"],
        false_values=["N"],
        na_values=["k.A."],
        dtype={"x": "boolean"},
    )
    declared = Declared(kind="boolean", true_values=["J"], false_values=["N"], missing_values=["k.A."])
    np.testing.assert_array_equal(declared.read(cells), frame["x"].to_numpy(dtype=float, na_value=np.nan))


def test_missing_numbers_are_those_of_pandas():
    pd = pytest.importorskip("pandas")
    cells = random.Random(5).choices(["1", "-99", "-99.0", "NA", ".", "2.5", "-999"], k=300)
    frame = pd.read_csv(io.StringIO("x\n" + "\n".join(cells)), na_values=["-99", "."])
    declared = Declared(missing_values=[-99, "."])
    np.testing.assert_array_equal(declared.read(cells), frame["x"].to_numpy(dtype=float))
    np.testing.assert_array_equal(declared.read(np.array([-99.0, 1.0])), [np.nan, 1.0])


def test_integers_are_exact_and_others_are_none():
    cells = [
        "9007199254740993",
        "-9223372036854775807",
        "2.0",
        "1e3",
        "TRUE",
        "2.5",
        "x",
        "",
        None,
        Decimal(7),
        Fraction(8, 2),
        10**30,
    ]
    found, present = Declared(kind="integer").block(cells)
    assert found[present].tolist() == [2**53 + 1, -(2**63) + 1, 2, 1000, 1, 7, 4, 2**63 - 1]
    np.testing.assert_array_equal(np.isnan(Declared(kind="integer").read(objects(cells))), ~present)


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


def test_equal_cells_that_are_written_in_two_ways_do_not_decide_for_each_other():
    noon = datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC)
    for one, other in (
        (Fraction(1, 2), 0.5),
        (noon, noon.astimezone(ZoneInfo(BERLIN))),
        (np.datetime64("2024-07-01"), np.datetime64("2024-07-01T00:00")),
    ):
        assert one == other
        options = (str(one), str(other))
        assert positions(objects([one, other]), options).tolist() == [0, 1]
        assert positions(objects([other, one]), options).tolist() == [1, 0]


def test_digits_of_a_date_are_no_number_that_separators_change():
    cells = ["20240102", "1.234,5", "9007199254740993", "1,5", "x"]
    assert restated(cells, ",", ".", strict=False) == ["20240102", "1234.5", "9007199254740993", "1.5", "x"]


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


PEOPLE = """born;seen;ill;score;moved
31.12.24;01.07.2024 00:30;J;-99;ja
01.02.30;01.07.2024 12:00;N;7;nein
k.A.;01.01.2024 00:30;k.A.;8;ja
"""
DECLARED = {
    "born": {"kind": "date", "format": "%d.%m.%y", "two_digit_years_from": 1920, "bounds": ["01.01.20", "31.12.99"]},
    "seen": {
        "kind": "timestamp",
        "format": "%d.%m.%Y %H:%M",
        "time_zone": BERLIN,
        "bounds": ["01.01.2024 00:30", "01.07.2024 12:00"],
    },
    "ill": {"kind": "boolean", "true_values": ["J"], "false_values": ["N"]},
    "score": {"kind": "integer", "bounds": [0, 10], "missing_values": [-99]},
}
LABEL = {"kind": "boolean", "true_values": ["ja"], "false_values": ["nein"]}


def data_of(**more):
    columns = {name: {**facts, "missing": "indicator"} for name, facts in DECLARED.items()}
    plain = {"source": "t.csv", "delimiter": ";", "label": "moved", "label_cells": LABEL, "classes": [False, True]}
    return Data.model_validate({**plain, "columns": columns, **more})


def test_a_study_reads_cells_as_they_are_declared(tmp_path):
    (tmp_path / "t.csv").write_text(PEOPLE)
    data = data_of()
    rows = load(data, open_table("t.csv", tmp_path, form=data.form))
    assert rows.labels.tolist() == [1, 0, 1]
    born, seen, ill, score = (rows.features[:, [k, k + 1]].T for k in range(0, 8, 2))
    assert born[1].tolist() == [0, 0, 1]
    assert -1 < born[0][0] < born[0][1] < 0 == born[0][2]  # 1924, 1930
    assert seen[0][1] == 1
    assert seen[0][2] == -1
    summer = datetime.datetime(2024, 6, 30, 22, 30) - datetime.datetime(2023, 12, 31, 23, 30)
    whole = datetime.datetime(2024, 7, 1, 10) - datetime.datetime(2023, 12, 31, 23, 30)
    assert seen[0][0] == pytest.approx(2 * summer / whole - 1)
    assert ill.tolist() == [[1, -1, 0], [0, 0, 1]]
    assert score[1].tolist() == [1, 0, 0]


def test_a_regression_reads_its_label_as_it_is_declared(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,1:30\n2,0:30\n3,2:00\n")
    cells = {"kind": "duration", "missing_values": ["2:00"]}
    data = Data.model_validate(
        {
            "source": "t.csv",
            "label": "y",
            "task": "regression",
            "label_bounds": [0, 7200],
            "columns": {"x": {"bounds": [0, 3]}},
            "label_cells": {"kind": "duration"},
        }
    )
    assert load(data, open_table("t.csv", tmp_path)).labels.tolist() == [5400, 1800, 7200]
    missing = data.model_copy(update={"label_cells": type(data.label_cells)(**cells)})
    with pytest.raises(ContentError, match="'y' has a label that is missing or no duration"):
        load(missing, open_table("t.csv", tmp_path))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"columns": {"born": {**DECLARED["born"], "two_digit_years_from": None}}},
            "columns.born: two_digit_years_from: ",
        ),
        ({"label_cells": {"kind": "date"}}, "label_cells: the kind of a label for classification must be"),
        ({"classes": ["x", "y"]}, "classes: of a boolean label must be its two values"),
        (
            {"columns": {"ill": {"kind": "boolean", "bounds": "private"}}},
            "columns.ill: the bounds of booleans are known",
        ),
        ({"columns": {"a": {"kind": "category", "bounds": [0, 1]}}}, "columns.a"),
        ({"columns": {"a": {"kind": "date", "categories": ["x"]}}}, "columns.a: kind"),
        ({"columns": {"a": {"categories": ["x"], "time_zone": BERLIN}}}, "columns.a: time_zone: goes with"),
    ],
)
def test_a_study_that_declares_too_little_is_refused_by_name(more, said):
    columns = more.get("columns", DECLARED)
    columns = {
        name: {key: value for key, value in facts.items() if value is not None} for name, facts in columns.items()
    }
    data = {"source": "t.csv", "label": "moved", "label_cells": LABEL, "classes": [False, True], **more}
    privacy = {"epsilon": 1, "nominal_rows": 10, "delta": 1e-3}
    with pytest.raises(StudyError, match=f"data.{said}"):
        parse_study({"data": {**data, "columns": columns}, "privacy": privacy, "output": {"folder": "x"}})


def test_dates_of_an_undeclared_form_are_not_lost_in_silence():
    column = Column(kind="date", bounds=("2020-01-01", "2025-01-01"), missing="indicator")
    there = ["2024-01-02"] * 30
    with pytest.raises(ContentError, match="'x' holds dates in another form than declared: say format"):
        column.numbers("x", there + ["01/02/2024"] * 4)
    assert np.isnan(column.numbers("x", [*there, "01/02/2024"])).sum() == 1  # one row decides nothing
    assert np.isnan(column.numbers("x", [*there, "?", "unknown", "12"])).sum() == 3


def test_time_stamps_of_a_type_have_no_other_zone():
    column = Column(kind="date", bounds=("2020-01-01", "2025-01-01"), time_zone=BERLIN)
    with pytest.raises(ContentError, match="leave time_zone out"):
        column.numbers("x", np.array(["2024-01-01"], dtype="M8[s]"))
    pd = pytest.importorskip("pandas")
    aware = pd.Series(pd.to_datetime(["2024-07-01"]).tz_localize(BERLIN))
    assert column.numbers("x", np.asarray(aware)).tolist() == column.numbers("x", ["2024-07-01"]).tolist()


def test_kinds_have_names_that_a_study_can_use():
    assert list(KINDS) == ["boolean", "category", "date", "duration", "integer", "number", "text", "timestamp"]
    with pytest.raises(TypeError, match="give categories"):
        Declared(kind="category").read(["a"])
