"""Files and URLs are opened by their names, and read in batches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import (
    open_column,
    quantile,
)
from dpselect.ordered.domains import Grid, WholeNumbers
from tests.ordered.sources.columns_cases import FLOATS, reference, same_ranks

FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


def test_files_read_in_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.parquet

    moments = (np.datetime64("2024-01-01", "ms") + np.arange(len(FLOATS))).astype("datetime64[ms]")
    table = pa.table({"x": FLOATS, "when": moments, "k": pa.array([None, *range(len(FLOATS) - 1)])})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=4)
    pyarrow.csv.write_csv(table.append_column("text", pa.array(["?"] * len(FLOATS))), tmp_path / "rows.csv")
    for name in ("rows.parquet", "rows.csv"):
        with open_column(str(tmp_path / name), "x") as source:
            same_ranks(source.ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))
    with open_column(str(tmp_path / "rows.parquet"), "k") as source:
        assert source.dtype == np.int64
        assert source.ranked(WHOLE_DOMAIN).total == len(FLOATS) - 1
    with open_column(str(tmp_path / "rows.parquet"), "when") as source:
        released = quantile(source, q=0.5, lower="2023-01-01", upper="2025-01-01", epsilon=1.0)
        assert released.value.dtype == np.dtype("datetime64[ms]")
    with open_column(str(tmp_path / "rows.csv"), "text") as source:
        assert source.ranked(FLOAT_DOMAIN).total == 0
    for where, column, table_name, word in (
        ("rows.parquet", "y", None, "column"),
        ("rows.csv", "y", None, "column"),
        ("none.parquet", "x", None, "no such file"),
        ("rows.csv", "x", "t", "table"),
    ):
        with pytest.raises(ArgumentError, match=word), open_column(str(tmp_path / where), column, table=table_name):
            pass
