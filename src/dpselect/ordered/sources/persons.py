"""The rows of a column with at most a declared number of each person's rows, chosen by that person's rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.adapters import DataColumn, SqlTable, TextColumn
from dpselect.tables.column_cells import text_chunks
from dpselect.tables.frames import only_column, refuse_engine
from dpselect.tables.number_blocks import Block
from dpselect.tables.person_rows import rows_of_persons

__all__ = ["limited", "limited_in_memory"]

_SALT: Final = "order statistics"
"""Public. Theorem 1 of docs/theory/persons.md holds for every salt."""
_NEEDED: Final = (
    "persons: need values in memory, or a column from open_column(file or URL, column, person=...). Chunks and frames "
    "of engines are not limited by person: write the rows that take part to a table first"
)


def limited(source: DataColumn | TextColumn | SqlTable, most: int) -> Any:
    """The column of an opened file or table with at most `most` rows of each person.

    Claim: without all rows of one person it has at most `most` rows less, all that person's.
    Source: docs/theory/persons.md, Theorem 1.
    """
    if isinstance(source, SqlTable):
        assert source.persons is not None
        seen = source.number_of or f"CAST({source.text_of} AS TEXT)"
        return replace(source, rows=source.persons.rows(source, seen, most=most), persons=None)
    assert source.persons is not None
    return _limited(source, source.persons, most)


def limited_in_memory(source: Any, values: Any, persons: Any, most: int) -> Any:
    """The same for `source`, the column of these values in memory. `persons` has the person of each row.

    Before the column is read, only rows are counted. Raises `ArgumentError` for a source that is not in memory.
    """
    opened = isinstance(values, (DataColumn, TextColumn, SqlTable))
    if opened or callable(values) or isinstance(values, Iterator) or not isinstance(source, (DataColumn, TextColumn)):
        raise ArgumentError(_NEEDED)
    refuse_engine(persons, "persons")
    try:
        cells = text_chunks(only_column(persons, "persons"))
    except (TypeError, ArgumentError):
        raise ArgumentError("persons must be one column of text or numbers, one for each row") from None
    if sum(map(len, _chunks_of(source))) != sum(map(len, cells())):
        raise ArgumentError("persons must have one entry for each row")
    return _limited(source, cells, most)


def _limited(
    source: DataColumn | TextColumn, persons: Callable[[], Iterator[list[Any]]], most: int
) -> DataColumn | TextColumn:
    @cache
    def kept() -> NDArray[np.bool_]:
        contents = [content for chunk in _contents_of(source) for content in chunk]
        chosen = rows_of_persons(chain.from_iterable(persons()), contents, most=most, salt=_SALT)
        mask = np.zeros(len(contents), dtype=np.bool_)
        mask[chosen.places] = True
        return mask

    if isinstance(source, TextColumn):
        texts = lambda: ([*_taken(chunk, mask)] for chunk, mask in _beside(source.chunks(), len, kept()))  # noqa: E731
        return replace(source, chunks=texts, persons=None)
    blocks = lambda: (_masked(*each) for each in _beside(source.blocks(), _rows_of, kept()))  # noqa: E731
    written = None if source.written is None else _written(source.written, kept)
    return replace(source, blocks=blocks, written=written, persons=None)


def _written(
    written: Callable[[], Iterator[tuple[Block, Any]]], kept: Callable[[], NDArray[np.bool_]]
) -> Callable[[], Iterator[tuple[Block, Any]]]:
    def read() -> Iterator[tuple[Block, Any]]:
        for (block, cells), mask in _beside(written(), lambda each: _rows_of(each[0]), kept()):
            yield _masked(block, mask), cells[mask]

    return read


def _beside(
    chunks: Iterator[Any], rows: Callable[[Any], int], mask: NDArray[np.bool_]
) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
    """Each chunk with its part of the mask."""
    start = 0
    for chunk in chunks:
        stop = start + rows(chunk)
        yield chunk, mask[start:stop]
        start = stop


def _chunks_of(source: DataColumn | TextColumn) -> Iterator[Any]:
    return iter(source.chunks()) if isinstance(source, TextColumn) else (values for values, _ in source.blocks())


def _contents_of(source: DataColumn | TextColumn) -> Iterator[list[bytes]]:
    """The content of each row as a mechanism sees it: a value, or nothing."""
    return map(_texts, source.chunks()) if isinstance(source, TextColumn) else map(_values, source.blocks())


def _texts(chunk: list[Any]) -> list[bytes]:
    return [b"" if cell is None else str(cell).encode("utf-8", "surrogatepass") for cell in chunk]


def _values(block: Block) -> list[bytes]:
    values, present = block
    there = values == values if present is None else present & (values == values)
    if values.dtype.kind == "O":
        return [str(value).encode() if known else b"" for value, known in zip(values, there, strict=True)]
    joined, width = values.tobytes(), values.dtype.itemsize
    return [joined[i * width : (i + 1) * width] if known else b"" for i, known in enumerate(there.tolist())]


def _rows_of(block: Block) -> int:
    return len(block[0])


def _masked(block: Block, mask: NDArray[np.bool_]) -> Block:
    values, present = block
    return values[mask], None if present is None else present[mask]


def _taken(chunk: list[Any], mask: NDArray[np.bool_]) -> Iterator[Any]:
    return (cell for cell, take in zip(chunk, mask.tolist(), strict=True) if take)
