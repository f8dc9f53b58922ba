"""Columns of files, read a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.numerics.moments import FIRST, LAST, stamp_type, tick_of
from dpselect.ordered.sources.adapters import DataColumn, TextColumn
from dpselect.ordered.sources.blocks import Block, block_of, chunk_of, number_type
from dpselect.ordered.sources.opening import ColumnRequest, column_source
from dpselect.ordered.sources.plain_lists import hardly_any
from dpselect.tables import (
    CSV_ENDS,
    CsvForm,
    cells_of,
    csv_blocks,
    csv_form,
    csv_header,
    csv_rows,
    has_tabs,
    numbers_in,
    otherwise_written,
    place_of,
    text_type,
)

__all__ = ["open_csv", "open_parquet"]

_BLOCK = 1 << 16


@column_source(".parquet")
@contextmanager
def open_parquet(path: str, request: ColumnRequest) -> Iterator[DataColumn | TextColumn]:
    """A column of a Parquet file or folder, read a batch at a time. Needs pyarrow.

    The first file of a folder has the type of the column; the others are read as that type. Time stamps of 96 bits, as
    Spark and Impala write them, are in microseconds.
    """
    column, text, progress = request.column, request.text, request.progress
    try:
        import pyarrow as pa
        import pyarrow.dataset as dataset
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    table = None
    with suppress(pa.ArrowException, OSError):
        table = dataset.dataset(str(path), format=_format("us"))
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

    def read(one: Callable[[Any, str], Iterator[Any]]) -> Iterator[Any]:
        with suppress(pa.ArrowException, OSError):  # whose message may quote the data
            for fragment in table.get_fragments():
                yield from one(fragment, column)
            return
        raise ContentError(f"column {column!r} of {path} cannot be read")

    if text:
        texts = lambda: ([_plain(cell) for cell in cells_of(batch)] for batch in read(_batches))  # noqa: E731
        yield TextColumn(texts, progress)
    else:
        dtype = block_of(pa.array([], kind))[0].dtype
        yield DataColumn(dtype, lambda: (chunk_of(part, dtype) for part in read(_parts)), progress=progress)


def _format(unit: str) -> Any:
    """Arrow's reader of Parquet, with this unit for time stamps of 96 bits; it would wrap in nanoseconds."""
    from pyarrow import dataset

    return dataset.ParquetFileFormat(read_options=dataset.ParquetReadOptions(coerce_int96_timestamp_unit=unit))


def _batches(fragment: Any, column: str) -> Iterator[Any]:
    """The column of one file, in the file's own type: Arrow's conversion to another file's fails for some values."""
    from pyarrow import dataset

    # buffered: by default a whole column of a row group is held, and files may be one row group
    buffered = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    if column in fragment.physical_schema.names:
        for batch in fragment.to_batches(
            columns=[column], batch_size=1 << 17, batch_readahead=1, fragment_scan_options=buffered
        ):
            yield batch.column(0)


def _parts(fragment: Any, column: str) -> Iterator[Any]:
    """The same, but 96 bits in milliseconds too, which hold all of them, where microseconds have wrapped around."""
    coarse = _format("ms").make_fragment(fragment.path, fragment.filesystem)
    if coarse.physical_schema == fragment.physical_schema:
        yield from _batches(fragment, column)
        return
    for fine, plain in zip(_batches(fragment, column), _batches(coarse, column), strict=True):
        yield fine if fine.type == plain.type else _cut_off(fine, plain)


def _cut_off(fine: Any, coarse: Any) -> Any:
    """Microseconds, with the ends of their range for what is beyond it in milliseconds."""
    import pyarrow as pa

    (ticks, present), (guard, _) = block_of(fine), block_of(coarse)
    ticks, guard, reach = ticks.view(np.int64), guard.view(np.int64), LAST // 1000
    found = np.where(guard >= reach, LAST, np.where(guard <= -reach, FIRST, ticks))
    return pa.array(found, pa.int64(), mask=None if present is None else ~present).view(fine.type)


