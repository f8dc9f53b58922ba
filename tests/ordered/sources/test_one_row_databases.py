"""No cell of one row in a database changes how the others are read."""

from __future__ import annotations

import functools
import os

import pytest

from tests.ordered.sources import column_laws as laws
from tests.ordered.sources.one_row_cases import ordinary

POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")


SQLITE = {
    **dict.fromkeys(("INTEGER", "BIGINT", "smallint", "INT8"), "i"),
    **dict.fromkeys(("REAL", "DOUBLE PRECISION", "FLOAT", "NUMERIC(10, 2)", "DECIMAL"), "f"),
    **dict.fromkeys(("DATE", "DATETIME", "TIMESTAMP"), "M"),
    **dict.fromkeys(("TEXT", "VARCHAR(20)", "TEXT COLLATE NOCASE", "CHAR(9)"), "T"),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", SQLITE)
def test_sqlite(tmp_path, kind, every):
    """A column of SQLite holds anything, regardless of its type."""
    import sqlite3

    odd = [None, *laws.TEXTS, *laws.REAL, *laws.WHOLE, b"\xff", b"", b"low", "99999-01-01", "-4713-01-01"]
    few = [None, "x", "1e400", "low", "LOW", "now", "9" * 5000, 1e308, float("inf"), 2**63 - 1, -(2**63), b"\xff"]
    for public in laws.bounds_for(SQLITE[kind])[: None if every else 1]:
        rows = [str(row) if SQLITE[kind] == "M" else row for row in ordinary(SQLITE[kind])]
        url = laws.sqlite_table(tmp_path / "x.db", kind, rows)
        before = laws.ranks_of_table(url, public)
        assert sum(before[1].values()) > 0
        connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        for cell in odd if every else few:
            try:
                connection.execute("INSERT INTO t VALUES (?)", [cell])
            except (OverflowError, UnicodeEncodeError):
                continue
            laws.at_most_one_more(before, laws.ranks_of_table(url, public))
            connection.execute("DELETE FROM t WHERE rowid = last_insert_rowid()")
        connection.close()


DUCKDB = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "i"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(18,3)", "DECIMAL(38,0)", "FLOAT", "DOUBLE"), "f"),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"), "M"),
    **dict.fromkeys(("VARCHAR", "VARCHAR COLLATE NOCASE", "ENUM('low', 'middle', 'high', 'other', 'LOW')"), "T"),
}
EXTREME = {
    "i": ["NULL", *(str(k) for k in (*laws.WHOLE, -(2**127), 2**127 - 1))],
    "f": ["NULL", "'nan'", "'infinity'", "'-infinity'", "1e308", "5e-324", "-0.0", *map(str, (2**127, 2**128 - 1))],
    "M": [
        "NULL", "'infinity'", "'-infinity'", "'epoch'", "'0001-01-01'", "'1677-09-22'", "'2262-04-11 23:47:16.854775'",
        "'4713-01-01 BC'", "'5874897-12-31'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'294276-12-31 23:59:59.9999'",
        "'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54.775806'", "'294247-01-10'",
    ],
    "T": ["NULL", "''", "'LOW'", "'low '", "'Low'", "chr(128512)", "repeat('a', 140000)", "'it''s'"],
}  # fmt: skip


def one_row_more(execute, read, code, every, more=()):
    """Insert each extreme that the type can hold, and take it out again."""
    for public in laws.bounds_for(code)[: None if every else 1]:
        execute("DELETE FROM t")
        assert execute("INSERT INTO t VALUES " + ", ".join(f"('{row}', 0)" for row in ordinary(code)))
        before = read(public)
        assert sum(before[1].values()) > 0
        tried = 0
        for cell in (*EXTREME[code], *more):
            if execute(f"INSERT INTO t VALUES ({cell}, 1)"):
                laws.at_most_one_more(before, read(public))
                tried += 1
                assert execute("DELETE FROM t WHERE added = 1")
        assert tried > 1


@pytest.mark.cases(1)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", DUCKDB)
def test_duckdb(tmp_path, kind, every):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "x.duckdb"

    def execute(statement):
        try:
            connection.execute(statement)
        except (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException):
            return False
        return True

    def read(public):
        return laws.ranks(connection.table("t").project("x"), **public)

    with duckdb.connect(str(path)) as connection:
        execute(f"CREATE TABLE t (x {kind}, added INTEGER)")
        one_row_more(execute, read, DUCKDB[kind], every)
        execute(f"INSERT INTO t VALUES ({EXTREME[DUCKDB[kind]][0]}, 1)")
        public = laws.bounds_for(DUCKDB[kind])[0]
        by_relation = read(public)
    assert laws.ranks_of_table(f"duckdb:///{path}", public) == by_relation


@pytest.mark.full
def test_duckdb_reads_moments_of_arrow_that_microseconds_do_not_hold():
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    with duckdb.connect() as connection:
        for unit in ("s", "ms", "us", "ns"):
            found = []
            for ticks in ([0] * 50, *([*[0] * 50, tick] for tick in laws.WHOLE[:10])):
                connection.register("t", pa.table({"x": pa.array(ticks, pa.int64()).view(pa.timestamp(unit))}))
                found.append(laws.ranks(connection.table("t"), lower="1960-01-01", upper="2026-01-01"))
            for after in found[1:]:
                laws.at_most_one_more(found[0], after)


POSTGRESQL = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), "i"),
    **dict.fromkeys(("REAL", "DOUBLE PRECISION", "NUMERIC", "NUMERIC(12, 2)"), "f"),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP(0)", "TIMESTAMP WITH TIME ZONE"), "M"),
    **dict.fromkeys(("TEXT", "VARCHAR(9)", "CHAR(9)", "grade"), "T"),
}


@pytest.mark.cases(1)
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", POSTGRESQL)
def test_postgresql(kind, every):
    import sqlalchemy as sa

    engine = sa.create_engine(POSTGRES)

    def execute(statement):
        try:
            with engine.begin() as connection:
                connection.execute(sa.text(statement.replace(":", "\\:")))
        except sa.exc.DBAPIError:
            return False
        return True

    try:
        execute("CREATE TYPE grade AS ENUM ('low', 'middle', 'high', 'other', 'LOW', '')")
        execute("DROP TABLE IF EXISTS t")
        assert execute(f"CREATE TABLE t (x {kind}, added INTEGER)")
        code = POSTGRESQL[kind]
        more = [f"CAST('{cell}' AS NUMERIC)" for cell in ("1e400", "-1e400", "1e-400", "1e130000", "NaN", "Infinity")]
        read = functools.partial(laws.ranks_of_table, POSTGRES)
        one_row_more(execute, read, code, every, more if code == "f" else ())
    finally:
        execute("DROP TABLE t")
        engine.dispose()
