"""Parquet and Feather files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dpselect.errors import StudyError, missing_extra
from dpselect.study.cells import arrow_cells
from dpselect.study.sources.table import SOURCES, Origin, Table

__all__ = ["open_feather", "open_parquet"]


@SOURCES.register(".parquet")
def open_parquet(origin: Origin) -> Table:
    """A Parquet file; needs pyarrow."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    names: tuple[str, ...] = ()
    with suppress(ValueError):  # an error of Arrow
        names = tuple(parquet.read_schema(origin.path).names)
    if not names:
        raise StudyError(f"{origin.key} is not a readable Parquet file")

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        return _cells(parquet.read_table(origin.path, columns=list(wanted)), wanted)

    return Table(names, read)


@SOURCES.register(".feather")
def open_feather(origin: Origin) -> Table:
    """A Feather file (version 2, which is the file format of Arrow); needs pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing_extra("parquet", "reading Feather") from None
    names: tuple[str, ...] = ()
    with suppress(ValueError), pa.OSFile(str(origin.path)) as file:
        names = tuple(pa.ipc.open_file(file).schema.names)
    if not names:
        raise StudyError(f"{origin.key} is not a readable Feather file (version 2)")

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        with pa.OSFile(str(origin.path)) as file:
            return _cells(pa.ipc.open_file(file).read_all(), wanted)

    return Table(names, read)


def _cells(table: Any, wanted: Sequence[str]) -> dict[str, Any]:
    return {name: arrow_cells(table.column(name)) for name in wanted}
