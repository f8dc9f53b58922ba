"""Parquet: decimals, dictionaries, time stamps of 96 bits, types without a sign, what is nested."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.tables.table_cases.case import NAN, Case, seconds
from tests.tables.table_cases.frames import arrow, arrow_dictionary

TEXT = {"quantile": "needs categories"}


def parquet(
    name: str, thread: str, column: Callable[[], Any], want: Any, *, how: dict[str, Any] | None = None, **more: Any
) -> Case:
    def write(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        pyarrow.parquet.write_table(
            pa.table({"id": pa.nulls(len(column()), pa.string()), "x": column()}), path, **how or {}
        )

    return Case(name=name, thread=thread, make=write, want=want, file="t.parquet", **more)


def stamps(*texts: str | None) -> Any:
    cells = [None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts]
    return arrow(cells, "timestamp", "us", "UTC")


def naive(*texts: str) -> Any:
    return arrow([datetime.fromisoformat(text) for text in texts], "timestamp", "us")


OLD = {"use_deprecated_int96_timestamps": True}

CASES = (
    parquet(
        "integers with a missing one",
        "apache/arrow#12416",
        lambda: arrow([7753285016841556620, None], "int64"),
        (7753285016841556620.0, NAN),
    ),
    parquet(
        "decimals of 38 digits",
        "dask/fastparquet#48",
        lambda: arrow([Decimal("0.1"), None], "decimal128", 38, 1),
        (0.1, NAN),
    ),
    parquet(
        "decimals of few digits",
        "NVIDIA/cudf#3053",
        lambda: arrow([Decimal("3.50"), Decimal("-4.30")], "decimal128", 5, 2),
        (3.5, -4.3),
    ),
    parquet(
        "small integers without a sign",
        "apache/arrow-rs#7040",
        lambda: arrow([255, 128, None], "uint8"),
        (255, 128, NAN),
    ),
    parquet(
        "long integers without a sign",
        "deephaven/deephaven-core#8350",
        lambda: arrow([2**64 - 1, 1], "uint64"),
        (2.0**64, 1),
    ),
    parquet("halves", "pola-rs/polars#19265", lambda: arrow([0.5, 1.5], "float16"), (0.5, 1.5)),
    parquet("booleans", "owid/data-api#5", lambda: arrow([True, None, False], "bool_"), (1, NAN, 0)),
    parquet(
        "a dictionary of numbers", "apache/arrow#6284", lambda: arrow_dictionary([5, None, 7], "int64"), (5, NAN, 7)
    ),
    parquet(
        "a dictionary of text",
        "apache/arrow#863",
        lambda: arrow_dictionary(["5", None, "x"], "string"),
        (5, NAN, NAN),
        refused=TEXT,
    ),
    parquet("text of numbers", "apache/arrow#4184", lambda: arrow(["1.5", "NULL"], "string"), (1.5, NAN), refused=TEXT),
    parquet(
        "bytes of numbers",
        "apache/arrow#36036",
        lambda: arrow([b"1.5", b"x"], "binary"),
        (1.5, NAN),
        refused={"quantile": "needs categories"},
    ),
    parquet(
        "nothing but missing cells",
        "dask/dask#5252",
        lambda: arrow([None], "null"),
        "no cell that can be read|needs categories|columns of their own",
    ),
    parquet(
        "lists in cells",
        "apache/arrow#2691",
        lambda: arrow([[1], [2]], "list_", arrow([], "int64").type),
        "no cell that can be read|no order|needs categories|columns of their own",
    ),
    parquet(
        "tables in cells",
        "NVIDIA/cudf-spark#2271",
        lambda: arrow([{"a": 1}], "struct", [("a", arrow([], "int64").type)]),
        "no cell that can be read|no order|needs categories|columns of their own",
    ),
    parquet(
        "stamps of 96 bits",
        "Eventual-Inc/Daft#1215",
        lambda: naive("2006-01-02T07:04:05", "1969-12-31T23:59:59"),
        (seconds("2006-01-02T07:04:05"), -1),
        how=OLD,
        kind="date",
    ),
    parquet(
        "stamps of 96 bits beyond nanoseconds",
        "StarRocks/starrocks#22355",
        lambda: naive("9999-12-31T23:59:59", "0001-01-01T00:00:00"),
        (seconds("9999-12-31T23:59:59"), seconds("0001-01-01")),
        how=OLD,
        kind="date",
    ),
    parquet(
        "the year 9999 beside others",
        "apache/datafusion#1360",
        lambda: naive("9999-12-31T02:00", "2021-06-09T03:02:37"),
        (seconds("9999-12-31T02:00"), seconds("2021-06-09T03:02:37")),
        how=OLD,
        kind="date",
    ),
    parquet(
        "stamps in a time zone",
        "Altinity/ice#49",
        lambda: stamps("2023-08-05T17:00", None),
        (seconds("2023-08-05T17:00"), NAN),
        kind="date",
    ),
    parquet(
        "stamps without a time zone", "StarRocks/starrocks#73674", lambda: naive("1970-01-01T00:00"), (0,), kind="date"
    ),
    parquet(
        "days beyond nanoseconds",
        "apache/arrow#36084",
        lambda: arrow([date(2400, 1, 1), None], "date32"),
        (seconds("2400-01-01"), NAN),
        kind="date",
    ),
    parquet(
        "a time zone in milliseconds",
        "apache/arrow#1054",
        lambda: arrow([1000, None], "timestamp", "ms", "Europe/Paris"),
        (1, NAN),
        kind="date",
    ),
    parquet(
        "categories in a dictionary",
        "pola-rs/polars#13918",
        lambda: arrow_dictionary(["a", None, "b"], "string"),
        (1, 1),
        kind="category",
        categories=("a", "b"),
    ),
    parquet(
        "text for categories",
        "pola-rs/polars#14709",
        lambda: arrow(["a", "b", "a", None], "large_string"),
        (2, 1),
        kind="category",
        categories=("a", "b"),
    ),
    parquet(
        "doubles for categories",
        "astronomy-commons/lsdb#27",
        lambda: arrow([1.0, 2.5, None, 1.0], "float64"),
        (2, 1),
        kind="category",
        categories=("1", "2.50"),
    ),
    parquet(
        "bytes for categories",
        "apache/spark#1855",
        lambda: arrow([b"a", b"b", None, b"\xff"], "binary"),
        (1, 1),
        kind="category",
        categories=("a", "b"),
    ),
)
