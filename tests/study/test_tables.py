"""Tables as people have them: cells that are missing, dates, durations, scales; one table from every kind of source."""

import gzip
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.study import parse_study
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables import Written
from dpselect.tables.table import open_table
from tests.study.tables_cases import NAMES, ROWS, cells, encoded, rows_of, text_of
from tests.study.test_from_outside import DOCUMENT

DAY = 86400.0
POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")


@pytest.mark.parametrize("gone", [None, float("nan"), "", "?", "NA", "1_0", "1,5", "two", [1], {"a": 1}, 1j, b"\xff"])
def test_a_cell_that_is_no_number_is_missing_whatever_it_is(gone):
    assert encoded({"bounds": (0, 8), "missing": 6}, 2, gone) == [[-0.5], [0.5]]
    assert encoded({"bounds": (0, 8), "missing": "indicator"}, 2, gone) == [[-0.5, 0.0], [0.0, 1.0]]
    with pytest.raises(ContentError, match=r"cell that is missing or no number.*missing = .*\"indicator\".*--decimal"):
        encoded({"bounds": (0, 8)}, 2, gone)
    with pytest.raises(ContentError, match="'c' has no cell that can be read as a number"):
        encoded({"bounds": (0, 8), "missing": 6}, gone, gone)


@pytest.mark.parametrize("gone", [None, float("nan"), "", "?", [1]])
def test_one_row_to_predict_may_lack_whatever_a_study_says_may_be_missing(gone):
    column = Column(bounds=(0, 8), missing="indicator")
    assert column.encode("c", cells(gone), empty=True).tolist() == [[0.0, 1.0]]
    with pytest.raises(ContentError, match="'c' has a cell that is missing"):
        Column(bounds=(0, 8)).encode("c", cells(gone), empty=True)


def test_rows_to_predict_are_refused_where_none_of_many_cells_can_be_read():
    column = Column(bounds=(0, 8), missing="indicator")
    assert column.encode("c", cells(*[""] * 30, *["1,5"] * 9), empty=True)[:, 1].all()
    with pytest.raises(ContentError, match=r"read as a number; a decimal comma is declared by data\.decimal or --dec"):
        column.encode("c", cells(*["1,5"] * 10), empty=True)


@pytest.mark.parametrize("six", [6, 6.0, "6", " 6.0 ", "6e0", Decimal(6), np.int8(6), np.float32(6), b"6"])
def test_a_number_is_itself_however_it_is_stored(six):
    assert encoded({"bounds": (0, 8)}, six) == [[0.5]]


def test_numbers_beyond_the_bounds_are_clipped_and_truth_values_are_one_and_zero():
    assert encoded({"bounds": (0, 8)}, -1, 9, 10**400, "-Infinity") == [[-1.0], [1.0], [1.0], [-1.0]]
    assert encoded({"bounds": (0, 1)}, True, False, "TRUE", " false ", np.True_) == [
        [1.0],
        [-1.0],
        [1.0],
        [-1.0],
        [1.0],
    ]


@pytest.mark.parametrize(
    "hour", [3600, 3600.0, "3600", "1:00:00", "01:00", "0 days 01:00:00", "0 days, 1:00:00", timedelta(hours=1)]
)
def test_a_duration_is_itself_however_it_is_written(hour):
    assert encoded({"kind": "duration", "bounds": (0, 7200)}, hour) == [[0.0]]


def test_durations_of_days():
    facts = {"kind": "duration", "bounds": (-2 * DAY, 2 * DAY)}
    assert encoded(facts, "1 day", "1 day 12:00:00", "-1 day, 12:00:00", "-12:00") == [[0.5], [0.75], [-0.25], [-0.25]]
    spans = np.array([1, -1], dtype="timedelta64[D]")
    assert Column(**facts).encode("c", spans).tolist() == [[0.5], [-0.5]]


def test_categories_with_an_other_and_a_missing():
    facts = {"categories": ("a", "b")}
    assert encoded(facts, "a", "x", None) == [[1, 0], [0, 0], [0, 0]]
    assert encoded({**facts, "other": True}, "a", "x", None) == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert encoded({**facts, "missing": "b"}, "a", "x", None) == [[1, 0], [0, 0], [0, 1]]
    assert encoded({**facts, "other": True, "missing": "indicator"}, "x", "", "b ", [1]) == [
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
    ]


WIDTHS = [
    {"bounds": (0, 1)},
    {"bounds": (0, 1), "missing": 0.5},
    {"bounds": (0, 1), "missing": "indicator", "scale": "bins:7"},
    {"kind": "date", "bounds": ("2000-01-01", "2001-01-01"), "missing": "indicator"},
    {"kind": "duration", "bounds": (0, 9), "missing": 3},
    {"categories": ("a", 1, True and "b")},
    {"categories": ("a", 1), "other": True, "missing": "indicator"},
]


