"""Ibis: types, and the queries that its compiler makes for engines that no test can reach."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.domains import Categories
from dpselect.ordered.sources.engine_column import engine_column
from dpselect.ordered.sources.engines import ibis as module

ibis = pytest.importorskip("ibis")


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "trino", "pyspark", "postgres", "duckdb", "sqlite"])
def test_each_dialect_counts_without_a_sort(dialect):
    table = ibis.table({"x": "float64", "y": "int64", "t": "string"}, name="rows_")
    floats, whole = engine_column(table.x), engine_column(table.select("y"))
    for column, edges in ((floats, [0.5, 1.5, 2.5]), (whole, [1, 2])):
        if dialect in ("sqlite", "pyspark") and column is floats:
            continue  # how NaN is told, the first never says, and the second with a connection only
        for asked in (column.query(edges, [(edges[0], edges[-1]), (None, 9)]), column.query(None, [(0, None)])):
            said = ibis.to_sql(asked, dialect=dialect).upper()
            assert "GROUP BY" in said
            assert "COUNT(*)" in said
            assert not any(word in said for word in ("ORDER BY", "OFFSET", "OVER ("))
    assert ibis.to_sql(whole.query([7], ()), dialect=dialect).count("< 7") == 1


def test_types():
    types = {"a": "uint8", "b": "boolean", "c": "decimal(9, 2)", "d": "decimal", "e": "timestamp", "u": "uint64"}
    table = ibis.table(types)
    assert [engine_column(table[name]).kind for name in "abc"] == ["i", "i", "f"]
    for name in "deu":
        with pytest.raises(ArgumentError, match="is not read; cast it"):
            engine_column(table[name])
    with pytest.raises(ArgumentError, match="one column, got 6"):
        engine_column(table)
    assert engine_column(ibis.literal(1)) is None


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_text_is_compared_by_its_bytes_in_every_collation(engine, tmp_path):
    """Of cells that a collation takes for one, one row would decide which of them is counted."""
    pytest.importorskip("duckdb")
    base = getattr(ibis, engine).connect(tmp_path / "d.db")
    run = base.con.execute
    run("CREATE TABLE t (x TEXT COLLATE NOCASE, y INTEGER)")
    run("INSERT INTO t VALUES ('NORTH', 1), ('north', 2), ('north', 3), ('North', 4)")
    table = base.table("t")
    named = Categories(("north", "South"))
    assert engine_column(table.x).counted(named)().tolist() == [2, 0]
    north, south = engine_column(table, "x").by_group(named)
    assert (north.rows(), south.rows()) == (2, 0)
    assert sorted(value for value, _ in north.values(())) == [2, 3]


def test_text_of_engines_without_case_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_engine", lambda _: "mysql")
    table = ibis.table({"x": "string", "y": "int64"})
    assert engine_column(table.y).kind == "i"
    for values, by in ((table.x, None), (table, "x")):
        with pytest.raises(ArgumentError, match="text of mysql may be compared without case"):
            engine_column(values, by)
