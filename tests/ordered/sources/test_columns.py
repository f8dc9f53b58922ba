"""The same rows have the same ranks in every container. Large columns are neither sorted nor kept."""

from __future__ import annotations

import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError
from dpselect.ordered import learn_rectangle, learn_threshold, open_column, private_range, quantile, quantiles
from dpselect.ordered.domains import Binades, Grid, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.ordered.order_statistics.small_domain import rows_below
from dpselect.ordered.sources.adapters import SqlTable, read_values
from dpselect.ordered.sources.columns import ChunkedColumn
from dpselect.ordered.sources.declared import Column
from dpselect.randomness import keyed_source

FLOATS = np.array([3.5, np.nan, -2.0, 3.5, 1e300, np.inf, -np.inf, 0.1, 7.25, 7.25, 7.25, 2.0])
WHOLE = np.array([5, 1, 1, 9, 2**62, -(2**63), 9, 9, 4], dtype=np.int64)


def reference(rows, domain):
    kept = rows[rows == rows]
    return SortedColumn(np.sort(kept), domain)


def same_ranks(column, other):
    assert column.total == other.total
    for first in range(1, other.total + 1):
        for last in (first, first + 2, other.total):
            mine, theirs = column.window(first, last), other.window(first, last)
            # a window may be wider than asked for: only what is in it and beside it must agree
            low, high = int(theirs.codes[0]), int(theirs.codes[-1])
            inside = (np.asarray(mine.codes) >= np.uint64(low)) & (np.asarray(mine.codes) <= np.uint64(high))
            assert np.array_equal(np.asarray(mine.codes)[inside], theirs.codes)
            assert np.array_equal(mine.counts[inside], theirs.counts)
            assert mine.before + int(mine.counts.sum()) + mine.after == other.total
            assert mine.before + int(mine.counts[np.asarray(mine.codes) < np.uint64(low)].sum()) == theirs.before


FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


def sources(rows):
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    yield "array", rows
    if rows.dtype.kind == "f":
        yield "list", rows.tolist()
    yield "big endian", rows.astype(rows.dtype.newbyteorder(">"))
    yield "every second", np.repeat(rows, 2)[::2]
    yield "arrow", pa.array(rows)
    yield "arrow chunks", pa.chunked_array([rows[:3], rows[3:3], rows[3:]])
    yield "arrow nulls", pa.chunked_array([pa.array([None, *rows[:3].tolist()], pa.array(rows).type), rows[3:]])
    yield "pandas", pd.Series(rows)
    yield "pandas nulls", pd.Series([*rows.tolist(), None], dtype="Int64" if rows.dtype.kind == "i" else "Float64")
    yield "polars", pl.Series(rows)
    yield "iterator", iter(np.array_split(rows, 3))
    yield "function", lambda: iter(np.array_split(rows, 3))


@pytest.mark.parametrize(("rows", "domain"), [(FLOATS, FLOAT_DOMAIN), (WHOLE, WHOLE_DOMAIN)], ids=["floats", "whole"])
def test_every_container_gives_the_same_ranks(rows, domain):
    for name, values in sources(rows):
        column = read_values(values).ranked(domain)
        try:
            same_ranks(column, reference(rows, domain))
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.full
@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.floats(width=32) | st.sampled_from([0.0, 1.0, 1.0625, 1.125]), max_size=60),
    dtype=st.sampled_from([np.float32, np.float64, np.float16]),
    pieces=st.integers(1, 4),
)
def test_chunks_of_any_type_agree_with_a_sorted_array(rows, dtype, pieces):
    with np.errstate(over="ignore"):
        values = np.array(rows, dtype=dtype)
    for domain in (FLOAT_DOMAIN, Binades()):
        column = ChunkedColumn(lambda: iter(np.array_split(values, pieces)), domain)
        same_ranks(column, reference(values, domain))


def test_samples_that_mislead_cost_a_second_reading_and_nothing_else(monkeypatch):
    monkeypatch.setattr("dpselect.ordered.sources.columns._SAMPLE", 8)
    # every value that the sample meets is 0
    values = np.where(np.arange(4000) % 4 == 0, 0.0, np.linspace(1.0, 9.0, 4000))
    column = ChunkedColumn(lambda: iter([values]), FLOAT_DOMAIN)
    other = SortedColumn(np.sort(values), FLOAT_DOMAIN)
    mine, theirs = column.window(2500, 2520), other.window(2500, 2520)
    assert mine.before <= theirs.before
    assert set(theirs.codes.tolist()) <= set(mine.codes.tolist())


