"""Parquet and Feather files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dpselect.errors import StudyError, missing_extra
from dpselect.study.sources.table import SOURCES, Origin, Table
from dpselect.tables import arrow_cells

__all__ = ["open_feather", "open_parquet"]


@SOURCES.register(".parquet")
def open_parquet(origin: Origin) -> Table:
    """A Parquet file; needs pyarrow."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    schema: Any = None
    with suppress(ValueError):  # an error of Arrow
        schema = parquet.read_schema(origin.path)
    if not schema:
        raise StudyError(f"{origin.key} is not a readable Parquet file")

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        # of 96 bits, as Spark writes them, nanoseconds hold the years 1678 to 2262 only, and milliseconds all
        table = parquet.read_table(origin.path, columns=list(wanted), coerce_int96_timestamp_unit="ms")
        return _cells(table, wanted)

    return Table(tuple(schema.names), read, _types(schema))


@SOURCES.register(".feather")
def open_feather(origin: Origin) -> Table:
    """A Feather file (version 2, which is the file format of Arrow); needs pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing_extra("parquet", "reading Feather") from None
    schema: Any = None
    with suppress(ValueError), pa.OSFile(str(origin.path)) as file:
        schema = pa.ipc.open_file(file).schema
    if not schema:
        raise StudyError(f"{origin.key} is not a readable Feather file (version 2)")

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        with pa.OSFile(str(origin.path)) as file:
            return _cells(pa.ipc.open_file(file).read_all(), wanted)

    return Table(tuple(schema.names), read, _types(schema))


def _cells(table: Any, wanted: Sequence[str]) -> dict[str, Any]:
    return {name: arrow_cells(table.column(name)) for name in wanted}


def _types(schema: Any) -> dict[str, str]:
    import pyarrow.types as of

    kinds = {
        "number": (of.is_integer, of.is_floating, of.is_decimal, of.is_boolean),
        "date": (of.is_date, of.is_timestamp),
        "duration": (of.is_duration,),
        "category": (of.is_string, of.is_large_string, of.is_dictionary),
    }
    return {
        column.name: next((kind for kind, tests in kinds.items() if any(test(column.type) for test in tests)), "none")
        for column in schema
    }
