"""Spark: types, on one local core."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.engine_column import engine_column

sql = pytest.importorskip("pyspark.sql")


@pytest.mark.full
def test_types():
    session = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    kinds = {"i": ("tinyint", "bigint", "boolean"), "f": ("float", "decimal(9, 2)"), "text": ("string",)}
    for kind, types in kinds.items():
        assert [engine_column(session.createDataFrame([], f"x {one}")).kind for one in types] == [kind] * len(types)
    for one in ("timestamp", "array<int>"):
        with pytest.raises(ArgumentError, match="is not read; cast it"):
            engine_column(session.createDataFrame([], f"x {one}"))
    with pytest.raises(ArgumentError, match="one column, got 2"):
        engine_column(session.createDataFrame([], "x int, y int"))
