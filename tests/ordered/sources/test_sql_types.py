"""Types of SQL columns: how each is read, and which are refused."""

from __future__ import annotations

import sqlite3

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import (
    Column,
    open_column,
    quantile,
)
from dpselect.ordered.sources.sql_types import sql_type
from tests.ordered.sources import column_laws as laws


def test_a_sqlite_column_may_hold_text_without_an_error(database):
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO [the rows] VALUES ('text', 'text')")
    connection.close()
    for column in ('a "b"', "whole"):
        with open_column(database, column, table="the rows") as source:
            assert 0 <= quantile(source, q=0.5, lower=0, upper=10, epsilon=1.0).value <= 10


def test_the_collation_of_a_column_counts_nobody_twice(tmp_path):
    """Grouped under NOCASE, the one row 'A' could stand for a thousand rows 'a'."""
    for rows in (["A"] + ["a"] * 5, ["a"] * 5 + ["A"]):
        url = laws.sqlite_table(tmp_path / "x.db", "TEXT COLLATE NOCASE", rows)
        assert laws.ranks_of_table(url, {"lower": None, "upper": None, "categories": ["a", "A"]})[1] == {0: 5, 1: 1}


@pytest.mark.parametrize(
    ("engine", "name", "whole", "unit", "text"),
    [
        ("sqlite", " integer ", True, None, True),
        ("sqlite", "NUMERIC(10, 2)", False, None, False),
        ("sqlite", "TIMESTAMP", True, "s", False),
        ("postgresql", "DOUBLE_PRECISION", False, None, False),
        ("postgresql", "TIMESTAMP", True, "us", False),
        ("duckdb", "DECIMAL(18,3)", False, None, False),
        ("duckdb", "ENUM('a', 'b(1)')", False, None, True),
        ("duckdb", "TIMESTAMP_MS", True, "us", False),
    ],
)
def test_types_by_the_name_of_the_engine(engine, name, whole, unit, text):
    found = sql_type(engine, name, "x")
    assert (found.whole, found.unit, found.text is not None) == (whole, unit, text)
    assert (found.number is None) == (text and not whole)


@pytest.mark.parametrize(
    ("engine", "name", "said"),
    [
        ("duckdb", "INTERVAL", r"'x' is of the type INTERVAL, .* EXTRACT\(EPOCH FROM it\)"),
        ("postgresql", "JSONB", "JSONB, which is not read; cast it in a view to a number, a date"),
        ("sqlite", "", "of the type none"),
        ("sqlite", "A" * 60, "A{57}[.]{3},"),
        ("mysql", "INTEGER", "not read"),
    ],
)
def test_other_types_are_refused(engine, name, said):
    with pytest.raises(ArgumentError, match=said):
        sql_type(engine, name, "x")


def test_cells_of_sqlite_that_are_no_integers_are_missing(tmp_path):
    cells = [1, 2.0, 2.5, "3", 1e19, -1e19, None]
    url = laws.sqlite_table(tmp_path / "t.db", "INTEGER", cells)
    found = laws.ranks_of_table(url, {"lower": 0, "upper": 9})[1]
    assert found == {0: 1, 1: 1, 2: 1, 3: 1, 9: 1}


def test_a_generated_column_of_sqlite_has_its_type_and_a_view_is_told_what_to_do(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (y REAL, x REAL GENERATED ALWAYS AS (y * 2))")
        connection.execute("INSERT INTO t VALUES (1.5)")
        connection.execute("CREATE VIEW v AS SELECT CAST(y * 2 AS REAL) AS x FROM t")
        connection.execute("CREATE TABLE copied AS SELECT CAST(x AS REAL) AS x FROM v")
    connection.close()
    url = f"sqlite:///{tmp_path / 't.db'}"
    for table in ("t", "copied"):
        assert laws.ranks_of_table(url, {"lower": 0, "upper": 9, "granularity": 1}, table=table)[1] == {3: 1}
    if sqlite3.sqlite_version_info < (3, 41):  # later versions give such a column of a view its type
        with pytest.raises(ArgumentError, match='declare its kind, such as "number"'):
            open_column(url, "x", table="v").__enter__()
    with open_column(url, "x", table="v", kind="number") as source:
        assert Column(source, lower=0, upper=9, granularity=1).ranked().total == 1
