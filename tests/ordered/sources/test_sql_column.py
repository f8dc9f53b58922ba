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
from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.sources.adapters import SqlTable
from dpselect.ordered.sources.sql_column import SqlColumn, with_parameters
from tests.ordered.sources import column_laws as laws

FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


def test_sql_names_are_quoted():
    asked = []

    def query(statement, parameters):
        asked.append(statement)
        return [[0]]

    table = SqlTable(query, 's.t"; DROP TABLE x', "c", whole=True)
    assert table.ranked(WHOLE_DOMAIN).total == 0
    assert asked == ['SELECT count(*) FROM "s"."t""; DROP TABLE x" WHERE "c" IS NOT NULL']


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

        column = SqlColumn(query, "t", "x", WholeNumbers(0, 10), "i")
        codes = sorted(min(max(cell, 0), 10) for cell in cells if cell is not None)
        assert column.total == len(codes) == 9
        assert column.rows_below(11).tolist() == [sum(code < edge for code in codes) for edge in range(12)]
        for first, last in itertools.combinations_with_replacement(range(-1, 12), 2):
            window = column.window(first, last)
            low, high = (codes[min(max(rank, 1), 9) - 1] for rank in (first, last))
            inside = [code for code in codes if low <= code <= high]
            assert np.repeat(window.codes, window.counts).tolist() == inside
            assert (window.before, window.after) == (codes.index(low), sum(code > high for code in codes))
