"""One row of any content, added to a thousand ordinary ones, makes nothing fail and changes its own count alone.

For every engine and container, and every type that is read from it. Before this held, a cast that overflowed, a byte
that was no UTF-8 or a cell of another type ended in a traceback, often one that showed the cell.
"""

from __future__ import annotations

import functools
import json
import os
from datetime import datetime, time, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import open_column
from dpselect.ordered.domains import Doubles, WholeNumbers
from dpselect.ordered.interior_points.interior_point import _codes, _container
from tests.ordered.sources import column_laws as laws

POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")
ROWS = laws.ORDINARY
DAYS = np.datetime64("2024-06-01", "us") + np.arange(ROWS) * np.timedelta64(3, "h")


def ordinary(kind):
    return {
        "i": lambda: (np.arange(ROWS) % 100).tolist(),
        "f": lambda: ((np.arange(ROWS) % 100) + 0.25).tolist(),
        "M": DAYS.tolist,
        "T": lambda: (["low", "middle", "high", "other"] * ROWS)[:ROWS],
    }[kind]()


def each(kind, make, odd):
    """`make(cells)` is the column; a cell that the type cannot hold is never a row of it."""
    for public in laws.bounds_for(kind):
        rows = ordinary(kind if kind in "fMT" else "i")
        before = laws.ranks(make(rows), **public)
        assert sum(before[1].values()) > 0
        tried = 0
        for cell in odd:
            try:
                column = make([*rows, cell])
            except (ArgumentError, ContentError):
                raise
            except (ValueError, TypeError, OverflowError, ArithmeticError):
                continue
            except Exception as error:  # Arrow's and polars' own
                if type(error).__module__.split(".")[0] not in ("pyarrow", "polars", "builtins"):
                    raise
                continue
            laws.at_most_one_more(before, laws.ranks(column, **public))
            tried += 1
        assert tried > 1


def test_lists_and_tuples():
    each("f", list, laws.OBJECTS)
    each("f", tuple, laws.OBJECTS)
    each("T", list, laws.OBJECTS)


def objects(cells):
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found


def test_arrays_of_objects():
    each("O", objects, laws.OBJECTS)
    each("T", objects, laws.OBJECTS)


def test_interior_points():
    """What is not a number counts as the lowest there, as the number of rows may be public."""
    for domain, rows in ((WholeNumbers(5, 2**70), list(range(5, 1000))), (Doubles(0.0, 9.0), [0.5, 2.5] * 500)):
        before = [int(code) for code in _codes(_container(rows, domain), domain)]
        for cell in laws.OBJECTS:
            after = [int(code) for code in _codes(_container([*rows, cell], domain), domain)]
            assert after[:-1] == before
            assert 0 <= after[-1] < domain.size


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f8", "i1", "i4", "i8", "u1", "u8", ">i4", "M8[s]", "M8[ns]"])
def test_arrays(kind):
    dtype = np.dtype(kind)
    odd = {"f": laws.REAL, "i": laws.WHOLE, "u": laws.WHOLE}.get(
        dtype.kind, [np.datetime64("NaT"), *(np.array([k], "i8").view(kind)[0] for k in laws.WHOLE[:-2])]
    )
    with np.errstate(over="ignore"):
        each(dtype.kind, lambda cells: np.array(cells, dtype=dtype), odd)


CHUNKS = {
    "f8": [["x"] * 3, [1, 2], [None, 2.5], np.array([2**63 - 1]), np.array(["1.5", "x"]), np.array(["2024"], "M8[D]")],
    "i4": [[1.5, None], np.array([np.nan, 2**40, -np.inf]), np.array([2**64 - 1], dtype="u8"), np.array(["a"])],
    "M8[us]": [np.array([2**62], "M8[s]"), np.array(["NaT"], "M8"), np.array([1.0]), ["2024-07-01", "now", "x"]],
    "O": [[1.5, None], np.array([1e300, np.nan]), np.array(["a", 10**500, 2**70], dtype=object)],
}


