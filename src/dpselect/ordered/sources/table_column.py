"""One column of a table that is read in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np

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
        return DataColumn(stamp_type("us"), moments, progress=request.progress)
    dtype = np.dtype(np.float64) if kind is None else kind
    blocks = lambda: (chunk_of(chunk[column], dtype) for chunk in table.chunks([column], [column]))  # noqa: E731
    return DataColumn(dtype, blocks, progress=request.progress)


def _checked(empty: Any, where: str, request: ColumnRequest) -> np.dtype[Any]:
    """The type of the values of a column that has one. Raises `ArgumentError` for one that does not fit."""
    named = f"column: {request.column!r} of {where} holds {getattr(empty, 'type', getattr(empty, 'dtype', None))}"
    if request.dates:
        raise ArgumentError(f"dates: only for a column without a type; {named}")
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
    numbers = _first(table, request.column, numbers=not request.dates)
    if request.dates:
        cells = [cell for cell in numbers if str(cell).strip().lower() not in ("", "nan", "none")]
        found = int(np.count_nonzero(_ticks(cells) >= FIRST))
        if hardly_any(found, len(cells) - found):
            raise ContentError(f"column {request.column!r} of {where} does not look like dates in ISO 8601")
        return
    values = cells_as(numbers, np.dtype(np.float64))[0]
    found = int(np.count_nonzero(values == values))
    if 9 * (len(values) - found) <= found:
        return
    cells = [str(cell) for cell in _first(table, request.column, numbers=False)]
    form = request.form
    separators = (form.decimal or ".", form.thousands or "") if form else (".", "")
    otherwise = otherwise_written(cells, *separators)
    if otherwise > 1 and 9 * otherwise > found:
        raise ContentError(
            f"column {request.column!r} of {where} holds numbers with other separators than its form says: declare "
            "decimal and thousands"
        )
    foreign = sum(cell.strip().lower() not in ("", "nan", "none") for cell in cells) - found
    if hardly_any(found, foreign):
        raise ContentError(
            f"column {request.column!r} of {where} does not look like numbers: dates need their kind, text needs "
            "categories, separators other than a point a form"
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


def _first(table: Table, column: str, *, numbers: bool) -> list[Any]:
    """The cells of the first rows."""

    def cells() -> Iterator[Any]:
        for chunk in table.chunks([column], (column,) if numbers else ()):
            yield from chunk[column].tolist()

    return [cell for cell, _ in zip(cells(), range(_LOOKED_AT), strict=False)]
