"""One row of any content, added to a thousand ordinary ones, makes nothing fail and changes its own count alone.

For every engine and container, and every type that is read from it. Before this held, a cast that overflowed, a byte
that was no UTF-8 or a cell of another type ended in a traceback, often one that showed the cell.
"""

from __future__ import annotations

import json
from datetime import datetime, time, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import open_column
from dpselect.ordered.domains import Doubles, WholeNumbers
from dpselect.ordered.interior_points.interior_point import _codes, _container
from tests.ordered.sources import column_laws as laws
from tests.ordered.sources.one_row_cases import ROWS, ordinary


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
