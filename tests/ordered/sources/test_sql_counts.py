"""Rows between numbers, counted by an engine: every slot against the array, missing values in none."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.ordered.sources.sql_counts import SqlCounts, ask
from dpselect.tables.statements import with_parameters


def of_cells(cells):
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (x REAL)")
    base.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in cells])
    return lambda text, values: base.execute(with_parameters(text, lambda at: f"?{at + 1}"), values).fetchall()


@pytest.mark.parametrize("edges", [[], [2.0], [0.0, 1.0, 1.0, 7.5], np.linspace(-3, 12, 31).tolist()])
@pytest.mark.parametrize("ranges", [[], [(1.0, 5.0)], [(None, 1.0), (4.0, 9.0)], [(3.0, None)], [(None, None)]])
def test_slots_are_those_of_the_array(edges, ranges):
    cells = [*range(-5, 12), 1, 1, 1.5, math.inf, -math.inf]
    query = of_cells([*cells, None, None])
    within = [x for x in cells if not ranges or any((a is None or x >= a) and (b is None or x < b) for a, b in ranges)]
    wanted = np.bincount(np.searchsorted(edges, within, side="right"), minlength=len(edges) + 1)
    assert SqlCounts(query, "x", "t").counts(edges, ranges).tolist() == wanted.tolist()
    values, counts = np.unique(np.array(within, dtype=float), return_counts=True)
    assert SqlCounts(query, "x", "t").values(ranges) == list(zip(values.tolist(), counts.tolist(), strict=True))


def test_nan_is_in_no_slot():
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.execute("CREATE TABLE t AS SELECT unnest([1.0, 'nan'::DOUBLE, 'inf'::DOUBLE, NULL]) AS x")

    def query(statement, parameters):
        return base.execute(with_parameters(statement, lambda at: f"${at + 1}"), list(parameters)).fetchall()

    assert SqlCounts(query, "x", "t").counts([2.0]).tolist() == [1, 1]
    assert SqlCounts(query, "x", "t").values([]) == [(1.0, 1), (math.inf, 1)]


def test_a_driver_is_not_quoted():
    def query(statement, parameters):
        raise RuntimeError("s3cr3t")

    with pytest.raises(ContentError) as caught:
        ask(query, "SELECT 1", ())
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__context__ is None
