"""One column of a table that is read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError
from dpselect.numerics.moments import FIRST, stamp_type, tick_of
from dpselect.ordered.sources.adapters import DataColumn, TextColumn
from dpselect.ordered.sources.request import ColumnRequest
from dpselect.tables import (
    Block,
    Table,
    Written,
    block_of,
    cells_as,
    cells_of,
    chunk_of,
    hardly_any,
    open_table,
    otherwise_written,
    text_chunks,
)

__all__ = ["table_column"]

_LOOKED_AT = 1 << 16
"""Rows that `look` looks at."""
_HELD = 1 << 26
"""Bytes of a column that is not read twice."""


def table_column(where: str, request: ColumnRequest) -> DataColumn | TextColumn:
    """A column of a file or a table, see `open_column`. Raises before a row is read, but for the look."""
    column = request.column
    table = open_table(where, key="", form=request.form or Written(table=request.table))
    table.check([column])
    kind = None if table.empty is None else _checked(table.empty(column), where, request)
    if request.look and kind is None and not request.text:
        _look(table, where, request)
    if request.text:
        return TextColumn(lambda: (cells_of(chunk[column]) for chunk in table.chunks([column], ())), request.progress)
    if request.dates:
        moments = lambda: (_moments(chunk[column]) for chunk in table.chunks([column], ()))  # noqa: E731
        return DataColumn(stamp_type("us"), _remembered(moments), progress=request.progress)
    dtype = np.dtype(np.float64) if kind is None else kind
    blocks = lambda: (chunk_of(chunk[column], dtype) for chunk in table.chunks([column], [column]))  # noqa: E731
    return DataColumn(dtype, _remembered(blocks), progress=request.progress)


def _checked(empty: Any, where: str, request: ColumnRequest) -> np.dtype[Any]:
    """The type of the values of a column that has one. Raises `ArgumentError` for one that does not fit."""
    named = f"column: {request.column!r} of {where} holds {getattr(empty, 'type', getattr(empty, 'dtype', None))}"
    if request.dates:
        raise ArgumentError(f"{named}: a column that has a type takes no dates")
    try:
        text_chunks(empty)
        fits = True
    except TypeError:
        fits = False
    if request.text:
        if not fits:
            raise ArgumentError(f"{named}, which has no categories")
        return np.dtype(object)
    try:
        return block_of(empty)[0].dtype
    except TypeError:
        raise ArgumentError(f"{named}, which {'needs categories' if fits else 'has no order here'}") from None


def _look(table: Table, where: str, request: ColumnRequest) -> None:
    """Look at the first rows whether a column holds numbers, or moments; empty cells and "nan" do not count.

    Raises `ContentError` if less than a tenth of them are, or if a tenth, and more than one, would be with other
    separators. That the column holds numbers is a public fact, and giving bounds for it promises so. The look tells of
    a promise that is evidently broken. No row of a column that keeps it, with a row to spare, makes a difference.
    """
    if request.dates:
        cells = [cell for cell in _first(table, request.column) if _is_there(cell)]
        found = int(np.count_nonzero(_ticks(cells) >= FIRST))
        if hardly_any(found, len(cells) - found):
            raise ContentError(f"column {request.column!r} of {where} does not look like dates in ISO 8601")
        return
    read = _first(table, request.column, numbers=(request.column,))
    values = read if read.dtype.kind == "f" else cells_as(read, np.dtype(np.float64))[0]
    found = int(np.count_nonzero(values == values))
    if 9 * (len(values) - found) <= found:
        return
    cells = [str(cell) for cell in _first(table, request.column)]
    form = request.form
    separators = (form.decimal or ".", form.thousands or "") if form else (".", "")
    otherwise = otherwise_written(cells, *separators)
    if otherwise > 1 and 9 * otherwise > found:
        raise ContentError(
            f"column {request.column!r} of {where} holds numbers with other separators than its form says: declare "
            "form.decimal and form.thousands"
        )
    if hardly_any(found, sum(map(_is_there, cells)) - found):
        raise ContentError(
            f"column {request.column!r} of {where} does not look like numbers: dates need their kind, text needs "
            "categories, separators other than a point form.decimal"
        )


def _moments(cells: Any) -> Block:
    return _ticks(cells).view(stamp_type("us")), None


def _ticks(cells: Any) -> Any:
    """Moments in microseconds since 1970, in UTC; the tick of NaT for a cell that is none."""
    return np.array([_tick(cell) for cell in cells], dtype=np.int64)


def _tick(cell: Any) -> int:
    try:
        found = tick_of(datetime.fromisoformat(cell.strip()) if isinstance(cell, str) else cell, "us")
    except (TypeError, ValueError):
        found = None
    return FIRST - 1 if found is None else found


def _first(table: Table, column: str, numbers: Collection[str] = ()) -> NDArray[Any]:
    """The cells of the first rows."""
    parts, rows = [], 0
    for chunk in table.chunks([column], numbers):
        parts.append(chunk[column])
        rows += len(parts[-1])
        if rows >= _LOOKED_AT:
            break
    return np.concatenate(parts)[:_LOOKED_AT]


def _is_there(cell: Any) -> bool:
    return str(cell).strip().lower() not in ("", "nan", "none")


def _remembered(blocks: Callable[[], Iterator[Block]]) -> Callable[[], Iterator[Block]]:
    """The same blocks, read again from memory unless they are too large: ranks need two readings of a column."""
    whole: list[list[Block]] = []

    def read() -> Iterator[Block]:
        if whole:
            yield from whole[0]
            return
        taken: list[Block] = []
        size = 0
        for block in blocks():
            size += block[0].nbytes
            if size > _HELD:
                taken.clear()
            else:
                taken.append(block)
            yield block
        if size <= _HELD:
            whole.append(taken)

    return read
