"""Ibis: types, and the queries that its compiler makes for engines that no test can reach."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.engine_column import engine_column

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