@pytest.mark.parametrize("kind", CHUNKS)
def test_chunks_of_another_type_are_read_as_the_first(kind):
    """One missing cell makes doubles of a chunk of integers in other libraries."""
    dtype = np.dtype(kind)
    first = np.array(ordinary({"f": "f", "M": "M"}.get(dtype.kind, "i")), dtype=dtype)
    for public in laws.bounds_for(dtype.kind):
        before = laws.ranks(lambda: iter([first]), **public)
        for chunk in [*CHUNKS[kind], objects(laws.OBJECTS)]:
            after = laws.ranks(lambda chunk=chunk: iter([first, chunk]), **public)
            assert before[0] == after[0]
            new = {code: count - before[1].get(code, 0) for code, count in after[1].items()}
            assert min(new.values()) >= 0
            assert sum(new.values()) <= len(chunk)


def test_a_chunk_keeps_its_other_rows_whatever_one_cell_is():
    pd = pytest.importorskip("pandas")
    first = np.array([1.5, 2.5])
    for second in (pd.Series([3.5, 4.5, None]), pd.Series([3.5, 4.5, "x"]), pd.Series(["3.5", "4.5", "x"])):
        found = laws.ranks(lambda second=second: iter([first, second]), lower=0, upper=8, granularity=0.5)
        assert found[1] == {3: 1, 5: 1, 7: 1, 9: 1}


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    "kind", ["Int64", "UInt8", "Float32", "Float64", "boolean", "object", "int64[pyarrow]", "double[pyarrow]"]
)
def test_pandas(kind):
    pd = pytest.importorskip("pandas")
    code = {"o": "O", "F": "f", "d": "f"}.get(kind[0], "i")
    odd = laws.OBJECTS if kind == "object" else [None, pd.NA, *laws.WHOLE, *laws.REAL]
    scale = (lambda cells: [cell if cell is None else bool(cell) for cell in cells]) if kind == "boolean" else list
    each(code, lambda cells: pd.Series(scale(cells), dtype=kind), odd)


@pytest.mark.parametrize("kind", ["str", "string[pyarrow]", "category"])
def test_numbers_in_text_and_categories_of_pandas(kind):
    """They are doubles, as in a CSV file; the type of categories, which pandas takes from the rows, changes nothing."""
    pd = pytest.importorskip("pandas")
    write = (lambda cells: cells) if kind == "category" else (lambda cells: list(map(str, cells)))
    each("f", lambda cells: pd.Series(write(cells), dtype=kind), [*laws.WHOLE, *laws.REAL, *laws.TEXTS])


def test_sparse_numbers_of_pandas():
    pd = pytest.importorskip("pandas")
    each("f", lambda cells: pd.Series(pd.arrays.SparseArray(np.array(cells, float))), laws.REAL)


@pytest.mark.parametrize("kind", ["object", "string", "category", "string[pyarrow]"])
def test_text_of_pandas(kind):
    pd = pytest.importorskip("pandas")
    each(
        "T",
        lambda cells: pd.Series(objects(cells), dtype=kind),
        laws.OBJECTS if kind == "object" else [None, *laws.TEXTS],
    )


def arrow_types(pa):
    yield from ((kind, "i") for kind in (pa.int8(), pa.int64(), pa.uint64(), pa.bool_()))
    yield from ((kind, "f") for kind in (pa.float16(), pa.float32(), pa.float64()))
    yield from ((kind, "M") for kind in (pa.date32(), pa.date64(), *(pa.timestamp(u) for u in ("s", "ms", "us", "ns"))))
    yield pa.timestamp("us", tz="Europe/Paris"), "M"
    yield from ((kind, "T") for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())))