def test_ties_are_kept_as_counts(monkeypatch):
    monkeypatch.setattr("dpselect.ordered.sources.columns._KEEP", 1000)
    values = np.tile(np.array([0.0, 1.0, 1.0, 2.0]), 25_000)
    column = ChunkedColumn(lambda: iter(np.array_split(values, 50)), FLOAT_DOMAIN)
    window = column.window(1, 100_000)
    assert window.counts.tolist() == [25_000, 50_000, 25_000]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "rows.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the rows" ("a ""b""" REAL, whole INTEGER)')
        rows = [(None if x != x else float(x), None) for x in FLOATS] + [(None, int(x)) for x in WHOLE]
        connection.executemany("INSERT INTO [the rows] VALUES (?, ?)", rows)
    connection.close()
    return f"sqlite:///{path}"


def test_ranks_from_a_sql_engine(database):
    with open_column(database, 'a "b"', table="the rows") as source:
        assert source.dtype == np.float64
        same_ranks(source.ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))
        low, high = private_range(source, epsilon=1.0, random=keyed_source(1)).value
        assert low <= high
        assert private_range(FLOATS, epsilon=1.0, random=keyed_source(1)).value == (low, high)
    with open_column(database, "whole", table="the rows") as source:
        assert source.dtype == np.int64
        same_ranks(source.ranked(WHOLE_DOMAIN), reference(WHOLE, WHOLE_DOMAIN))
        assert isinstance(quantile(source, q=0.5, lower=0, upper=100, epsilon=1.0).value, int)


def test_a_sqlite_column_may_hold_text_without_an_error(database):
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO [the rows] VALUES ('text', 'text')")
    connection.close()
    for column in ('a "b"', "whole"):
        with open_column(database, column, table="the rows") as source:
            assert 0 <= quantile(source, q=0.5, lower=0, upper=10, epsilon=1.0).value <= 10


@pytest.mark.full
def test_ranks_from_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE rows_ (a DOUBLE, b BIGINT)")
        connection.executemany("INSERT INTO rows_ VALUES (?, NULL)", [[float(x)] for x in FLOATS])
        connection.executemany("INSERT INTO rows_ VALUES (NULL, ?)", [[int(x)] for x in WHOLE])
        relation = connection.table("rows_")
        same_ranks(read_values(relation.project("a")).ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))
        same_ranks(read_values(relation.project("b")).ranked(WHOLE_DOMAIN), reference(WHOLE, WHOLE_DOMAIN))
        with pytest.raises(ArgumentError, match="one column"):
            read_values(relation)
    with open_column(f"duckdb:///{tmp_path / 'rows.duckdb'}", "a", table="rows_") as source:
        same_ranks(source.ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))


def test_files_read_in_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.parquet

    moments = (np.datetime64("2024-01-01", "ms") + np.arange(len(FLOATS))).astype("datetime64[ms]")
    table = pa.table({"x": FLOATS, "when": moments, "k": pa.array([None, *range(len(FLOATS) - 1)])})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=4)
    pyarrow.csv.write_csv(table.append_column("text", pa.array(["?"] * len(FLOATS))), tmp_path / "rows.csv")
    for name in ("rows.parquet", "rows.csv"):
        with open_column(str(tmp_path / name), "x") as source:
            same_ranks(source.ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))
    with open_column(str(tmp_path / "rows.parquet"), "k") as source:
        assert source.dtype == np.int64
        assert source.ranked(WHOLE_DOMAIN).total == len(FLOATS) - 1
    with open_column(str(tmp_path / "rows.parquet"), "when") as source:
        released = quantile(source, q=0.5, lower="2023-01-01", upper="2025-01-01", epsilon=1.0)
        assert released.value.dtype == np.dtype("datetime64[ms]")
    with open_column(str(tmp_path / "rows.csv"), "text") as source:
        assert source.ranked(FLOAT_DOMAIN).total == 0
    for where, column, table_name, word in (
        ("rows.parquet", "y", None, "column"),
        ("rows.csv", "y", None, "column"),
        ("none.parquet", "x", None, "no such file"),
        ("rows.csv", "x", "t", "table"),
    ):
        with pytest.raises(ArgumentError, match=word), open_column(str(tmp_path / where), column, table=table_name):
            pass


