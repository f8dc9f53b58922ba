"""Ranks by SQL: names and parameters are kept apart, and no message of a driver is shown."""

from __future__ import annotations

import itertools
import sqlite3
import traceback
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.ordered import (
    median,
    open_column,
    quantile,
)
from dpselect.ordered.domains import Binades, Doubles, Grid, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.ordered.sources import counted_ranks
from dpselect.ordered.sources.adapters import SqlTable
from dpselect.ordered.sources.counted_ranks import CountedRanks
from dpselect.ordered.sources.sql_counts import SqlCounts
from dpselect.tables.statements import with_parameters
from tests.ordered.sources import column_laws as laws

FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


def test_sql_names_are_quoted():
    asked = []

    def query(statement, parameters):
        asked.append(statement)
        return []

    table = SqlTable(query, 's.t"; DROP TABLE x', "c", whole=True)
    assert table.ranked(WHOLE_DOMAIN).total == 0
    assert all('FROM (SELECT "c" AS x FROM "s"."t""; DROP TABLE x") AS cells' in one for one in asked)
    assert len(asked) == 2


SECRET = "s3cr3t"


def test_a_driver_is_never_quoted():
    def query(statement, parameters):
        raise RuntimeError(f"cannot cast {SECRET}")

    table = SqlTable(query, "t", "x")
    for ask in (
        lambda: median(table, lower=0.0, upper=9.0, epsilon=1.0),
        lambda: median(table, lower=0.0, upper=9.0, granularity=1.0, epsilon=1.0),
        lambda: median(table, categories=["a"], epsilon=1.0),
    ):
        with pytest.raises(ContentError) as caught:
            ask()
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_bounds_beyond_what_a_database_holds(tmp_path):
    url = laws.sqlite_table(tmp_path / "x.db", "INTEGER", [*range(500), 2**63 - 1, -(2**63)])
    with open_column(url, "x", table="t") as source:
        for lower, upper in ((0, 2**70), (-(2**70), 600), (2**65, 2**66)):
            assert lower <= quantile(source, q=0.5, lower=lower, upper=upper, epsilon=4.0).value <= upper


def test_names_that_look_like_parameters(tmp_path):

    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute('CREATE TABLE ":p1" ("x :p0" INTEGER)')
        connection.executemany('INSERT INTO ":p1" VALUES (?)', [[k] for k in range(500)])
    connection.close()
    with open_column(f"sqlite:///{tmp_path / 'x.db'}", "x :p0", table=":p1") as source:
        assert abs(quantile(source, q=0.5, lower=0, upper=500, epsilon=4.0).value - 250) < 50


def test_windows_of_ranks_are_those_of_the_rows(tmp_path):
    """Every window of a small table, against a sorted array: ties are whole, and counts outside are right."""
    cells = [3, 1, 1, 9, None, 4, 9, 9, 12, -5]
    with closing(sqlite3.connect(laws.sqlite_table(tmp_path / "t.db", "INTEGER", cells)[len("sqlite:///") :])) as base:

        def query(statement, parameters):
            return base.execute(with_parameters(statement, lambda place: f"?{place + 1}"), parameters).fetchall()

        column = CountedRanks(SqlCounts(query, "x", "t", "i"), WholeNumbers(0, 10), "i")
        codes = sorted(min(max(cell, 0), 10) for cell in cells if cell is not None)
        assert column.total == len(codes) == 9
        assert column.rows_below(11).tolist() == [sum(code < edge for code in codes) for edge in range(12)]
        for first, last in itertools.combinations_with_replacement(range(-1, 12), 2):
            window = column.window(first, last)
            low, high = (codes[min(max(rank, 1), 9) - 1] for rank in (first, last))
            inside = [code for code in codes if low <= code <= high]
            assert np.repeat(window.codes, window.counts).tolist() == inside
            assert (window.before, window.after) == (codes.index(low), sum(code > high for code in codes))


def of_rows(cells, kind="REAL"):
    """A SQLite table in memory and what asks it; the statements are kept."""
    base, asked = sqlite3.connect(":memory:"), []
    base.execute(f"CREATE TABLE t (x {kind})")
    base.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in cells])

    def query(statement, parameters):
        asked.append(statement)
        return base.execute(with_parameters(statement, lambda place: f"?{place + 1}"), parameters).fetchall()

    return query, asked