def arrow_column(pa, kind, code, cells):
    if pa.types.is_boolean(kind):
        return pa.array([cell if cell is None else bool(cell) for cell in cells], kind)
    if code == "M" and isinstance(cells[-1], int):  # a raw tick, of any size that the type holds
        last = pa.array([cells[-1]], pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
        return pa.chunked_array([pa.array(cells[:-1], kind), last])
    if code == "T" and isinstance(cells[-1], bytes):  # nothing checks that text is UTF-8
        last = pa.array([cells[-1]], pa.binary()).view(pa.string())
        return pa.chunked_array([pa.array(cells[:-1], pa.string()), last]).cast(kind)
    return pa.chunked_array([pa.array(cells[:5], kind), pa.array(cells[5:], kind)])


@pytest.mark.cases(1)
@pytest.mark.parametrize("place", ["memory", "parquet"])
def test_arrow_and_parquet(tmp_path, place):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    for kind, code in arrow_types(pa):
        odd = {"M": [None, *laws.WHOLE], "T": [None, b"\xff", *laws.TEXTS], "f": laws.REAL}.get(
            code, [None, *laws.WHOLE]
        )

        def make(cells, kind=kind, code=code):
            column = arrow_column(pa, kind, code, cells)
            if place == "memory":
                return column
            pyarrow.parquet.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
            with open_column(str(tmp_path / "x.parquet"), "x", text=code == "T") as source:
                return source

        if place == "parquet" and (kind == pa.float16() or kind == pa.timestamp("s")):
            continue
        each(code, make, odd if place == "memory" else odd[:14])


def test_polars():
    pl = pytest.importorskip("polars")
    for kind, code in (
        *((kind, "i") for kind in (pl.Int8, pl.Int64, pl.UInt64, pl.Boolean)),
        *((kind, "f") for kind in (pl.Float32, pl.Float64)),
        *((kind, "M") for kind in (pl.Date, pl.Datetime("ms"), pl.Datetime("ns", "UTC"))),
        *((kind, "T") for kind in (pl.String, pl.Categorical, pl.Enum(["low", "middle", "high", "other"]))),
    ):
        odd = {"M": [None, *laws.WHOLE], "T": [None, *laws.TEXTS], "f": laws.REAL}.get(code, [None, *laws.WHOLE])

        def make(cells, kind=kind, code=code):
            if kind is pl.Boolean:
                return pl.Series([cell if cell is None else bool(cell) for cell in cells])
            if code == "M":
                rows = pl.Series(cells[:ROWS]).cast(kind)
                raw = pl.Int32 if kind is pl.Date else pl.Int64
                return pl.concat([rows, *(pl.Series([cell], dtype=raw).cast(kind) for cell in cells[ROWS:])])
            return pl.Series(cells, dtype=kind, strict=True)

        each(code, make, odd)


def test_csv(tmp_path):
    def make(cells, text=False):
        path = laws.csv_file(tmp_path / "x.csv", cells)
        with open_column(str(path), "x", text=text, look=True) as source:
            return source

    each("f", make, laws.TEXTS)
    each("T", lambda cells: make(cells, text=True), laws.TEXTS)


def lines_file(path, lines):
    rows = (line if isinstance(line, bytes) else json.dumps({"x": line}).encode() for line in lines)
    path.write_bytes(b"\n".join(rows))
    return path


ODD_LINES = [
    *(b"{", b"[1]", b"null", b'"x"', b"{}", b'{"y": 1}', b'{"x": [1, 2]}', b'{"x": {"x": 7}}', b'{"x": "\xff"}', b"}"),
    *(
        b'{"x": ' + b"9" * 5000 + b"}",
        b'{"x": 1e999}',
        b"[" * 100_000,
        b'{"x": 1},{"x": 2}',
        b'\xff\xfe{"x": 1}',
        b"\0",
    ),
]


@pytest.mark.parametrize("step", [19, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["f", "T"])
def test_json_lines(tmp_path, kind, step):
    def make(cells):
        with open_column(str(lines_file(tmp_path / "x.jsonl", cells)), "x", text=kind == "T", look=True) as source:
            return source

    each(kind, make, [*ODD_LINES, None, True, *laws.TEXTS, *laws.REAL, *laws.HUGE][::step])


@pytest.mark.full
@pytest.mark.parametrize("kind", ["f", "T"])
def test_workbooks(tmp_path, kind):
    openpyxl = pytest.importorskip("openpyxl")

    def make(cells):
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        for cell in ("x", *cells):
            sheet.append([cell, "a"])  # of an empty cell alone there is no row
        book.save(tmp_path / "x.xlsx")
        with open_column(str(tmp_path / "x.xlsx"), "x", text=kind == "T", look=True) as source:
            return source

    odd = [None, True, "#N/A", "=1/0", "7", datetime(2024, 2, 29), timedelta(days=1), time(7), 1e308, 2**70, -0.0]
    each(kind, make, odd)


def any_csv_cell(tmp_path, cell):
    rows, found = ordinary("f"), []
    for cells in (rows, [*rows, cell]):
        with open_column(str(laws.csv_file(tmp_path / "x.csv", cells)), "x", look=True) as source:
            found.append(laws.ranks(source, **laws.NUMBERS[0]))
    laws.at_most_one_more(*found)


ANY_CELL = st.text() | st.floats().map(repr) | st.integers().map(str)
FOLDER = [HealthCheck.function_scoped_fixture]


@pytest.mark.full
@settings(max_examples=20, deadline=None, suppress_health_check=FOLDER)
@given(cell=ANY_CELL)
def test_csv_cells_of_any_kind(tmp_path, cell):
    any_csv_cell(tmp_path, cell)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=FOLDER)
@given(cell=ANY_CELL)
def test_many_csv_cells_of_any_kind(tmp_path, cell):
    any_csv_cell(tmp_path, cell)


SQLITE = {
    **dict.fromkeys(("INTEGER", "BIGINT", "smallint", "INT8"), "i"),
    **dict.fromkeys(("REAL", "DOUBLE PRECISION", "FLOAT", "NUMERIC(10, 2)", "DECIMAL"), "f"),
    **dict.fromkeys(("DATE", "DATETIME", "TIMESTAMP"), "M"),
    **dict.fromkeys(("TEXT", "VARCHAR(20)", "TEXT COLLATE NOCASE", "CHAR(9)"), "T"),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", SQLITE)
def test_sqlite(tmp_path, kind, every):
    """A column of SQLite holds anything, regardless of its type."""
    import sqlite3

    odd = [None, *laws.TEXTS, *laws.REAL, *laws.WHOLE, b"\xff", b"", b"low", "99999-01-01", "-4713-01-01"]
    few = [None, "x", "1e400", "low", "LOW", "now", "9" * 5000, 1e308, float("inf"), 2**63 - 1, -(2**63), b"\xff"]
    for public in laws.bounds_for(SQLITE[kind])[: None if every else 1]:
        rows = [str(row) if SQLITE[kind] == "M" else row for row in ordinary(SQLITE[kind])]
        url = laws.sqlite_table(tmp_path / "x.db", kind, rows)
        before = laws.ranks_of_table(url, public)
        assert sum(before[1].values()) > 0
        connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        for cell in odd if every else few:
            try:
                connection.execute("INSERT INTO t VALUES (?)", [cell])
            except (OverflowError, UnicodeEncodeError):
                continue
            laws.at_most_one_more(before, laws.ranks_of_table(url, public))
            connection.execute("DELETE FROM t WHERE rowid = last_insert_rowid()")
        connection.close()


DUCKDB = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "i"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(18,3)", "DECIMAL(38,0)", "FLOAT", "DOUBLE"), "f"),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"), "M"),
    **dict.fromkeys(("VARCHAR", "VARCHAR COLLATE NOCASE", "ENUM('low', 'middle', 'high', 'other', 'LOW')"), "T"),
}
EXTREME = {
    "i": ["NULL", *(str(k) for k in (*laws.WHOLE, -(2**127), 2**127 - 1))],
    "f": ["NULL", "'nan'", "'infinity'", "'-infinity'", "1e308", "5e-324", "-0.0", *map(str, (2**127, 2**128 - 1))],
    "M": [
        "NULL", "'infinity'", "'-infinity'", "'epoch'", "'0001-01-01'", "'1677-09-22'", "'2262-04-11 23:47:16.854775'",
        "'4713-01-01 BC'", "'5874897-12-31'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'294276-12-31 23:59:59.9999'",
        "'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54.775806'", "'294247-01-10'",
    ],
    "T": ["NULL", "''", "'LOW'", "'low '", "'Low'", "chr(128512)", "repeat('a', 140000)", "'it''s'"],
}  # fmt: skip


