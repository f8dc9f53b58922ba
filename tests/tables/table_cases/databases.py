"""Databases: what a column of SQLite holds regardless of its type, numbers that are no doubles, infinities."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tests.tables.table_cases.case import NAN, Case, seconds

TEXT = {"quantile": "holds text"}


def sqlite(name: str, thread: str, of: str, cells: list[Any], want: Any, **more: Any) -> Case:
    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"CREATE TABLE t (id TEXT, x {of})")
            connection.executemany("INSERT INTO t VALUES ('r', ?)", [[cell] for cell in cells])

    return Case(name=name, thread=thread, make=write, want=want, file="t.db", table="t", **more)


def duckdb(name: str, thread: str, of: str, cells: list[str], want: Any, **more: Any) -> Case:
    rows = ", ".join(f"('r', {cell})" for cell in cells)

    def write(path: Path) -> None:
        import duckdb

        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t (id TEXT, x {of})")
            connection.execute(f"INSERT INTO t VALUES {rows}")

    return Case(name=name, thread=thread, make=write, want=want, file="t.duckdb", table="t", **more)


def postgres(name: str, thread: str, of: str, cells: list[str], want: Any, **more: Any) -> Case:
    """With the server that DPSELECT_TEST_POSTGRES names; the file holds the name of the table."""
    rows = ", ".join(f"('r', {cell})" for cell in cells)

    def write(path: Path) -> None:
        import psycopg

        with psycopg.connect(os.environ["DPSELECT_TEST_POSTGRES"], autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(f"CREATE TABLE {table} (id TEXT, x {of})")
            connection.execute(f"INSERT INTO {table} VALUES {rows}")

    table = "case_" + re.sub(r"\W", "_", name.lower())
    return Case(name=name, thread=thread, make=write, want=want, file="t.postgresql", table=table, **more)


CASES = (
    sqlite("text in a column of integers", "duckdb/duckdb-sqlite#15", "INTEGER", [1, "x", None, 3], (1, NAN, NAN, 3)),
    sqlite(
        "text of a number in a column of integers",
        "sqlitebrowser/sqlitebrowser#1832",
        "INTEGER",
        ["12", 3.0],
        (12, 3),
    ),
    sqlite(
        "places in a column of integers",
        "sqlitebrowser/sqlitebrowser#1874",
        "INTEGER",
        [1.5, 2],
        (1.5, 2),
        by_kind=True,
    ),
    sqlite(
        "places in a column of integers that are declared",
        "sqlitebrowser/sqlitebrowser#1874",
        "INTEGER",
        [1.5, 2],
        (NAN, 2),
        kind="integer",
    ),
    sqlite(
        "a serial number in a column of any name",
        "lazierthanthou/sqlite-manager#40",
        "NUMERIC",
        ["15E2621", 7],
        (float("inf"), 7),
    ),
    sqlite("text of numbers", "nurpax/sqlite-simple#98", "TEXT", [200, "1.5", "x"], (200, 1.5, NAN), refused=TEXT),
    sqlite("bytes in a column of numbers", "outerbase/studio#145", "REAL", [b"\xff", 2.5], (NAN, 2.5)),
    sqlite("doubles that are whole", "tursodatabase/turso#114", "REAL", [79, 0.5], (79, 0.5)),
    sqlite(
        "days as text",
        "zblesk/csv-to-sqlite#24",
        "DATE",
        ["2012-03-04", None, "x"],
        (seconds("2012-03-04"), NAN, NAN),
        kind="date",
    ),
    sqlite(
        "stamps as text",
        "duckdb/duckdb-sqlite#117",
        "TIMESTAMP",
        ["2012-03-04 05:06:07"],
        (seconds("2012-03-04T05:06:07"),),
        kind="date",
    ),
    sqlite(
        "seconds since 1970 in a column of days",
        "crawshaw/sqlitejdbc#5",
        "DATETIME",
        [1330833967, "2012-03-04"],
        (NAN, seconds("2012-03-04")),
        kind="date",
    ),
    sqlite(
        "days of Julius in a column of days",
        "antares-sql/antares#667",
        "DATETIME",
        [2459067.57491964, "2020-08-06"],
        (NAN, seconds("2020-08-06")),
        kind="date",
    ),
    duckdb(
        "integers of 128 bits",
        "ibis-project/ibis#6678",
        "HUGEINT",
        ["170141183460469231731687303715884105727", "NULL", "-1"],
        (2.0**127, NAN, -1),
    ),
    duckdb("decimals", "duckdb/duckdb#4102", "DECIMAL(12, 4)", ["2423432", "NULL", "0.1"], (2423432, NAN, 0.1)),
    duckdb(
        "decimals of 38 digits",
        "duckdb/duckdb#11890",
        "DECIMAL(38, 10)",
        ["0.1", "1234567890123456789.0123456789"],
        (0.1, 1234567890123456789.0123456789),
    ),
    duckdb("integers without a sign", "ybrs/riffq#49", "UBIGINT", ["18446744073709551615", "NULL"], (2.0**64, NAN)),
    duckdb(
        "infinities",
        "MaterializeInc/materialize#22264",
        "DOUBLE",
        ["'inf'", "'-inf'", "'nan'", "NULL", "1.5"],
        (float("inf"), float("-inf"), NAN, NAN, 1.5),
    ),
    duckdb(
        "singles",
        "duckdb/duckdb#3459",
        "FLOAT",
        ["1.5", "NULL", "0.1", "'inf'", "'nan'"],
        (1.5, NAN, float(np.float32(0.1)), math.inf, NAN),
    ),
    postgres(
        "singles of PostgreSQL",
        "duckdb/duckdb#3459",
        "REAL",
        ["1.5", "NULL", "0.1", "'Infinity'", "'NaN'"],
        (1.5, NAN, float(np.float32(0.1)), math.inf, NAN),
    ),
    sqlite(
        "booleans as text in a column of booleans",
        "duckdb/duckdb-sqlite#15",
        "BOOLEAN",
        ["true", "FALSE ", 1, 0, "t", None],
        (1, 0, 1, 0, NAN, NAN),
    ),
    sqlite(
        "infinities as text in a column of numbers",
        "lazierthanthou/sqlite-manager#40",
        "REAL",
        ["inf", "-Infinity", "+INF", "true", "nan", "0x10"],
        (math.inf, -math.inf, math.inf, 1, NAN, NAN),
    ),
    sqlite(
        "days that are none, and times without a day",
        "duckdb/duckdb-sqlite#117",
        "DATETIME",
        ["2012-02-30", "12:00", "2012-03-04T01:00+02:00", "0000-01-01", "now", *[" 2012-02-29"] * 30],
        (NAN, NAN, seconds("2012-03-03T23:00"), NAN, NAN, *[seconds("2012-02-29")] * 30),
        kind="date",
    ),
    duckdb("long integers", "owid/data-api#5", "BIGINT", ["9007199254740993", "NULL"], (2.0**53, NAN)),
    duckdb(
        "booleans",
        "stacksjs/bun-query-builder#1094",
        "BOOLEAN",
        ["true", "NULL", "false"],
        (1, NAN, 0),
    ),
    duckdb(
        "text of numbers", "duckdb/duckdb#17220", "VARCHAR", ["'1.5'", "'1,994'", "NULL"], (1.5, NAN, NAN), refused=TEXT
    ),
    duckdb(
        "an infinite day",
        "psycopg/psycopg#1251",
        "DATE",
        ["'infinity'", "'2024-01-01'", "NULL"],
        (NAN, seconds("2024-01-01"), NAN),
        kind="date",
    ),
    duckdb(
        "an infinite time stamp",
        "n8n-io/n8n#8912",
        "TIMESTAMP",
        ["'-infinity'", "'2024-01-01 00:00:00.5'"],
        (NAN, seconds("2024-01-01") + 0.5),
        kind="date",
    ),
    duckdb(
        "time stamps in a time zone",
        "duckdb/duckdb#6466",
        "TIMESTAMPTZ",
        ["'2024-01-01 00:00:00+02'"],
        (seconds("2024-01-01") - 7200,),
        kind="date",
    ),
    duckdb(
        "durations",
        "apache/arrow#551",
        "INTERVAL",
        ["INTERVAL 90 MINUTE", "NULL"],
        (5400, NAN),
        kind="duration",
        refused={"quantile": "INTERVAL, which is not read"},
    ),
    duckdb(
        "lists in cells",
        "pandas-dev/pandas#9381",
        "INTEGER[]",
        ["[1]", "[2]"],
        "no cell that can be read|which is not read",
    ),
    duckdb(
        "an enumeration",
        "pola-rs/polars#19389",
        "ENUM('a', 'b')",
        ["'a'", "'b'", "'a'", "NULL"],
        (2, 1),
        kind="category",
        categories=("a", "b"),
    ),
    duckdb(
        "categories that differ by case",
        "datasets/country-codes#38",
        "VARCHAR",
        ["'NA'", "'na'", "'NA'"],
        (2,),
        kind="category",
        categories=("NA",),
    ),
    duckdb(
        "blanks around a category",
        "tidyverse/readr#823",
        "VARCHAR",
        ["'low '", "'low'"],
        (2,),
        kind="category",
        categories=("low",),
    ),
    duckdb(
        "a word in two forms of Unicode",
        "",
        "VARCHAR",
        ["'K' || chr(246) || 'ln'", "'Ko' || chr(776) || 'ln ' || chr(160)", "'Koln'"],
        (2,),
        kind="category",
        categories=("K\u00f6ln",),
    ),
    duckdb(
        "booleans for categories",
        "tidyverse/readr#672",
        "VARCHAR",
        ["'TRUE'", "'true'", "'1'"],
        (3,),
        kind="category",
        categories=("true",),
    ),
    postgres(
        "numeric with NaN and infinities",
        "martin-georgiev/postgresql-for-doctrine#734",
        "NUMERIC",
        ["'NaN'", "NULL", "0.1", "1e307"],
        (NAN, NAN, 0.1, 1e307),
    ),
    postgres(
        "numeric beyond all doubles",
        "martin-georgiev/postgresql-for-doctrine#733",
        "NUMERIC",
        ["1e400", "2"],
        (float("inf"), 2),
    ),
    postgres(
        "numeric at the ends of doubles",
        "martin-georgiev/postgresql-for-doctrine#733",
        "NUMERIC",
        ["1.7976931348623158e308", "1.797693134862315808e308", "-1e400", "1e-400", "2.4e-324", "2.5e-324", "1e-310"],
        (1.7976931348623157e308, float("inf"), float("-inf"), 0, 0, 5e-324, 1e-310),
    ),
    postgres(
        "numeric that is infinite",
        "martin-georgiev/postgresql-for-doctrine#734",
        "NUMERIC",
        ["'Infinity'", "'-Infinity'"],
        (float("inf"), float("-inf")),
    ),
    *(
        make(
            "booleans and numbers as words of categories",
            "tidyverse/readr#672",
            of,
            ["'TRUE'", "'true '", "'1'", "'1.00'", "'1e0'", "'2'", "NULL", "'yes'"],
            (5, 1),
            kind="category",
            categories=("True", "2"),
        )
        for make, of in ((duckdb, "VARCHAR"), (postgres, "TEXT"))
    ),
    sqlite(
        "booleans and numbers as words of categories",
        "tidyverse/readr#672",
        "TEXT",
        ["TRUE", "true ", 1, 1.0, "1e0", "2", None, "yes"],
        (5, 1),
        kind="category",
        categories=("True", "2"),
    ),
    sqlite(
        "categories in a column of integers",
        "duckdb/duckdb-sqlite#15",
        "INTEGER",
        [1, "TRUE", 2, 2.5, b"2.50", None],
        (2, 1, 1),
        kind="category",
        categories=(1, 2, 2.5),
    ),
    postgres(
        "doubles with NaN",
        "martin-georgiev/postgresql-for-doctrine#734",
        "DOUBLE PRECISION",
        ["'NaN'", "'-Infinity'", "1.5", "NULL"],
        (NAN, float("-inf"), 1.5, NAN),
    ),
    postgres("long integers of PostgreSQL", "owid/data-api#5", "BIGINT", ["9007199254740993", "NULL"], (2.0**53, NAN)),
    postgres(
        "an endless day of PostgreSQL",
        "psycopg/psycopg#1251",
        "DATE",
        ["'infinity'", "'2024-01-01'", "NULL"],
        (NAN, seconds("2024-01-01"), NAN),
        kind="date",
    ),
    postgres(
        "an endless time stamp of PostgreSQL",
        "dbcodeio/public#482",
        "TIMESTAMP",
        ["'-infinity'", "'2024-01-01 00:00:00.5'"],
        (NAN, seconds("2024-01-01") + 0.5),
        kind="date",
    ),
    postgres(
        "a time zone of PostgreSQL",
        "duckdb/duckdb#6466",
        "TIMESTAMPTZ",
        ["'2024-01-01 00:00:00+02'"],
        (seconds("2024-01-01") - 7200,),
        kind="date",
    ),
    postgres(
        "booleans of PostgreSQL",
        "",
        "BOOLEAN",
        ["true", "NULL", "false"],
        (1, NAN, 0),
    ),
    postgres(
        "text of PostgreSQL for categories",
        "datasets/country-codes#38",
        "TEXT",
        ["'NA'", "'na'", "NULL"],
        (1,),
        kind="category",
        categories=("NA",),
    ),
)