@pytest.mark.parametrize("facts", WIDTHS)
def test_each_row_is_encoded_by_itself_and_within_the_unit_cube(facts):
    """Every row of odd content, one at a time and together: equal rows, of the declared width."""
    column = Column(**facts)
    odd = [0, 1, "a", "2000-06-01", "0:00:05", None, "\ud800", "\0", -0.0, 5e-324, 2**70, b"\xff\xfe", "9" * 5000, ()]
    together = column.encode("c", cells("2000-06-01", 3, *odd)) if column.missing is not None else None
    if column.categories is not None and together is None:
        together = column.encode("c", cells("2000-06-01", 3, *odd))
    if together is None:
        return
    assert together.shape == (len(odd) + 2, column.width)
    assert np.abs(together).max() <= 1.0
    for place, cell in enumerate(odd):
        beside = column.encode("c", cells("2000-06-01", 3, cell))
        assert beside[-1].tolist() == together[place + 2].tolist()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"kind": "day", "bounds": (0, 1)}, "unknown kind 'day'; one of boolean, category, date, duration"),
        ({"bounds": ("0", 1)}, "must be numbers, without quotation marks"),
        ({"kind": "date", "bounds": (0, 1)}, "two finite dates"),
        ({"kind": "date", "bounds": ("2001-01-01", "2000-01-01")}, "two finite dates, the lower one first"),
        ({"bounds": (0, 1), "missing": 2}, "missing must be a number within the bounds"),
        ({"bounds": (0, 1), "missing": "mean"}, "without quotation marks"),
        ({"bounds": (0, 1), "scale": "cubic"}, "unknown scale 'cubic'; one of bins, linear, log"),
        ({"bounds": (0, 1), "scale": "bins"}, "bins:SIZE"),
        ({"bounds": (0, 1), "scale": "bins:1"}, "size from 2 to"),
        ({"bounds": (0, 1), "scale": "log:2"}, "has no size"),
        ({"bounds": (-1, 1), "scale": "log"}, "not below 0"),
        ({"bounds": (0, 1), "other": True}, "other goes with categories"),
        ({"bounds": (0, 1), "format": "%Y"}, 'format: goes with kind = "date"'),
        ({"categories": ("a",), "scale": "log"}, "go with bounds"),
        ({"categories": ("a",), "missing": "b"}, "one of the categories"),
    ],
)
def test_public_facts_that_make_no_sense_name_their_column(facts, said):
    document = {**DOCUMENT, "data": {**DOCUMENT["data"], "columns": {"age": facts}}}
    with pytest.raises(ArgumentError, match=f"data.columns.age.*{said}"):
        parse_study(document)


@pytest.fixture
def expected(tmp_path):
    (tmp_path / "plain.csv").write_text(text_of(ROWS), encoding="utf-8")
    rows = rows_of(tmp_path, "plain.csv")
    assert rows.labels.tolist() == [0, 1, 0, -1]
    assert rows.features.shape == (4, 13)
    return rows


def test_csv_in_another_dialect_and_compressed(tmp_path, expected):
    text = text_of(ROWS, ";", comma=True)
    (tmp_path / "dialect.csv").write_bytes(text.encode("utf-16"))
    form = {"delimiter": ";", "decimal": ",", "encoding": "utf-16"}
    assert np.array_equal(rows_of(tmp_path, "dialect.csv", **form).features, expected.features)
    (tmp_path / "dialect.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    form["encoding"] = "latin-1"
    assert np.array_equal(rows_of(tmp_path, "dialect.csv.gz", **form).features, expected.features)


def test_parquet_and_feather_with_types_of_their_own(tmp_path, expected):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    types = {
        "zeit": pa.timestamp("us", tz="UTC"),
        "alter": pa.int16(),
        "dauer": pa.duration("s"),
        "beruf": pa.dictionary(pa.int8(), pa.string()),
        "betrag": pa.decimal128(10, 2),
        "aktiv": pa.bool_(),
        "label": pa.large_string(),
    }
    zoned = [(None if row[0] is None else row[0].replace(tzinfo=UTC), *row[1:]) for row in ROWS]
    table = pa.table(
        {name: pa.array(column, type=types[name]) for name, column in zip(NAMES, zip(*zoned, strict=True), strict=True)}
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    for source in ("t.parquet", "t.feather"):
        found = rows_of(tmp_path, source)
        assert np.array_equal(found.features, expected.features)
        assert found.digests == expected.digests


def test_sqlite(tmp_path, expected):
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection:
        connection.execute(f'CREATE TABLE "odd "" name" ({", ".join(map(repr, NAMES))}, more)')
        for row in ROWS:
            held = [
                float(c) if isinstance(c, Decimal) else str(c) if isinstance(c, (datetime, timedelta)) else c
                for c in row
            ]
            held = [h if c is not None else None for h, c in zip(held, row, strict=True)]
            connection.execute(f'INSERT INTO "odd "" name" VALUES ({",".join("?" * 8)})', (*held, 1))
        connection.commit()
    found = rows_of(tmp_path, "sqlite:///people.db", table='odd " name')
    assert np.array_equal(found.features, expected.features)


SQL = """CREATE TABLE people (zeit TIMESTAMP, alter SMALLINT, dauer INTERVAL, beruf VARCHAR, betrag DECIMAL(10, 2),
aktiv BOOLEAN, label VARCHAR, more INTEGER)"""


def inserted(row):
    shown = ["NULL" if cell is None else f"'{cell}'" for cell in row]
    return f"INSERT INTO people VALUES ({', '.join(shown)}, 1)"


def test_duckdb(tmp_path, expected):
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(tmp_path / "people.duckdb"))) as connection:
        connection.execute(SQL)
        for row in ROWS:
            connection.execute(inserted(row))
    found = rows_of(tmp_path, "duckdb:///people.duckdb", table="people")
    assert np.array_equal(found.features, expected.features)


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_postgresql(tmp_path, expected):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(SQL.replace("alter", '"alter"'))
        try:
            for row in ROWS:
                connection.execute(inserted(row))
            connection.execute("INSERT INTO people (zeit, label) VALUES ('infinity', 'ja')")
            found = rows_of(tmp_path, POSTGRES, table="people")
        finally:
            connection.execute("DROP TABLE people")
    assert np.array_equal(found.features[:4], expected.features)
    assert found.features[4].tolist() == expected.features[1].tolist()