def one_row_more(execute, read, code, every, more=()):
    """Insert each extreme that the type can hold, and take it out again."""
    for public in laws.bounds_for(code)[: None if every else 1]:
        execute("DELETE FROM t")
        assert execute("INSERT INTO t VALUES " + ", ".join(f"('{row}', 0)" for row in ordinary(code)))
        before = read(public)
        assert sum(before[1].values()) > 0
        tried = 0
        for cell in (*EXTREME[code], *more):
            if execute(f"INSERT INTO t VALUES ({cell}, 1)"):
                laws.at_most_one_more(before, read(public))
                tried += 1
                assert execute("DELETE FROM t WHERE added = 1")
        assert tried > 1


@pytest.mark.cases(1)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", DUCKDB)
def test_duckdb(tmp_path, kind, every):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "x.duckdb"

    def execute(statement):
        try:
            connection.execute(statement)
        except (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException):
            return False
        return True

    def read(public):
        return laws.ranks(connection.table("t").project("x"), **public)

    with duckdb.connect(str(path)) as connection:
        execute(f"CREATE TABLE t (x {kind}, added INTEGER)")
        one_row_more(execute, read, DUCKDB[kind], every)
        execute(f"INSERT INTO t VALUES ({EXTREME[DUCKDB[kind]][0]}, 1)")
        public = laws.bounds_for(DUCKDB[kind])[0]
        by_relation = read(public)
    assert laws.ranks_of_table(f"duckdb:///{path}", public) == by_relation


