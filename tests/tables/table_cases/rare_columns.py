"""Columns of Parquet and of databases whose types are seldom seen."""

from __future__ import annotations

from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path

from tests.tables.table_cases.case import NAN, Case, seconds
from tests.tables.table_cases.databases import duckdb, sqlite
from tests.tables.table_cases.frames import arrow
from tests.tables.table_cases.parquet import TEXT, parquet
from tests.tables.table_cases.rare_types import extension


def folder(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    for year, cells in (("2023", [1, 2]), ("2024", [3.5])):
        part = path / f"year={year}"
        part.mkdir(parents=True)
        pyarrow.parquet.write_table(pa.table({"id": pa.nulls(len(cells), pa.string()), "x": cells}), part / "0.parquet")
    (path / "_SUCCESS").write_bytes(b"")
    (path / ".0.parquet.crc").write_bytes(b"crc")


def twice(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([1.0]), pa.array([2.0])], names=["id", "x", "x"])
    pyarrow.parquet.write_table(table, path)


def view(path: Path) -> None:
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE s (id TEXT, x INTEGER)")
        connection.execute("INSERT INTO s VALUES ('r', 3), ('r', NULL)")
        connection.execute("CREATE VIEW t AS SELECT id, x * 1.5 AS x FROM s")
    connection.close()