def test_many_quantiles_of_chunks_take_few_readings():
    readings = []
    rows = np.random.default_rng(2).normal(size=400_000)

    def chunks():
        readings.append(1)
        return iter(np.array_split(rows, 8))

    released = quantiles(
        chunks, qs=[k / 10 for k in range(1, 10)], lower=-9.0, upper=9.0, epsilon=1.0, random=keyed_source(1)
    )
    assert np.allclose(released.value, np.quantile(rows, [k / 10 for k in range(1, 10)]), atol=0.01)
    assert len(readings) <= 4  # the type, a survey, a prefetch, and one to spare


@pytest.mark.full
def test_small_domains_are_counted_by_the_engine(database, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    domain = Grid(-20, 240, Fraction(1, 32))
    ordered = np.sort(FLOATS[FLOATS == FLOATS])
    wanted = [int(np.sum(domain.encode(ordered) < np.uint64(code))) for code in range(domain.size)] + [len(ordered)]
    with open_column(database, 'a "b"', table="the rows") as source:
        assert rows_below(source.ranked(domain), domain.size).tolist() == wanted
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE rows_ (a DOUBLE)")
        connection.executemany("INSERT INTO rows_ VALUES (?)", [[float(x)] for x in FLOATS])
        column = read_values(connection.table("rows_")).ranked(domain)
        assert rows_below(column, domain.size).tolist() == wanted
    with open_column(f"duckdb:///{tmp_path / 'x.duckdb'}", "a", table="rows_") as source:
        assert rows_below(source.ranked(domain), domain.size).tolist() == wanted
    assert rows_below(SortedColumn(np.repeat(ordered, 9000), domain), domain.size).tolist() == [
        9000 * n for n in wanted
    ]


def test_sql_names_are_quoted():
    asked = []

    def query(statement, parameters):
        asked.append(statement)
        return [[0]]

    table = SqlTable(query, 's.t"; DROP TABLE x', "c", whole=True)
    assert table.ranked(WHOLE_DOMAIN).total == 0
    assert asked == ['SELECT count(*) FROM "s"."t""; DROP TABLE x" WHERE "c" IS NOT NULL']


EMPTY_AND_ONE = {
    "list": ([], [0]),
    "list and a half": ([0], [0, 0.5]),
    "list of a missing value": ([], [None]),
    "tuple": ((), (0,)),
    "array": (np.empty(0, dtype=np.int64), np.array([0])),
    "sorted": (np.empty(0, dtype=np.int32), np.array([0], dtype=np.int32)),
    "moments": (np.empty(0, dtype="datetime64[s]"), np.array([0], dtype="datetime64[s]")),
    "chunks": (lambda: iter([np.empty(0, dtype=int)]), lambda: iter([np.array([0])])),
    "chunks that are lists": (lambda: iter([[0]]), lambda: iter([[0], [0.5]])),
}


@pytest.mark.parametrize("name", EMPTY_AND_ONE)
def test_the_domain_does_not_depend_on_the_rows(name):
    """Broken: NumPy's guess makes integers of [0], doubles of [] and of [0, 0.5], and the answer tells which."""
    bounds = {"lower": 0, "upper": 3}
    if name == "moments":
        bounds = {side: np.datetime64(bound, "s") for side, bound in bounds.items()}
    domains = [Column(rows, assume_sorted=name == "sorted", **bounds).domain for rows in EMPTY_AND_ONE[name]]
    assert domains[0] == domains[1]


def test_the_domain_of_an_arrow_column_without_chunks_is_of_its_type():
    pa = pytest.importorskip("pyarrow")
    assert read_values(pa.chunked_array([], type=pa.int64())).dtype == np.int64


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (["a"], "must hold numbers"),
        ([np.datetime64(1, "s")], "array of their type"),
        ([1.0] + ["a"] * 10, "must hold numbers"),
    ],
)
def test_lists_of_other_things_are_refused(rows, named):
    with pytest.raises(TypeError, match=named):
        read_values(rows)


def test_rules_learned_from_lists_are_over_doubles_too():
    options = {"lower": 0, "upper": 3, "epsilon": 1.0}
    for rows in ([], [1], [0.5]):
        assert learn_threshold(rows, [1] * len(rows), **options).value.domain.size > 4
    for rows in ([[1]], [[0.5]]):
        assert learn_rectangle(rows, [1], **options).value.domains[0].size > 4