@pytest.mark.full
def test_duckdb_reads_moments_of_arrow_that_microseconds_do_not_hold():
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    with duckdb.connect() as connection:
        for unit in ("s", "ms", "us", "ns"):
            found = []
            for ticks in ([0] * 50, *([*[0] * 50, tick] for tick in laws.WHOLE[:10])):
                connection.register("t", pa.table({"x": pa.array(ticks, pa.int64()).view(pa.timestamp(unit))}))
                found.append(laws.ranks(connection.table("t"), lower="1960-01-01", upper="2026-01-01"))
            for after in found[1:]:
                laws.at_most_one_more(found[0], after)


POSTGRESQL = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), "i"),
    **dict.fromkeys(("REAL", "DOUBLE PRECISION", "NUMERIC", "NUMERIC(12, 2)"), "f"),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP(0)", "TIMESTAMP WITH TIME ZONE"), "M"),
    **dict.fromkeys(("TEXT", "VARCHAR(9)", "CHAR(9)", "grade"), "T"),
}


@pytest.mark.cases(1)
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", POSTGRESQL)
def test_postgresql(kind, every):
    import sqlalchemy as sa

    engine = sa.create_engine(POSTGRES)

    def execute(statement):
        try:
            with engine.begin() as connection:
                connection.execute(sa.text(statement.replace(":", "\\:")))
        except sa.exc.DBAPIError:
            return False
        return True

    try:
        execute("CREATE TYPE grade AS ENUM ('low', 'middle', 'high', 'other', 'LOW', '')")
        execute("DROP TABLE IF EXISTS t")
        assert execute(f"CREATE TABLE t (x {kind}, added INTEGER)")
        code = POSTGRESQL[kind]
        more = [f"CAST('{cell}' AS NUMERIC)" for cell in ("1e400", "-1e400", "1e-400", "1e130000", "NaN", "Infinity")]
        read = functools.partial(laws.ranks_of_table, POSTGRES)
        one_row_more(execute, read, code, every, more if code == "f" else ())
    finally:
        execute("DROP TABLE t")
        engine.dispose()