@pytest.mark.parametrize(
    ("source", "form", "said"),
    [
        ("a.csv", {"delimiter": ";;"}, "data.delimiter: must be one character"),
        ("a.csv", {"delimiter": '"'}, "data.delimiter: must be one character"),
        ("a.csv", {"decimal": ","}, "data.decimal: must differ from the delimiter"),
        ("a.csv", {"decimal": "'"}, "data.decimal: must be"),
        ("a.csv", {"encoding": "klingon"}, "data.encoding: unknown encoding 'klingon'"),
        ("a.csv", {"encoding": "rot13"}, "data.encoding: unknown encoding 'rot13'"),
        ("a.csv", {"table": "t"}, "data.table: goes with duckdb: and postgresql: and sqlite:, not with .csv"),
        ("sklearn:iris", {"delimiter": ";"}, "data.delimiter: goes with .csv and .csv.gz"),
        ("sqlite:///a.db", {}, "data.table: needed"),
        ("sqlite:///a.db", {"table": "absent"}, "there is no table 'absent'"),
        ("sqlite://a.db", {"table": "t"}, "must begin with sqlite:///"),
        ("sqlite:///none.db", {"table": "t"}, "cannot read data.source 'sqlite:///none.db': No such file"),
        ("duckdb:///none.db", {"table": "t"}, "cannot read data.source 'duckdb:///none.db': No such file"),
        ("postgresql://me:s3cr3t@127.0.0.1:1/x", {"table": "t"}, "me:\\*\\*\\*@127.0.0.1:1/x'.*cannot be read"),
        ("none.feather", {}, "cannot read data.source 'none.feather': .*"),
        ("a.feather", {}, "not a readable Feather file"),
    ],
)
def test_forms_that_do_not_fit_are_refused_by_their_key(tmp_path, source, form, said):
    if source.startswith("duckdb"):
        pytest.importorskip("duckdb")
    if source.startswith("postgresql"):
        pytest.importorskip("psycopg")
    if source.endswith("feather"):
        pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "a.feather").write_text("x,y\n1,2\n")
    sqlite3.connect(tmp_path / "a.db").close()
    with pytest.raises((ArgumentError, ContentError), match=said) as caught:
        open_table(source, tmp_path, form=Written(**form))
    assert "s3cr3t" not in str(caught.value)


def test_a_public_table_of_another_kind_needs_no_delimiter(tmp_path):
    (tmp_path / "test.csv").write_text("x;y\n1;2\n")
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    form = Written(delimiter=";")
    assert open_table("test.csv", tmp_path, "test.source", form=form, shared=True).columns == ("x", "y")
    assert open_table("a.npz", tmp_path, "test.source", form=form, shared=True).columns == ("x",)


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_damaged_archive_shows_none_of_its_bytes(tmp_path, cut):
    packed = gzip.compress(b"x,label\n" + b"1,a\n2,b\n" * 1000)
    (tmp_path / "d.csv.gz").write_bytes(packed[:-cut])
    data = Data.model_validate({"source": "d.csv.gz", "label": "label", "classes": ("a", "b"), "bounds": (0, 2)})
    with pytest.raises(ContentError, match="truncated or damaged") as caught:
        load(data, open_table("d.csv.gz", tmp_path))
    assert caught.value.__context__ is None