def skewed(rng, rows):
    """A third at one value, a third close together, a third far apart."""
    return np.concatenate([np.full(rows, 2.5), 7.0 + rng.random(rows) * 1e-9, rng.normal(size=rows) * 1e6])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "domain",
    [Grid(-40, 80, Fraction(1, 8)), Grid(0, 1 << 50, Fraction(1, 1 << 40)), Doubles(-1e300, 1e300), Binades()],
)
def test_pieces_are_cut_until_they_have_few_rows(domain, seed, monkeypatch):
    monkeypatch.setattr(counted_ranks, "_FEW", (3, 3))
    monkeypatch.setattr(counted_ranks, "_EDGES", 5)
    rng = np.random.default_rng(seed)
    cells = rng.permutation(skewed(rng, 30))
    query, _ = of_rows(cells.tolist())
    column, array = CountedRanks(SqlCounts(query, "x", "t"), domain), SortedColumn(np.sort(cells), domain)
    column.prefetch([(3, 5), (40, 44), (70, 95)])
    for first, last in rng.integers(-3, 95, size=(12, 2)).tolist():
        found, wanted = column.window(first, max(first, last)), array.window(first, max(first, last))
        assert list(found.codes) == list(wanted.codes)
        assert found.counts.tolist() == wanted.counts.tolist()
        assert (found.before, found.after) == (wanted.before, wanted.after)


def test_whole_numbers_beyond_what_an_engine_binds(monkeypatch):
    monkeypatch.setattr(counted_ranks, "_FEW", (1, 1))
    cells = [-(2**63), -(2**63) + 1, -1, 0, 0, 0, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1]
    query, _ = of_rows(cells, "INTEGER")
    for domain in (WholeNumbers(-(2**70), 2**70), WholeNumbers(-(2**63), 2**63 - 1), WholeNumbers(2**53, 2**66)):
        column = CountedRanks(SqlCounts(query, "x", "t", "i"), domain, "i")
        codes = [min(max(cell, domain.lower), domain.upper) - domain.lower for cell in cells]
        window = column.window(1, len(cells))
        assert np.repeat(np.array(window.codes, dtype=object), window.counts).tolist() == codes
        assert column.window(7, 7).before == codes.index(codes[6])


def test_few_statements_for_many_quantiles(monkeypatch):
    monkeypatch.setattr(counted_ranks, "_FEW", (64, 64))
    cells = np.random.default_rng(1).normal(size=20_000)
    query, asked = of_rows(cells.tolist())
    column = CountedRanks(SqlCounts(query, "x", "t"), Grid(-(1 << 40), 1 << 40, Fraction(1, 1 << 36)))
    column.prefetch([(rank, rank + 5) for rank in range(2000, 20_000, 2000)])
    assert len(asked) <= 6
    before = len(asked)
    assert [column.window(rank, rank + 5).before < rank for rank in range(2000, 20_000, 2000)] == [True] * 9
    assert len(asked) == before
    assert not any("ORDER" in statement for statement in asked)


def test_a_table_that_changes_meanwhile_is_refused():
    query, _ = of_rows(np.arange(100.0).tolist())

    def growing(statement, parameters):
        query("INSERT INTO t VALUES (50.0)", ())
        return query(statement, parameters)

    with pytest.raises(ContentError, match="changed"):
        CountedRanks(SqlCounts(growing, "x", "t"), Grid(0, 1000, Fraction(1, 8))).window(40, 60)


@pytest.mark.full
def test_duckdb_neither_sorts_nor_keeps_the_column():
    duckdb = pytest.importorskip("duckdb")
    base, plans = duckdb.connect(), []
    base.execute("CREATE TABLE t AS SELECT (i * 7919 % 1000003)::DOUBLE AS x FROM range(1000003) AS r(i)")

    def query(statement, parameters):
        bound = with_parameters(statement, lambda place: f"${place + 1}")
        plain = with_parameters(statement, lambda place: f"CAST('{parameters[place]}' AS DOUBLE)")
        plans.append(base.execute(f"EXPLAIN {plain}").fetchall()[0][1])
        rows = base.execute(bound, parameters).fetchall()
        assert len(rows) < 40_000
        return rows

    column = CountedRanks(SqlCounts(query, "x", "t"), Grid(0, 1 << 30, Fraction(1, 512)))
    assert column.window(500_001, 500_001).codes.tolist() == [500_000 * 512]
    assert len(plans) >= 3
    assert not any(word in plan for plan in plans for word in ("ORDER_BY", "TOP_N", "WINDOW"))
