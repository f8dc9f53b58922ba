"""One row that may be anything: every other row is read to the same bits, and nothing is raised.

For each container and kind that a study, a model or a learner reads. `tests/ordered/sources/test_one_row.py` has the
same for the ranks of quantiles, engine by engine.
"""

from __future__ import annotations

import csv
import sqlite3
from collections import deque
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.holdout.files import class_names
from dpselect.learners.rows import doubles
from dpselect.study.columns.column import Column
from dpselect.study.containers import table_columns
from dpselect.study.data import cells_of
from dpselect.tables import Written
from dpselect.tables.table import open_table
from tests.ordered.sources import column_laws as laws
from tests.tables.object_columns import objects

NUMBERS = [1.5, -2.25, 0.1, 1e300, -0.0, 7.0] * 3
WHOLE = [1, -2, 2**53 + 1, 0, 7, -(2**40)] * 3
WORDS = ["low", "high", "caf\u00e9", "1", "true", ""] * 3
DAYS = ["2024-06-01", "1969-12-31", "9999-12-31T23:59:59"] * 6
ROWS = len(NUMBERS)
COLUMNS = {
    "number": Column(bounds=(0, 1), missing="indicator"),
    "date": Column(kind="date", bounds=("2000-01-01", "2030-01-01"), missing="indicator"),
    "duration": Column(kind="duration", bounds=(0, 1), missing="indicator"),
    "category": Column(categories=("low", "high", "caf\u00e9", "1"), other=True, missing="indicator"),
}
ODD = [*laws.OBJECTS, *laws.TEXTS]


def read(kind, cells):
    column = COLUMNS[kind]
    return column.encode("x", cells) if kind == "category" else column.numbers("x", cells)


def alike(make, rows, odd, kind="number"):
    """`make(cells)` is a column; a cell that its library does not hold is never a row of it."""
    before, tried = read(kind, make(rows)), 0
    for cell in odd:
        for place in (0, ROWS - 1):
            changed = [*rows]
            changed[place] = cell
            try:
                column = make(changed)
            except (ValueError, TypeError, OverflowError, ArithmeticError):
                continue
            except Exception as error:  # Arrow's and polars' own; a cell's own
                if str(error) != "secret" and type(error).__module__.split(".")[0] not in (
                    "pyarrow",
                    "polars",
                    "builtins",
                ):
                    raise
                continue
            after = read(kind, column)
            kept = np.arange(ROWS) != place
            assert before[kept].tobytes() == after[kept].tobytes(), (cell, place)
            tried += 1
    assert tried > 2


def framed(make):
    return lambda cells: table_columns({"x": make(cells)}, ["x"])["x"]


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("make", [list, tuple, deque, objects])
def test_what_has_no_type(kind, make):
    rows = {"number": NUMBERS, "date": DAYS, "duration": NUMBERS, "category": WORDS}[kind]
    alike(framed(make), rows, ODD, kind)


@pytest.mark.parametrize("kind", ["f2", "f4", ">f8", "i8", "u1", "bool", "U8", "S8"])
def test_arrays(kind):
    rows = [0, 1, 1, 0, 1, 0] * 3 if kind in ("f2", "u1", "bool") else NUMBERS if "f" in kind else WHOLE
    with np.errstate(over="ignore"):
        alike(framed(lambda cells: np.array(cells, dtype=kind)), rows, [*laws.REAL, *laws.WHOLE, *laws.TEXTS])


@pytest.mark.parametrize("dtype", [None, "Int64", "Float64", "object", "string", "str", "category", "double[pyarrow]"])
def test_pandas(dtype):
    """Also where one cell changes the type of the column, or of its categories."""
    pd = pytest.importorskip("pandas")
    rows = NUMBERS if dtype in ("Float64", "double[pyarrow]") else WHOLE
    scale = map if dtype in ("string", "str") else None
    make = framed(
        lambda cells: pd.Series(list(map(str, cells)) if scale else objects(cells) if dtype else cells, dtype=dtype)
    )
    odd = [None, *laws.WHOLE, *laws.REAL, *laws.TEXTS] if dtype != "object" else ODD
    with np.errstate(over="ignore", invalid="ignore"):
        alike(make, rows, odd)


def test_moments_of_pandas():
    pd = pytest.importorskip("pandas")
    stamps = [np.datetime64(day, "s") for day in DAYS]
    odd = [np.datetime64("NaT"), *(np.datetime64(tick, "s") for tick in laws.WHOLE[:8])]

    def in_paris(cells):
        return pd.Series(np.array(cells, "M8[s]")).dt.tz_localize("UTC").dt.tz_convert("Europe/Paris")

    alike(framed(lambda cells: pd.Series(np.array(cells, "M8[s]"))), stamps, odd, "date")
    alike(framed(in_paris), stamps, odd, "date")


