"""Lazy frames of polars: types, and what stays with the frames in memory."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.engine_column import engine_column

pl = pytest.importorskip("polars")


def test_types():
    kinds = {
        "i": (pl.Int8, pl.UInt32, pl.Boolean),
        "f": (pl.Float32, pl.Decimal(9, 2)),
        "text": (pl.String, pl.Categorical),
    }
    for kind, types in kinds.items():
        for one in types:
            assert engine_column(pl.LazyFrame(schema={"x": one})).kind == kind
    for one in (pl.UInt64, pl.Date, pl.List(pl.Int8)):
        with pytest.raises(ArgumentError, match="is not read; cast it"):
            engine_column(pl.LazyFrame(schema={"x": one}))
    with pytest.raises(ArgumentError, match="one column, got 2"):
        engine_column(pl.LazyFrame({"x": [1], "y": [2]}))
    assert engine_column(pl.Series([1])) is None
    assert engine_column(pl.DataFrame({"x": [1]})) is None


def test_no_rows():
    column = engine_column(pl.LazyFrame(schema={"x": pl.Float64}))
    assert column.counts([]).tolist() == [0]
    assert column.fates(0.0, 1.0).tolist() == [0, 0, 0, 0, 0]