def _plain(cell: Any) -> Any:
    """Whole numbers and truth values as texts, which categories of a file are."""
    return str(cell).lower() if isinstance(cell, bool) else str(cell) if isinstance(cell, int) else cell


@contextmanager
def open_csv(path: str, request: ColumnRequest) -> Iterator[DataColumn | TextColumn]:
    """A column of a CSV file with a header, read a block at a time as doubles, or as moments in microseconds.

    A cell that is no number, or no moment, is missing.
    """
    form = csv_form(tabs=has_tabs(path)) if request.form is None else request.form
    kind = stamp_type("us") if request.dates else np.dtype(np.float64)
    place = _place(Path(path), request.column, form)
    if request.look and not request.text:
        _look(path, request, place, form)

    def chunks() -> Iterator[Block]:
        if request.dates:
            for block in _cells(path, place, form):
                yield np.array([_moment(cell) for cell in block], dtype=np.int64).view(kind), None
            return
        for (numbers,), _ in csv_blocks(Path(path), form, [place]):
            yield numbers, None
        yield np.empty(0, dtype=kind), None

    def written() -> Iterator[tuple[Block, list[str]]]:
        if request.dates:
            for block in _cells(path, place, form):
                yield (np.array([_moment(cell) for cell in block], dtype=np.int64).view(kind), None), block
            return
        for (numbers,), (cells,) in csv_blocks(Path(path), form, [place], [place]):
            yield (numbers, None), cells

    if request.text:
        yield TextColumn(lambda: _cells(path, place, form), request.progress)
    else:
        yield DataColumn(
            kind,
            chunks,
            progress=request.progress,
            written=written,
        )


def _look(path: str, request: ColumnRequest, place: int, form: CsvForm) -> None:
    """Look at the first rows whether a column holds numbers, or moments; empty cells and "nan" do not count.

    Raises `ContentError` where less than a tenth of them are, or where a tenth, and more than one, would be with other
    separators. That the column holds numbers is a public fact, which
    whoever gives bounds for it promises: the look tells of a promise that is evidently broken, and no row of a column
    that keeps it, with a row to spare, makes a difference.
    """
    cells = [cell for cell in next(_cells(path, place, form)) if cell.strip().lower() not in ("", "nan")]
    if request.dates:
        found = sum(_moment(cell) >= FIRST for cell in cells)
    else:
        found = int(np.count_nonzero(~np.isnan(numbers_in(cells, form.decimal, form.thousands))))
        otherwise = otherwise_written(cells, form.decimal, form.thousands)
        if otherwise > 1 and 9 * otherwise > found:
            raise ContentError(
                f"column {request.column!r} of {path} holds numbers with other separators than its form says: declare "
                "decimal and thousands"
            )
    if hardly_any(found, len(cells) - found):
        what = (
            "dates in ISO 8601"
            if request.dates
            else "numbers: dates need their kind, text needs categories, separators other than a point a form"
        )
        raise ContentError(f"column {request.column!r} of {path} does not look like {what}")


def _place(path: Path, column: str, form: CsvForm) -> int:
    return place_of(column, csv_header(path, form), path.name)


def _cells(path: str, place: int, form: CsvForm) -> Iterator[list[str]]:
    rows = (row for row in csv_rows(Path(path), form) if row)
    while block := [row[place] if place < len(row) else "" for row in islice(rows, _BLOCK)]:
        yield block
    yield []


def _moment(text: str) -> int:
    """A moment in microseconds since 1970, in UTC; the tick of NaT for what is none."""
    try:
        found = tick_of(datetime.fromisoformat(text.strip()), "us")
    except ValueError:
        found = None
    return FIRST - 1 if found is None else found


for _end in CSV_ENDS:
    column_source(_end)(open_csv)