def test_arrow():
    pa = pytest.importorskip("pyarrow")

    def dictionaries(cells):
        return pa.chunked_array([pa.array(cells[:5]).dictionary_encode(), pa.array(cells[5:]).dictionary_encode()])

    def unchecked(cells):
        """Nothing checks that text is UTF-8."""
        return pa.array([cell.encode() if isinstance(cell, str) else cell for cell in cells], pa.binary()).view(
            pa.string()
        )

    numbers = [None, *laws.REAL]
    alike(framed(pa.array), NUMBERS, numbers)
    alike(framed(lambda cells: pa.array(cells, pa.int64())), WHOLE, [None, *laws.WHOLE])
    alike(framed(lambda cells: pa.array(cells).dictionary_encode()), NUMBERS, numbers)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        alike(framed(lambda cells, kind=kind: pa.array(cells, kind)), WORDS, [None, *laws.TEXTS], "category")
    alike(framed(dictionaries), WORDS, [None, *laws.TEXTS], "category")
    alike(framed(unchecked), WORDS, [b"\xff", b"\xc3", None], "category")


@pytest.mark.parametrize("inferred", [False, True])
def test_polars(inferred):
    pl = pytest.importorskip("polars")

    def typed(kind):
        return framed(lambda cells: pl.Series(cells, strict=not inferred, dtype=None if inferred else kind))

    alike(typed(pl.Float64), NUMBERS, [None, *laws.REAL])
    alike(typed(pl.Int64), WHOLE, [None, *laws.WHOLE])
    alike(typed(pl.String), WORDS, [None, *laws.TEXTS], "category")


def test_rows_of_learners():
    """Tables whose cells NumPy would give one type."""
    pd = pytest.importorskip("pandas")
    before = doubles([[number, 1] for number in NUMBERS])
    for cell in ODD:
        frame = pd.DataFrame({"a": NUMBERS, "b": objects([1, 1, 1, cell] + [1] * (ROWS - 4))})
        for table in (frame, [[number, cell if place == 3 else 1] for place, number in enumerate(NUMBERS)]):
            after = doubles(table)
            after[3, 1] = before[3, 1]
            assert before.tobytes() == after.tobytes()


def csv_column(path, cells, fast):
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "x"], *(["a", cell] for cell in cells)])
    table = open_table(path.name, path.parent)
    return cells_of(table, ["x"], ["x"], doubles=["x"] if fast else [])["x"]


@pytest.mark.parametrize("fast", [False, True])
def test_csv(tmp_path, fast):
    rows = list(map(repr, NUMBERS))
    alike(lambda cells: csv_column(tmp_path / "t.csv", cells, fast), rows, laws.TEXTS[:-4])
    if not fast:
        alike(lambda cells: csv_column(tmp_path / "t.csv", cells, fast), WORDS, laws.TEXTS[:-4], "category")
        alike(lambda cells: csv_column(tmp_path / "t.csv", cells, fast), DAYS, laws.TEXTS[:-4], "date")


@pytest.mark.full
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cell=st.text() | st.floats().map(repr) | st.integers().map(str), kind=st.sampled_from(sorted(COLUMNS)))
def test_any_text(tmp_path, cell, kind):
    rows = {"number": list(map(repr, NUMBERS)), "date": DAYS, "duration": ["01:30:00"] * ROWS, "category": WORDS}[kind]
    make = lambda cells: csv_column(tmp_path / "t.csv", cells, fast=False)  # noqa: E731
    before = read(kind, make(rows))
    after = read(kind, make([*rows[:-1], cell]))
    assert before[:-1].tobytes() == after[:-1].tobytes()
    assert class_names([*rows[:-1], cell])[:-1] == class_names(rows)[:-1]


@pytest.mark.parametrize("kind", ["double", "int64", "string", "decimal128", "timestamp"])
def test_parquet(tmp_path, kind):
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    of = {
        "double": (pa.float64(), NUMBERS, [None, *laws.REAL], "number"),
        "int64": (pa.int64(), WHOLE, [None, *laws.WHOLE], "number"),
        "string": (pa.string(), WORDS, [None, *laws.TEXTS[:12]], "category"),
        "decimal128": (pa.decimal128(38, 2), list(range(ROWS)), [None, 10**34, -1], "number"),
        "timestamp": (
            pa.timestamp("us"),
            [np.datetime64(d, "us").item() for d in DAYS],
            [None, *laws.WHOLE[:6]],
            "date",
        ),
    }[kind]
    arrow, rows, odd, named = of

    def make(cells):
        parquet.write_table(pa.table({"x": pa.array(cells, arrow)}), tmp_path / "t.parquet")
        return cells_of(open_table("t.parquet", tmp_path), ["x"])["x"]

    alike(make, rows, odd, named)


@pytest.mark.parametrize("kind", ["INTEGER", "REAL", "TEXT", "NUMERIC"])
def test_sqlite(tmp_path, kind):
    path = tmp_path / "t.db"

    def make(cells):
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"CREATE TABLE t (x {kind})")
            connection.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in cells])
        return cells_of(open_table(f"sqlite:///{path}", tmp_path, form=Written(table="t")), ["x"])["x"]

    alike(make, NUMBERS, [None, *laws.TEXTS[:12], *laws.WHOLE[-6:], float("inf"), b"\xff"])