CASES = (
    parquet(
        "decimals of 256 bits in a file",
        "dask/fastparquet#48",
        lambda: arrow([Decimal("0.1"), None], "decimal256", 60, 1),
        (0.1, NAN),
    ),
    parquet(
        "decimals of 32 bits in a file",
        "pola-rs/polars#22946",
        lambda: arrow([Decimal("100.1"), None], "decimal32", 4, 1),
        (100.1, NAN),
    ),
    parquet(
        "stamps in nanoseconds",
        "StarRocks/starrocks#73674",
        lambda: arrow([1, -1, None], "timestamp", "ns"),
        (1e-9, -1e-9, NAN),
        kind="date",
    ),
    parquet(
        "stamps in milliseconds of a zone",
        "apache/arrow#1054",
        lambda: arrow([1500], "timestamp", "ms", "America/Chicago"),
        (1.5,),
        kind="date",
    ),
    parquet(
        "identities in a file",
        "apache/parquet-java#1641",
        lambda: extension("uuid", [b"0123456789abcdef"], "binary", 16),
        "no cell that can be read|needs categories|no order|columns of their own",
    ),
    parquet(
        "bytes of one length",
        "apache/spark#57003",
        lambda: arrow([b"1.50", b"2.25"], "binary", 4),
        (1.5, 2.25),
        refused=TEXT,
    ),
    parquet(
        "durations in a file",
        "pandas-dev/pandas#52843",
        lambda: arrow([timedelta(minutes=90), None], "duration", "us"),
        (5400, NAN),
        kind="duration",
        refused={"quantile": "duration"},
    ),
    parquet(
        "times of the day in a file",
        "duckdb/duckdb#23767",
        lambda: arrow([time(1)], "time64", "us"),
        "no cell that can be read|needs categories|no order|columns of their own",
    ),
    parquet(
        "a dictionary of decimals",
        "apache/arrow#6284",
        lambda: arrow([Decimal("1.50"), None, Decimal("1.50")], "decimal128", 9, 2).dictionary_encode(),
        (1.5, NAN, 1.5),
    ),
    parquet(
        "pages of one row with an index",
        "duckdb/duckdb#15473",
        lambda: arrow([*range(40), None], "int32"),
        (*map(float, range(40)), NAN),
        how={"write_page_index": True, "data_page_size": 1, "row_group_size": 7},
    ),
    parquet(
        "doubles by streams of bytes",
        "apache/arrow#39790",
        lambda: arrow([1.5, None, -0.0], "float64"),
        (1.5, NAN, -0.0),
        how={"use_dictionary": False, "column_encoding": {"x": "BYTE_STREAM_SPLIT"}, "compression": "zstd"},
    ),
    parquet(
        "integers by differences",
        "NVIDIA/cudf#3053",
        lambda: arrow([2**62, -5, None], "int64"),
        (2.0**62, -5, NAN),
        how={"use_dictionary": False, "column_encoding": {"x": "DELTA_BINARY_PACKED"}, "compression": "gzip"},
    ),
    Case(
        name="two columns of one name in Parquet",
        thread="pola-rs/polars#27393",
        make=twice,
        want="more than one",
        file="t.parquet",
    ),
    Case(name="a folder of two years", thread="apache/arrow#11826", make=folder, want=(1, 2, 3.5), file="t"),
    sqlite(
        "bytes of a number", "operator-framework/operator-registry#744", "INTEGER", [b"12", 3, b"\xff"], (NAN, 3, NAN)
    ),
    sqlite(
        "bytes of a number in a column of doubles",
        "operator-framework/operator-registry#744",
        "REAL",
        [b"12", 3.5],
        (NAN, 3.5),
    ),
    sqlite(
        "numbers with letters behind in a database",
        "tursodatabase/turso#5502",
        "DOUBLE",
        ["23g", "1998-12-01", ".DEF", 2],
        (NAN, NAN, NAN, 2),
    ),
    sqlite(
        "text of blanks around a number",
        "duckdb/duckdb-sqlite#18",
        "INTEGER",
        [" 12 ", "1e2", "7.0", "x"],
        (12, 100, 7, NAN),
    ),
    sqlite(
        "integers without a sign in SQLite",
        "diesel-rs/diesel#1907",
        "UNSIGNED BIG INT",
        [1, 2],
        (1, 2),
        refused={"quantile": "UNSIGNED BIG INT"},
    ),
    sqlite("a type with its length", "stephencelis/SQLite.swift#1218", "DECIMAL(10,5)", [0.5, 2, None], (0.5, 2, NAN)),
    sqlite("booleans by their words in SQLite", "duckdb/duckdb-sqlite#53", "BOOLEAN", [True, False, None], (1, 0, NAN)),
    Case(
        name="a column that a view computes",
        thread="duckdb/duckdb-web#734",
        make=view,
        want=(4.5, NAN),
        file="t.db",
        table="t",
        by_kind=True,
    ),
    sqlite("long integers of SQLite", "duckdb/duckdb#222", "BIGINT", [2**53 + 1, -(2**63)], (2.0**53, -(2.0**63))),
    duckdb(
        "times of the day in a database",
        "duckdb/duckdb#23767",
        "TIME",
        ["'01:00:00'"],
        "no cell that can be read|which is not read",
    ),
    duckdb("bits", "duckdb/duckdb#17857", "BIT", ["'101'"], "holds bits|which is not read"),
    duckdb(
        "identities of a database",
        "ibis-project/ibis#8532",
        "UUID",
        ["uuid()"],
        "no cell that can be read|which is not read",
    ),
    duckdb("sums of integers", "Mause/duckdb_engine#649", "HUGEINT", ["12", "NULL"], (12, NAN)),
    duckdb(
        "small integers without a sign in a database",
        "Mause/duckdb_engine#329",
        "UTINYINT",
        ["255", "NULL", "0"],
        (255, NAN, 0),
    ),
    duckdb(
        "stamps in nanoseconds of a database",
        "duckdb/duckdb#6466",
        "TIMESTAMP_NS",
        ["'2024-01-01 00:00:00.5'", "NULL"],
        (seconds("2024-01-01") + 0.5, NAN),
        kind="date",
    ),
    duckdb(
        "stamps in seconds of a database",
        "duckdb/duckdb#6466",
        "TIMESTAMP_S",
        ["'2400-01-01 00:00:00'", "NULL"],
        (seconds("2400-01-01"), NAN),
        kind="date",
    ),
    duckdb("negative zeros of a database", "lemire/fast_double_parser#50", "DOUBLE", ["'-0.0'", "0.0"], (-0.0, 0.0)),
    duckdb(
        "text of numbers that are declared",
        "duckdb/duckdb#17220",
        "VARCHAR",
        ["'1.5'", "'1,994'", "' 7 '", "NULL"],
        (1.5, NAN, 7, NAN),
        by_kind=True,
    ),
    duckdb(
        "text of days that are declared",
        "duckdb/duckdb#13923",
        "VARCHAR",
        ["'2012-03-04'", "'4.3.2012'", "NULL"],
        (seconds("2012-03-04"), NAN, NAN),
        kind="date",
        by_kind=True,
    ),
    *(
        sqlite(
            f"text of numbers that are declared, in a column of {of or 'no type'}",
            "nurpax/sqlite-simple#98",
            of,
            [200, "1.5", "x", " 7 ", None],
            (200, 1.5, NAN, 7, NAN),
            by_kind=True,
        )
        for of in ("TEXT", "", "STRING")
    ),
    sqlite(
        "days that are declared, in a column of text",
        "zblesk/csv-to-sqlite#24",
        "TEXT",
        ["2012-03-04", "04.03.2012", None],
        (seconds("2012-03-04"), NAN, NAN),
        kind="date",
        by_kind=True,
    ),
)
