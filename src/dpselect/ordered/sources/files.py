"""Columns of files, read a batch at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.ordered.sources.adapters import DataColumn, TextColumn
from dpselect.ordered.sources.blocks import Block, block_of, number_type
from dpselect.ordered.sources.opening import ColumnRequest, column_source
from dpselect.ordered.sources.plain_lists import hardly_any, number_in
from dpselect.storage import CsvForm, arrow_texts, csv_header, csv_rows, text_type

__all__ = ["is_csv", "open_csv", "open_parquet"]

_BLOCK = 1 << 16


def is_csv(where: str) -> bool:
    """Whether this is a file without types."""
    return "://" not in where and Path(where).suffix.lower() in (".csv", ".txt")


@column_source(".parquet")
@contextmanager
def open_parquet(path: str, request: ColumnRequest) -> Iterator[DataColumn | TextColumn]:
    """A column of a Parquet file or folder, read a batch at a time. Needs pyarrow."""
    column, text, progress = request.column, request.text, request.progress
    try:
        import pyarrow as pa
        import pyarrow.dataset as dataset
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    table = None
    with suppress(pa.ArrowException, OSError):
        table = dataset.dataset(str(path), format="parquet")
    if table is None:
        raise ContentError(f"{path} cannot be read as Parquet")
    if column not in table.schema.names:
        raise ArgumentError(f"column: there is no {column!r} in {path}")
    kind = table.schema.field(column).type
    if text and not text_type(kind, whole=True):
        raise ArgumentError(f"column: {column!r} in {path} holds {kind}, which has no categories")
    if not text and not number_type(kind):
        what = "needs categories" if text_type(kind) else "has no order here"
        raise ArgumentError(f"column: {column!r} in {path} holds {kind}, which {what}")

    def batches() -> Iterator[Any]:
        # buffered: by default a whole column of a row group is held, and files may be one row group
        buffered = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        scanner = table.scanner(
            columns=[column],
            batch_size=1 << 17,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=buffered,
        )
        with suppress(pa.ArrowException, OSError):  # whose message may quote the data
            for batch in scanner.to_batches():
                yield batch.column(0)
            return
        raise ContentError(f"column {column!r} of {path} cannot be read")

    if text:
        yield TextColumn(lambda: ([_plain(cell) for cell in arrow_texts(batch)] for batch in batches()), progress)
    else:
        yield DataColumn(block_of(pa.array([], kind))[0].dtype, lambda: map(block_of, batches()), progress=progress)


def _plain(cell: Any) -> Any:
    """Whole numbers and truth values as texts, which categories of a file are."""
    return str(cell).lower() if isinstance(cell, bool) else str(cell) if isinstance(cell, int) else cell


@column_source(".csv")
@column_source(".txt")
@contextmanager
def open_csv(path: str, request: ColumnRequest) -> Iterator[DataColumn | TextColumn]:
    """A column of a CSV file with a header, read a block at a time as doubles, or as moments in microseconds.

    A cell that is no number, or no moment, is missing.
    """
    form, read = request.form, _moment if request.dates else number_in
    kind = np.dtype("datetime64[us]" if request.dates else np.float64)
    place = _place(Path(path), request.column, form)
    if request.look and not request.text:
        _look(path, request, place)

    def chunks() -> Iterator[Block]:
        return ((np.array([read(cell) for cell in block], dtype=kind), None) for block in _cells(path, place, form))

    if request.text:
        yield TextColumn(lambda: _cells(path, place, form), request.progress)
    else:
        yield DataColumn(kind, chunks, progress=request.progress)


def _look(path: str, request: ColumnRequest, place: int) -> None:
    """Look at the first rows whether a column holds numbers, or moments; empty cells and "nan" do not count.

    Raises `ContentError` where less than a tenth of them are. That the column holds numbers is a public fact, which
    whoever gives bounds for it promises: the look tells of a promise that is evidently broken, and no row of a column
    that keeps it, with a row to spare, makes a difference.
    """
    cells = [cell for cell in next(_cells(path, place, request.form)) if cell.strip().lower() not in ("", "nan")]
    found = sum(_moment(cell) is not None if request.dates else not math.isnan(number_in(cell)) for cell in cells)
    if hardly_any(found, len(cells) - found):
        what = "dates in ISO 8601" if request.dates else "numbers: dates need their kind, text needs categories"
        raise ContentError(f"column {request.column!r} of {path} does not look like {what}")


def _place(path: Path, column: str, form: CsvForm) -> int:
    header = csv_header(path, form)
    if column not in header:
        raise ArgumentError(f"column: there is no {column!r} in {path}; there are {', '.join(map(repr, header))}")
    return header.index(column)


def _cells(path: str, place: int, form: CsvForm) -> Iterator[list[str]]:
    rows = csv_rows(Path(path), form)
    while block := [row[place] if place < len(row) else "" for row in islice(rows, _BLOCK)]:
        yield block
    yield []


def _moment(text: str) -> datetime | None:
    """A moment in UTC, where it has a time zone, without one; None for what is none, or overflows on the way."""
    try:
        found = datetime.fromisoformat(text.strip())
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
