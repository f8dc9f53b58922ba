"""Dask: types, and partitions without rows."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.engine_column import engine_column

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


def of(values, kind, parts=2):
    return engine_column(dd.from_pandas(pd.Series(values, dtype=kind), npartitions=parts))


@pytest.mark.full
def test_types():
    kinds = {"i": ("int8", "uint32", "bool", "Int64"), "f": ("float32", "Float64"), "text": ("string",)}
    for kind, types in kinds.items():
        assert [of([], one, 1).kind for one in types] == [kind] * len(types)
    for one in ("uint64", "datetime64[ns]"):
        with pytest.raises(ArgumentError, match="is not read; cast it"):
            of([], one, 1)
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0], "y": [2.0]}), npartitions=1)
    assert engine_column(frame[["x"]]).kind == "f"
    with pytest.raises(ArgumentError, match="one column, got 2"):
        engine_column(frame)


@pytest.mark.full
def test_partitions_without_rows():
    column = engine_column(dd.from_pandas(pd.Series([1.5, 2.5, None, 2.5]), npartitions=2).loc[2:])
    assert column.counts([2.0], [(None, 9.0)]).tolist() == [0, 1]
    assert column.values([(2.0, None)]) == [(2.5, 1)]
    assert column.rows() == 2
