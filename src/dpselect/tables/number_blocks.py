"""Rows in memory as arrays of the types that the domains read.

A type is looked at before anything is paid. After that no content makes reading fail: what does not fit the type of the
column is clipped or missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.moments import stamps_in
from dpselect.tables.column_cells import TypedCells, column_parts, filled, is_untyped
from dpselect.tables.numbers import double_of
from dpselect.tables.plain_lists import (
    LARGEST,
    cells_as,
    doubles_in,
    floor,
    typed,
    whole_as,
    whole_cells,
)
from dpselect.tables.text_cells import cells_of

__all__ = ["LARGEST", "Block", "block_of", "blocks_of", "chunk_of", "number_type", "present_in"]

Block = tuple[NDArray[Any], NDArray[np.bool_] | None]
"""Values, and where there is one; None for everywhere. NaN and NaT are missing as well."""


def blocks_of(values: Any) -> list[Block]:
    """The parts of a column in memory, of types that the domains read; without a copy where they are so already.

    A list, as a column of text or of categories, holds doubles: a cell is read as `number_in` reads it, and is missing
    where it is not a number. A column of objects holds integers. Raises `TypeError` and `ArgumentError` for the
    column's type or shape, and `TypeError` where it holds no numbers (see `hardly_any`).
    """
    if is_untyped(values):
        values = typed(values)
    parts = column_parts(values)
    if parts[0].kind not in ("text", "categories"):
        return [_block(part) for part in parts]
    cells = [cell for part in parts for cell in filled(part)]
    return [(doubles_in(cells, name="values", what=f"a column of {parts[0].kind} must hold numbers"), None)]


def block_of(values: Any) -> Block:
    """The same as one array."""
    return _joined(blocks_of(values))


def _block(cells: TypedCells) -> Block:
    if cells.kind == "objects":
        return whole_cells(filled(cells))
    if cells.kind == "decimal":  # Arrow's own conversion does not always give the nearest double
        return np.array([double_of(cell) for cell in filled(cells)], dtype=np.float64), None
    if cells.kind != "typed" or cells.values.dtype.kind == "m":
        spans = "; divide spans of time by a unit" if cells.kind == "typed" else ""
        raise TypeError(f"values must be numbers or timestamps, or text with categories, got {cells.name[:60]}{spans}")
    return _plain(cells.values), cells.present


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    with np.errstate(over="ignore"):  # a warning would tell of a cell
        return array.astype(np.float64) if array.dtype.kind == "f" and array.dtype.itemsize > 8 else array


def number_type(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers or timestamps that are read."""
    import pyarrow.types as of

    numbers = (of.is_integer, of.is_floating, of.is_boolean, of.is_date, of.is_timestamp, of.is_decimal)
    return any(check(kind) for check in numbers)


def present_in(block: Block) -> NDArray[Any]:
    """The values that are there; NaN and NaT may be among them."""
    values, present = block
    return values if present is None else values[present]


def chunk_of(values: Any, dtype: np.dtype[Any]) -> Block:
    """One more chunk of a column whose type another chunk has declared; no content makes it fail.

    Numbers are clipped to those of the type, and rounded down to whole ones; numbers among timestamps, timestamps among
    numbers, and cells that are neither, are missing. One cell may change the type that another library gives to a
    chunk, so none is refused. Raises `ArgumentError` for a chunk that is not one-dimensional.
    """
    try:
        parts = [TypedCells(_of_objects(values), "objects", "list")] if is_untyped(values) else column_parts(values)
    except TypeError:
        parts = [TypedCells(_of_objects(cells_of(values)), "objects", "")]
    return _joined([_chunk(part, dtype) for part in parts])


def _chunk(cells: TypedCells, dtype: np.dtype[Any]) -> Block:
    if cells.kind == "decimal" or (cells.kind == "typed" and cells.values.dtype.kind != "m"):
        return _as_type(_block(cells), dtype)
    return cells_as(filled(cells), dtype)


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    kept = [(part, np.ones(len(part), dtype=bool) if present is None else present) for part, present in blocks]
    parts, present = zip(*kept, strict=True)
    return np.concatenate(parts), np.concatenate(present)


def _of_objects(cells: Any) -> NDArray[Any]:
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found


def _as_type(block: Block, dtype: np.dtype[Any]) -> Block:
    values, present = block
    kind = values.dtype.kind
    if values.dtype == dtype:
        return block
    if (kind == "M") != (dtype.kind == "M"):
        return np.zeros(len(values), dtype=dtype), np.zeros(len(values), dtype=bool)
    if dtype.kind == "M":
        return stamps_in(values, np.datetime_data(dtype)[0]), present
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype), present
    if kind == "f":
        there = values == values
        present = there if present is None else there & present
        return whole_as([floor(value) for value in values.tolist()], dtype), present
    if dtype.kind == "O":
        return values.astype(object), present
    info = np.iinfo(dtype)
    low, high = (max(info.min, np.iinfo(values.dtype).min), min(info.max, np.iinfo(values.dtype).max))
    return np.clip(values, low, high).astype(dtype), present
