"""Columns of SQLite, PostgreSQL and DuckDB: their ranks, and types refused before payment."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import (
    Column,
    open_column,
    private_range,
    quantile,
)
from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.sources.adapters import read_values
from dpselect.randomness import keyed_source
from tests.ordered.sources import column_laws as laws
from tests.ordered.sources.columns_cases import FLOATS, WHOLE, reference, same_ranks

FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


def test_ranks_from_a_sql_engine(database):
    with open_column(database, 'a "b"', table="the rows") as source:
        assert source.dtype == np.float64
        same_ranks(source.ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))
        low, high = private_range(source, epsilon=1.0, random=keyed_source(1)).value
        assert low <= high
        assert private_range(FLOATS, epsilon=1.0, random=keyed_source(1)).value == (low, high)
    with open_column(database, "whole", table="the rows") as source:
        assert source.dtype == np.int64
        same_ranks(source.ranked(WHOLE_DOMAIN), reference(WHOLE, WHOLE_DOMAIN))
        assert isinstance(quantile(source, q=0.5, lower=0, upper=100, epsilon=1.0).value, int)


@pytest.mark.full
def test_ranks_from_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE rows_ (a DOUBLE, b BIGINT)")
        connection.executemany("INSERT INTO rows_ VALUES (?, NULL)", [[float(x)] for x in FLOATS])
        connection.executemany("INSERT INTO rows_ VALUES (NULL, ?)", [[int(x)] for x in WHOLE])
        relation = connection.table("rows_")
        same_ranks(read_values(relation.project("a")).ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))
        same_ranks(read_values(relation.project("b")).ranked(WHOLE_DOMAIN), reference(WHOLE, WHOLE_DOMAIN))
        with pytest.raises(ArgumentError, match="one column"):
            read_values(relation)
    with open_column(f"duckdb:///{tmp_path / 'rows.duckdb'}", "a", table="rows_") as source:
        same_ranks(source.ranked(FLOAT_DOMAIN), reference(FLOATS, FLOAT_DOMAIN))


POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")


BOUNDS = ("--lower", "0", "--upper", "9")
DUCKDB = {
    "VARCHAR": "'1'", "INTERVAL": "INTERVAL 1 DAY", "STRUCT(a INTEGER)": "{'a': 1}", "BIT": "'1'",
    "ENUM('POINT')": "'POINT'", "INTEGER[]": "[1]", "INTEGER[1]": "[1]", "UUID": "uuid()", "BLOB": "'x'", "JSON": "'1'",
    "MAP(INTEGER, INTEGER)": "MAP {1: 1}", "TIME": "'10:00:00'",
}  # fmt: skip


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", DUCKDB)
def test_types_of_duckdb_are_checked_before_paying(tmp_path, pay, kind):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        connection.execute(f"INSERT INTO t SELECT {DUCKDB[kind]} FROM range(50)")
        with pytest.raises(ArgumentError, match="column: 'x'"):
            quantile(connection.table("t"), q=0.5, lower=0, upper=9, epsilon=1.0, spender=pytest.fail)
    status, said, left = pay(f"duckdb:///{tmp_path / 'x.duckdb'}", "--table", "t", *BOUNDS)
    assert (status, left) == (2, 3.0)
    assert "'x'" in said


def test_a_declared_kind_reads_the_cells_of_sqlite_as_a_file_does(tmp_path):
    url = laws.sqlite_table(tmp_path / "x.db", "INTEGER", [1.5, "x", b"12", "\uff17", None, 2])
    for declared, want in (
        ({"kind": "number"}, [1.5, 7, 2]),
        ({"kind": "integer"}, [7, 2]),
        ({"kind": "boolean", "true_values": [2], "false_values": ["x"]}, [0, 1]),
        ({}, [2]),
    ):
        with open_column(url, "x", table="t", **declared) as source:
            assert source.ranked(FLOAT_DOMAIN if declared.get("kind") == "number" else WHOLE_DOMAIN).total == len(want)
            if declared:
                assert [float(cell) for chunk in source.chunks() for cell in chunk if cell == cell] == want
    with pytest.raises(ArgumentError, match="no such column: 'y'"):
        open_column(url, "y", table="t", kind="number").__enter__()


@pytest.mark.parametrize("kind", ["INTERVAL", "POINT", "BLOB", "INTEGER[]", "TEXT", "anything", ""])
def test_types_of_sqlite_are_checked_before_paying(tmp_path, pay, kind):
    url = laws.sqlite_table(tmp_path / "x.db", kind if kind.isalpha() or not kind else f'"{kind}"', ["1"] * 50)
    status, said, left = pay(url, "--table", "t", *BOUNDS)
    assert (status, left) == (2, 3.0)
    assert "'x'" in said


@pytest.mark.full
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_time_stamps_of_postgresql_with_a_zone_are_in_utc():
    import sqlalchemy as sa

    stamps = "'2024-07-01 12:00:00+02' AS zoned, TIMESTAMP '2024-07-01 10:00:00' AS plain"
    with sa.create_engine(POSTGRES).begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS stamps"))
        connection.execute(sa.text(f"CREATE TABLE stamps AS SELECT TIMESTAMPTZ {stamps}".replace(":", "\\:")))
    for column, zone in (("zoned", "UTC"), ("plain", None)):
        with open_column(POSTGRES, column, table="stamps") as source:
            assert (source.zone, source.dtype) == (zone, np.dtype("datetime64[us]"))
            days = Column(source, lower="2024-01-01", upper="2025-01-01", granularity=np.timedelta64(1, "h"))
            (code,) = days.ranked().window(1, 1).codes.tolist()
            assert days.domain.decode(code) == np.datetime64("2024-07-01T10")


@pytest.mark.full
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_types_of_postgresql_are_checked_before_paying(pay):
    import sqlalchemy as sa

    engine = sa.create_engine(POSTGRES)
    odd = {
        "TEXT": "'1'", "INTERVAL": "'1 day'", "UUID": "gen_random_uuid()", "INTEGER[]": "'{1}'",
        "MONEY": "'1'", "JSON": "'1'", "BYTEA": "'x'", "INT4RANGE": "'[1,2)'", "POINT": "'(1,2)'", "OID": "1",
        "TIME": "'1:00'",
    }  # fmt: skip
    for kind, cell in odd.items():
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS refused"))
            connection.execute(sa.text(f"CREATE TABLE refused (x {kind})"))
            connection.execute(sa.text(f"INSERT INTO refused VALUES ({cell.replace(':', chr(92) + ':')})"))
        status, said, left = pay(POSTGRES, "--table", "refused", *BOUNDS)
        assert (kind, status, left) == (kind, 2, 3.0), said
        assert "'x'" in said, (kind, said)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE refused"))
    engine.dispose()
