"""Engines that fail in the middle of a quantile: it raises, releases nothing, and stays charged as it was reserved."""

from __future__ import annotations

import sqlite3
import traceback
from dataclasses import replace

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.ordered import open_column, quantiles
from dpselect.ordered.sources import counted_ranks
from dpselect.ordered.sources.engine_column import engine_column
from dpselect.randomness import keyed_source
from tests.budgets import budget_at, charges

SECRET = "4815162342"
VALUES = np.random.default_rng(1).integers(0, 10_000, size=3_000).tolist()
TERMS = {"qs": [0.1, 0.5, 0.9], "lower": 0.0, "upper": 10_000.0, "granularity": 1, "epsilon": 1.0}
QUERIES = 40
"""More than a quantile of these rows takes."""


@pytest.fixture(autouse=True)
def several_levels(monkeypatch):
    monkeypatch.setattr(counted_ranks, "_FEW", (40, 40))


@pytest.fixture(params=["sqlite", "duckdb"])
def opened(request, tmp_path):
    """A table with these values, and a function that writes to it."""
    path = tmp_path / f"rows.{request.param}"
    if request.param == "sqlite":
        connection = sqlite3.connect(path)
    else:
        connection = pytest.importorskip("duckdb").connect(str(path))
    with connection:
        connection.execute("CREATE TABLE t (x DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in VALUES[:500]])
    connection.close()
    return f"{request.param}:///{path}"


def failing(source, when, change):
    """The source, with a change of what is asked or answered from the `when`-th query on, and the number of queries."""
    asked = []

    def query(statement, parameters):
        asked.append(statement)
        return change(source.query, statement, parameters) if len(asked) > when else source.query(statement, parameters)

    return replace(source, query=query), asked


def dies(query, statement, parameters):
    raise RuntimeError(f"lost connection near {SECRET}")


def other_rows(query, statement, parameters):
    return query(statement.replace('"t"', "(SELECT x FROM t UNION ALL SELECT x + 1 FROM t) AS more"), parameters)


def no_rows(query, statement, parameters):
    return query(statement.replace('"t"', "(SELECT x FROM t WHERE x < 0) AS none"), parameters)


@pytest.mark.full
@pytest.mark.parametrize("change", [dies, other_rows, no_rows])
def test_a_query_that_dies_or_sees_other_rows(change, opened, tmp_path):
    """At every query: either all of the answer comes out, drawn from one reading, or nothing does."""
    raised = 0
    for when in range(QUERIES):
        budget = tmp_path / f"{when}.db"
        with open_column(opened, "x", table="t") as column:
            source, asked = failing(column, when, change)
            error = None
            try:
                released = quantiles(source, spender=budget_at(budget, epsilon=5), random=keyed_source(3), **TERMS)
            except ContentError as caught:
                error = caught
        if error is not None:
            assert SECRET not in "".join(traceback.format_exception(error))
            assert charges(budget) == [False], "reserved and not settled: it stays charged"
            raised += 1
            continue
        assert charges(budget) == [True]
        assert len(released.value) == 3
        if len(asked) <= when:  # undisturbed
            break
    assert raised >= (3 if change is dies else 1)
    assert released.value == quantiles(VALUES[:500], random=keyed_source(3), **TERMS).value


@pytest.mark.parametrize("kind", ["DECIMAL(38, 0)", "HUGEINT", "UBIGINT"])
def test_a_number_that_no_cast_holds(kind, tmp_path):
    """The largest of the type: it is clipped, and nothing is raised because of it."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "rows.duckdb"
    largest = {"DECIMAL(38, 0)": 10**38 - 1, "HUGEINT": 2**127 - 1, "UBIGINT": 2**64 - 1}[kind]
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        connection.execute(f"INSERT INTO t VALUES (1), (2), ({largest})")
    with open_column(f"duckdb:///{path}", "x", table="t") as column:
        found = quantiles(column, **{**TERMS, "epsilon": 100.0, "qs": [0.99]})
    assert found.value[0] == 10_000


def test_a_cell_of_another_type_than_the_column(tmp_path):
    """Which SQLite allows: text and blobs are missing, and numbers beyond float64 are clipped."""
    path = tmp_path / "rows.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
        cells = [5, 5, 5, SECRET + "x", b"\xff", None, 1e300, "9" * 400]
        connection.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in cells])
    with open_column(f"sqlite:///{path}", "x", table="t") as column:
        assert quantiles(column, **{**TERMS, "epsilon": 100.0, "qs": [0.3]}).value == [5]


@pytest.mark.full
def test_a_partition_of_dask_that_fails_or_a_worker_that_is_lost(tmp_path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    failures = {"left": 1}

    def fragile(part):
        if failures["left"]:
            failures["left"] -= 1
            raise MemoryError(SECRET)
        return part

    frame = dd.from_pandas(pd.DataFrame({"x": VALUES[:300]}), npartitions=3)
    column = frame.map_partitions(fragile, meta=frame)["x"]
    assert engine_column(column) is not None
    budget, failures["left"] = tmp_path / "budget.db", 1
    with pytest.raises(ContentError) as caught:
        quantiles(column, spender=budget_at(budget, epsilon=5), random=keyed_source(3), **TERMS)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert charges(budget) == [False]
    failures["left"] = 0
    again = quantiles(column, random=keyed_source(3), **TERMS)
    assert again.value == quantiles(VALUES[:300], random=keyed_source(3), **TERMS).value
