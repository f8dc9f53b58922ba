"""One column of a table that is read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import ArrowValues, Zoned, dtype_of
from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered.domains import Categories
from dpselect.ordered.sources.adapters import DataColumn, TextColumn
from dpselect.ordered.sources.declared_missing import missing_in, refuse_for_typed, without
from dpselect.ordered.sources.request import ColumnRequest
from dpselect.tables import Declared, Table, Written
from dpselect.tables.column_cells import cells_in, column_parts, text_chunks
from dpselect.tables.kinds.declared import other_dates
from dpselect.tables.kinds.each_cell import column_of
from dpselect.tables.number_blocks import Block, block_of, chunk_of
from dpselect.tables.numbers import otherwise_written
from dpselect.tables.plain_lists import hardly_any
from dpselect.tables.table import Columns, open_table, without_password

__all__ = ["table_column"]

_LOOKED_AT = 1 << 16
"""Rows that `look` looks at."""
_HELD = 1 << 26
"""Bytes of a column that is not read twice."""
_NONE = ("nan", "none")
_DATES = ': declare its format, such as "%d/%m/%Y" or "%m/%d/%Y", and two_digit_years_from for %y'
_NUMBERS = (
    ": dates, times, durations and words such as yes and no need their kind, other text needs categories, separators "
    "other than a point form.decimal"
)


def table_column(where: str, request: ColumnRequest) -> DataColumn | TextColumn:
    """A column of a file or a table, see `open_column`. Raises before a row is read, but for the look."""
    table = open_table(where, key="", form=request.form or Written(table=request.table))
    table.check([request.column])
    where = without_password(where)
    source = _column(table, where, request)
    if request.person is not None:
        person = request.person
        _check_names(table, where, person, "person")
        return replace(source, persons=lambda: _cells_of(table, person))
    if request.by is None:
        return source
    once, by = replace(request, look=False), request.by
    if by == request.column:
        raise ArgumentError(f"by: {by!r} is the column of the values; name another one")
    _check_names(table, where, by, "by")

    def by_group(named: Categories) -> list[DataColumn | TextColumn]:
        return [_column(_of_group(table, by, named, group), where, once) for group in range(named.size)]

    return replace(source, by_group=by_group)


def _column(table: Table, where: str, request: ColumnRequest) -> DataColumn | TextColumn:
    column, progress, declared = request.column, request.progress, request.declared or Declared()
    if table.restated is not None and declared.missing_values and not request.text:
        declared = _as_cells(declared, table.restated)
    empty = None if table.empty is None else table.empty(column)
    kind = None if empty is None else _checked(empty, where, request)
    if request.look and kind is None and not request.text:
        _look(table, where, request)
    if request.text:
        return TextColumn(lambda: (_texts(chunk[column], declared) for chunk in table.chunks([column], ())), progress)
    if kind is not None:
        absent = missing_in(declared, kind)
        blocks = lambda: (without(chunk_of(chunk[column], kind), absent) for chunk in table.chunks([column], ()))  # noqa: E731
        return DataColumn(kind, _remembered(blocks), progress=progress, zone=_zone(empty))
    cells = lambda: (declared.block(chunk) for chunk in _chunks(table, column, declared))  # noqa: E731
    return DataColumn(
        declared.dtype,
        _remembered(cells),
        progress=progress,
        written=lambda: _written(table, column, declared),
        missing=declared.is_missing,
    )


def _check_names(table: Table, where: str, name: str, key: str) -> None:
    """Refuse a column of groups or persons that is not there, or whose cells name none."""
    table.check([name], key)
    try:
        text_chunks([] if table.empty is None else table.empty(name))
    except TypeError:
        raise ArgumentError(f"{key}: column {name!r} of {where} holds neither text nor numbers") from None


def _cells_of(table: Table, name: str) -> Iterator[list[Any]]:
    return (part for chunk in table.chunks([name], ()) for part in text_chunks(chunk[name])())


def _of_group(table: Table, by: str, named: Categories, group: int) -> Table:
    """The rows of one group: each chunk without those whose own cell is not its name."""

    def chunks(names: Sequence[str], numbers: Collection[str]) -> Iterator[Columns]:
        for chunk in table.chunks([*names, by], numbers):
            cells = [cell for part in text_chunks(chunk[by])() for cell in part]
            mask = named.places(cells) == group
            yield {name: _rows_of(chunk[name], mask) for name in names}

    return replace(table, chunks=chunks, even=None)


def _rows_of(cells: Any, mask: NDArray[np.bool_]) -> Any:
    """The rows of an array of NumPy or Arrow."""
    return cells[mask] if isinstance(cells, np.ndarray) else cells.filter(mask)


def _as_cells(declared: Declared, restated: Callable[[Any, bool], Any]) -> Declared:
    """Texts that are missing values are written as the file's cells are: "-99,5"."""
    values = declared.missing_values or ()
    plain = (str(restated([value], False)[0]) if isinstance(value, str) else value for value in values)
    return replace(declared, missing_values=tuple(plain))


