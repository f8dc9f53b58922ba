"""Columns of databases split by another column: each group as the array has it, to the bit for the same key."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import open_column, quantiles_by_group
from dpselect.ordered.sources import counted_ranks
from dpselect.ordered.sources.declared import Column
from dpselect.ordered.sources.groups import columns_by_group, parse_names
from dpselect.randomness import keyed_source
from tests.budgets import budget_at, charges

RNG = np.random.default_rng(5)
REGIONS = ["north", " north ", "South", "south", "é", "e\u0301", "1", "1.0", "TRUE", "o'hara:p0 {x}", '"q"', "", None]
ROWS = [
    (float(value), REGIONS[place], int(code))
    for value, place, code in zip(
        RNG.integers(0, 1000, 900), RNG.integers(0, len(REGIONS), 900), RNG.integers(0, 4, 900), strict=True
    )
]
TEXT_NAMES = ["north", "south", "é", 1, "o'hara:p0 {x}", '"q"', "nobody"]
TERMS = {"qs": [0.1, 0.5, 0.9], "lower": 0.0, "upper": 1000.0, "granularity": 1, "epsilon": 3.0}
POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")
TABLE = 'CREATE TABLE "the rows" (x DOUBLE PRECISION, "re:gion" {text}, code INTEGER)'


@contextmanager
def sqlite_table(folder, rows):
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(TABLE.format(text="TEXT COLLATE NOCASE"))
        connection.executemany('INSERT INTO "the rows" VALUES (?, ?, ?)', rows)
    yield f"sqlite:///{folder / 't.db'}"


@contextmanager
def duckdb_table(folder, rows):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(TABLE.format(text="VARCHAR COLLATE NOCASE"))
        connection.executemany('INSERT INTO "the rows" VALUES (?, ?, ?)', rows)
    yield f"duckdb:///{folder / 't.duckdb'}"


@contextmanager
def postgresql_table(folder, rows):
    if not POSTGRES:
        pytest.skip("needs DPSELECT_TEST_POSTGRES")
    import sqlalchemy as sa

    engine = sa.create_engine(POSTGRES)
    with engine.begin() as connection:
        connection.execute(sa.text('DROP TABLE IF EXISTS "the rows"'))
        connection.execute(sa.text(TABLE.format(text="TEXT").replace("re:gion", "re\\:gion")))
        given = [{"a": a, "b": b, "c": c} for a, b, c in rows]
        connection.execute(sa.text('INSERT INTO "the rows" VALUES (:a, :b, :c)'), given)
    yield POSTGRES
    engine.dispose()


TABLES = [
    pytest.param(sqlite_table, id="sqlite", marks=pytest.mark.full),
    pytest.param(duckdb_table, id="duckdb", marks=pytest.mark.full),
    pytest.param(postgresql_table, id="postgresql", marks=pytest.mark.full),
]


@pytest.fixture(autouse=True)
def several_levels(monkeypatch):
    monkeypatch.setattr(counted_ranks, "_FEW", (10, 10))


def opened(url, by, column="x", **options):
    return open_column(url, column, table="the rows", by=by, **options)


@pytest.mark.parametrize("table", TABLES)
def test_groups_of_a_table_are_those_of_the_array(table, tmp_path):
    values, regions, codes = zip(*ROWS, strict=True)
    with table(tmp_path, ROWS) as url:
        for by, cells, names in (("re:gion", regions, TEXT_NAMES), ("code", codes, [3, "0", 7])):
            expected = quantiles_by_group(list(values), list(cells), names=names, random=keyed_source(8), **TERMS)
            budget = tmp_path / f"{by[:2]}.db"
            with opened(url, by) as column:
                found = quantiles_by_group(
                    column, names=names, random=keyed_source(8), spender=budget_at(budget, epsilon=9), **TERMS
                )
            assert found.value == expected.value
            assert charges(budget) == [True]


@pytest.mark.parametrize("table", TABLES)
def test_cells_of_each_group_are_counted_as_in_the_array(table, tmp_path):
    """Lost cells and categories too."""
    values, regions, codes = zip(*ROWS, strict=True)
    bounds = {"lower": 100.0, "upper": 700.0}
    with table(tmp_path, ROWS) as url:
        with opened(url, "re:gion") as column:
            parts = columns_by_group(Column(column, **bounds), None, parse_names(TEXT_NAMES))
            arrays = columns_by_group(Column(list(values), **bounds), list(regions), parse_names(TEXT_NAMES))
            assert [part.fates().tolist() for part in parts] == [part.fates().tolist() for part in arrays]
        with opened(url, "code", "re:gion", text=True) as column:
            parts = columns_by_group(Column(column, categories=["north", "south", 1]), None, parse_names([0, 1, 9]))
            text = ["" if region is None else region for region in regions]
            whole = columns_by_group(
                Column(text, categories=["north", "south", 1]), list(codes), parse_names([0, 1, 9])
            )
            assert [p.fates().tolist()[:3] for p in parts] == [p.fates().tolist()[:3] for p in whole]


@pytest.mark.full
def test_a_row_decides_of_its_own_group_alone(tmp_path):
    """Neighbours, at random: with one row less only its own group has one row less."""
    names = parse_names(TEXT_NAMES)

    def totals(rows):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        with sqlite_table(folder, rows) as url, opened(url, "re:gion") as column:
            return [part.ranked().total for part in columns_by_group(Column(column, lower=0, upper=1000), None, names)]

    rows = ROWS[:24]
    whole = totals(rows)
    for place in range(0, 24, 2):
        less = np.subtract(whole, totals(rows[:place] + rows[place + 1 :]))
        assert sorted(less.tolist())[:-1] == [0] * (len(TEXT_NAMES) - 1)
        assert less.sum() in (0, 1)


@pytest.mark.full
def test_as_many_spellings_as_an_engine_has_parameters(tmp_path):
    """They travel as one: their number depends on the rows, and must not make a statement fail."""
    rows = [(1.0, " " * (extra // 200) + "north" + " " * (extra % 200), 0) for extra in range(40_000)]
    with sqlite_table(tmp_path, rows) as url, opened(url, "re:gion") as column:
        (part,) = columns_by_group(Column(column, lower=0, upper=9), None, parse_names(["north"]))
        assert part.ranked().total == 40_000


def test_cells_that_cannot_travel_are_in_no_group(tmp_path):
    rows = [(1.0, "a\0b", 0), (2.0, "a", 0), (3.0, b"a", 0), (4.0, b"\xff", 0)]
    with sqlite_table(tmp_path, rows) as url, opened(url, "re:gion") as column:
        parts = columns_by_group(Column(column, lower=0, upper=9), None, parse_names(["a", "a\0b"]))
        assert [part.ranked().total for part in parts] == [1, 0]


def test_wrong_requests_name_their_argument(tmp_path):
    with sqlite_table(tmp_path, ROWS[:5]) as url:
        for by, message in (("nowhere", "by: there is no"), ("x", "by: 'x' is the column of the values")):
            with pytest.raises(ArgumentError, match=message), opened(url, by):
                pass
        with opened(url, "re:gion") as column, pytest.raises(ArgumentError, match="give no groups"):
            quantiles_by_group(column, ["north"] * 5, names=["north"], **TERMS)
        with opened(url, None) as column, pytest.raises(ArgumentError, match="groups: need"):
            quantiles_by_group(column, names=["north"], **TERMS)
        with pytest.raises(ArgumentError, match="by: column 'x' holds neither"), opened(url, "x", "code"):
            pass


def test_the_command_takes_groups_of_a_table(tmp_path, pay):
    with sqlite_table(tmp_path, ROWS) as url:
        flags = ("--table", "the rows", "--by", "code", "--group", "1", "--group", "2", "--lower", 0, "--upper", 1000)
        status, said, left = pay(url, *flags)
    assert (status, left) == (0, 2.0), said
    assert "code" in said


def test_no_number_of_another_row_makes_a_text_a_name(tmp_path):
    """A view of two tables gives its cells an affinity, for which 1.00000000000000001 is 1."""

    def total(numbers):
        url = f"sqlite:///{tmp_path / 'view.db'}"
        with closing(sqlite3.connect(tmp_path / "view.db")) as base, base:
            for statement in ("VIEW v", "TABLE a", "TABLE b"):
                base.execute(f"DROP {statement.replace(' ', ' IF EXISTS ')}")
            base.execute("CREATE TABLE a (x REAL, code INTEGER)")
            base.execute("CREATE TABLE b (x REAL, code TEXT)")
            base.executemany("INSERT INTO a VALUES (1.0, ?)", numbers)
            base.executemany("INSERT INTO b VALUES (1.0, ?)", [("1.00000000000000001",)] * 5)
            base.execute("CREATE VIEW v AS SELECT * FROM a UNION ALL SELECT * FROM b")
        with open_column(url, "x", table="v", by="code") as column:
            (part,) = columns_by_group(Column(column, lower=0, upper=9), None, parse_names([1]))
            return part.ranked().total

    assert [total([]), total([(1,)])] == [0, 1]
