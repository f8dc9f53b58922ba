"""Parquet files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from dpselect.errors import StudyError, missing_extra
from dpselect.study.cells import arrow_cells
from dpselect.study.sources.table import SOURCES, Table

__all__ = ["open_parquet"]


@SOURCES.register(".parquet")
def open_parquet(source: str, folder: Path, key: str) -> Table:
    """A Parquet file; needs pyarrow."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    path = folder / source
    names: tuple[str, ...] = ()
    with suppress(ValueError):  # an error of Arrow
        names = tuple(parquet.read_schema(path).names)
    if not names:
        raise StudyError(f"{key} is not a readable Parquet file")

    def read() -> dict[str, Any]:
        table = parquet.read_table(path)
        return {name: arrow_cells(table.column(name)) for name in names}

    return Table(names, read)