def _texts(cells: Any, declared: Declared) -> list[Any]:
    found = [cell for part in text_chunks(cells)() for cell in part]
    return [None if declared.category(cell) == "" else cell for cell in found] if declared.missing_values else found


def _chunks(table: Table, column: str, declared: Declared) -> Iterator[NDArray[Any]]:
    """The cells of a column without a type: numbers as float64, for speed, others as they are."""
    numbers = (column,) if declared.kind == "number" else ()
    for chunk in table.chunks([column], numbers):
        cells = chunk[column]
        if not numbers and declared.column_kind.numeric and table.restated is not None:
            cells = table.restated(cells, True)
        if not isinstance(cells, np.ndarray):
            # a later file of a folder may have another type for the column, which is no reason to refuse it
            cells = column_of(list(cells_in(cells)))
        yield cells


def _written(table: Table, column: str, declared: Declared) -> Iterator[tuple[Block, NDArray[Any]]]:
    """The values of a column without a type, each chunk with its cells as they are written."""
    for chunk in table.chunks([column], ()):
        cells = chunk[column] if isinstance(chunk[column], np.ndarray) else cells_in(chunk[column])
        restated = table.restated if declared.column_kind.numeric else None
        read = cells if restated is None else restated(cells, True)
        yield declared.block(read), cells


def _checked(empty: Any, where: str, request: ColumnRequest) -> np.dtype[Any] | None:
    """The type of the values of a column that has one, or None for text that is declared to hold something else.

    Raises `ArgumentError` for a type that does not fit.
    """
    named = f"column: {request.column!r} of {where} holds {_type_of(empty)}"
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
        (cells,) = column_parts(empty)
        typed = cells.kind not in ("text", "categories") and cells.name != "null"
        found = block_of(empty)[0].dtype if typed else None
    except TypeError:
        found = None
    if found is None:
        kind = None if request.declared is None else request.declared.kind
        spans = np.issubdtype(cells_in(empty).dtype, np.timedelta64)
        if kind == "duration" if spans else fits and kind is not None:
            return None
        what = "needs kind duration" if spans else "needs categories" if fits else "has no order here"
        raise ArgumentError(f"{named}, which {what}")
    refuse_for_typed(request.declared, named, zone=_zone(empty) is not None)
    return found


def _type_of(empty: Any) -> Any:
    """The type of a column of Arrow or NumPy."""
    return empty.type if isinstance(empty, ArrowValues) else dtype_of(empty)


def _zone(empty: Any) -> str | None:
    """The time zone in the type of an Arrow column."""
    kind = _type_of(empty)
    return str(kind.tz) if isinstance(kind, Zoned) and kind.tz is not None else None


def _look(table: Table, where: str, request: ColumnRequest) -> None:
    """Look at the first rows whether a column is of its kind. Missing cells do not count.

    Raises `ContentError` if less than a tenth of them are, or if a tenth, and more than one, would be with other
    separators or look like dates of another form. That the column is of its kind is a public fact, and giving bounds
    for it promises so. The look tells of a promise that is broken. No row of a column that keeps it, with a
    row to spare, makes a difference.
    """
    declared, column = request.declared or Declared(), request.column
    values = declared.read(cells := _first(table, column, declared))
    found = int(np.count_nonzero(values == values))
    if 9 * (len(values) - found) <= found:
        return
    if declared.kind == "number":
        cells = _first(table, column, Declared(kind="text"))
        form = request.form or Written()
        otherwise = otherwise_written([str(cell) for cell in cells], form.decimal or ".", form.thousands or "")
        if otherwise > 1 and 9 * otherwise > found:
            raise ContentError(
                f"column {column!r} of {where} holds numbers with other separators than its form says: declare "
                "form.decimal and form.thousands"
            )
    otherwise = other_dates(cells, values) if request.dates else 0
    if otherwise > 1 and 9 * otherwise > found:
        raise ContentError(f"column {column!r} of {where} holds dates in another form than declared{_DATES}")
    present = sum(declared.category(cell) != "" and str(cell).strip().lower() not in _NONE for cell in cells)
    if hardly_any(found, present - found):
        hint = _NUMBERS if declared.kind == "number" else declared.column_kind.hint
        raise ContentError(f"column {column!r} of {where} does not look like {declared.kind}s{hint}")


def _first(table: Table, column: str, declared: Declared) -> NDArray[Any]:
    """The cells of the first rows."""
    parts, rows = [], 0
    for cells in _chunks(table, column, declared):
        parts.append(cells)
        rows += len(cells)
        if rows >= _LOOKED_AT:
            break
    return np.concatenate(parts)[:_LOOKED_AT]


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
