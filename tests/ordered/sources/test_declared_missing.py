"""Declared missing values of a column with a type: in files, SQLite and DuckDB."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import Column as OrderedColumn, open_column
from tests.tables.kinds.doors_cases import of_quantile

BERLIN = "Europe/Berlin"


def test_what_is_missing_in_a_column_with_a_type(tmp_path):
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    whole = [1, -99, None, 3]
    for kind, words, absent in (
        (pa.int64(), whole, -99),
        (pa.uint8(), [1, 99, None, 3], 99),
        (pa.float64(), [1.0, -99.0, None, 3.0], -99),
        (pa.float32(), [1.0, -99.9, None, 3.0], -99.9),
        (pa.decimal128(5, 1), whole, "-99.0"),
        (pa.date32(), [1, 2_932_896, None, 3], "9999-12-31"),
        (pa.timestamp("ns"), [10, 20, None, 30], "1970-01-01T00:00:00.000000020"),
    ):
        parquet.write_table(pa.table({"x": pa.array(words, kind)}), tmp_path / "t.parquet")
        found = of_quantile(tmp_path / "t.parquet", missing_values=[absent, 2.5, "NA"])
        assert np.isnan(found).tolist() == [False, True, True, False], kind
        assert np.isnan(of_quantile(tmp_path / "t.parquet")).tolist() == [False, False, True, False], kind
    with pytest.raises(ArgumentError, match="kind, time_zone: only for a column without a type"):
        of_quantile(tmp_path / "t.parquet", kind="date", time_zone=BERLIN)


@pytest.mark.parametrize("kind", ["REAL", "INTEGER", "DATE"])
def test_what_is_missing_in_a_database(kind, tmp_path):
    path = tmp_path / "t.db"
    rows = ["2024-01-01", "9999-12-31", None, "2024-01-03"] if kind == "DATE" else [1, -99, None, 3]
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE t (x {kind})")
        database.executemany("INSERT INTO t VALUES (?)", [(row,) for row in rows])
        database.commit()
    bounds = {"lower": "1900-01-01", "upper": "9999-12-31"} if kind == "DATE" else {"lower": -100, "upper": 100}
    with open_column(f"sqlite:///{path}", "x", table="t", missing_values=["9999-12-31", -99, "NA"]) as source:
        assert OrderedColumn(source, **bounds).ranked().total == 2
    with open_column(f"sqlite:///{path}", "x", table="t") as source:
        assert OrderedColumn(source, **bounds).ranked().total == 3
    known = {"kind": "date" if kind == "DATE" else "number", "missing_values": ["9999-12-31", -99]}
    with open_column(f"sqlite:///{path}", "x", table="t", **known) as source:
        assert OrderedColumn(source, **bounds).ranked().total == 2


def test_what_is_missing_in_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE t (a INTEGER, b DOUBLE, c DATE, d DECIMAL(5, 1), e UBIGINT)")
        days = ("2024-01-01", "9999-12-31", "2024-01-03")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [(k, k, days[k % 3], k, k) for k in (3, 1, 2)])
    for column, absent in (("a", 1), ("b", "1.0"), ("c", "9999-12-31"), ("d", 1), ("e", 1)):
        bounds = ("1900-01-01", "9999-12-31") if column == "c" else (0, 9)
        where = f"duckdb:///{tmp_path / 't.duckdb'}"
        with pytest.raises(ArgumentError, match="kind: only for a column without a type"):
            open_column(where, column, table="t", kind="duration").__enter__()
        with open_column(where, column, table="t", missing_values=[absent, "NA", -7]) as source:
            assert OrderedColumn(source, lower=bounds[0], upper=bounds[1]).ranked().total == 2
