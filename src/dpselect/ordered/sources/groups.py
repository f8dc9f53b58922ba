"""The rows of a column, split by a column of groups: each row is in at most one part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.ordered.domains import Categories
from dpselect.ordered.sources.adapters import DataColumn, SqlTable, TextColumn
from dpselect.ordered.sources.declared import Column
from dpselect.ordered.sources.engine_column import GroupingColumn
from dpselect.tables.categories import category
from dpselect.tables.column_cells import text_chunks
from dpselect.tables.frames import only_column, refuse_engine
from dpselect.tables.number_blocks import Block

__all__ = ["columns_by_group", "parse_names"]

_STREAM: Final = (
    "groups: need values in memory, a column from open_column(file or URL, column, by=...), or a frame of Ibis or a "
    "lazy one of polars with two columns, of which groups names one. Chunks are not split"
)


def parse_names(names: Iterable[Any]) -> Categories:
    """The names of the groups, each different from the others and not blank, as categories are."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise ArgumentError(f"names must be a list of groups, got {type(names).__name__}: write names=['north']")
    given = tuple(names)
    if not all(isinstance(name, (str, int, float, np.generic)) for name in given):
        raise ArgumentError("names: a group is named by text, a number or a boolean")
    read = [category(name) for name in given]
    if not given or "" in read or len(set(read)) != len(read):
        raise ArgumentError(
            "names must be a list of different groups that is not empty and has no blank. 1, 1.0, '1' and True are the "
            "same one"
        )
    return Categories(given)


def columns_by_group(column: Column, groups: Any, named: Categories) -> list[Column]:
    """A column for each group, of the rows that are in it. A row of no named group is in none of them.

    The group of a row depends on its own cell alone. `groups` has a cell for each row of the values. It is None for
    a column of a file that was opened with `by`. Before the columns are read, only the rows in memory are counted.
    """
    if column.weights is not None or column.assume_sorted:
        raise ArgumentError("weights and assume_sorted: quantiles by group take neither")
    if column.rows_per_person is not None:
        raise ArgumentError("rows_per_person: not by group, as one person may have rows in several groups")
    source, values = column.source, column.values
    opened = isinstance(values, (DataColumn, TextColumn))
    if opened and values.by_group is not None:
        if groups is not None:
            raise ArgumentError("groups: the column was opened with by=..., so give no groups")
        parts: Sequence[Any] = values.by_group(named)
    elif (isinstance(values, SqlTable) and values.groups is not None) or (
        isinstance(values, GroupingColumn) and values.grouping
    ):
        if groups is not None:
            raise ArgumentError("groups: the column was opened with by=..., so give no groups")
        parts = values.by_group(named)
    elif opened or callable(values) or isinstance(values, Iterator) or not isinstance(source, (DataColumn, TextColumn)):
        raise ArgumentError(_STREAM)
    elif groups is None:
        raise ArgumentError("groups: give the group of each row, or open the file with open_column(..., by=...)")
    else:
        parts = _parts_in_memory(source, groups, named)
    return [replace(column, values=part) for part in parts]


def _parts_in_memory(
    source: DataColumn | TextColumn, groups: Any, named: Categories
) -> Sequence[DataColumn | TextColumn]:
    refuse_engine(groups, "groups")
    groups = only_column(groups, "groups")
    try:
        cells = text_chunks(groups)
    except (TypeError, ArgumentError):
        raise ArgumentError("groups must be one column of text, numbers or booleans, one for each row") from None
    lengths = [len(values) for values in (_values_of(chunk) for chunk in _chunks_of(source))]
    if sum(lengths) != sum(map(len, cells())):
        raise ArgumentError("groups must have one entry for each row")

    @cache
    def places() -> NDArray[np.int32]:
        found = [named.places(chunk) for chunk in cells()]
        return np.concatenate([np.empty(0, dtype=np.int32), *found], dtype=np.int32, casting="same_kind")

    def kept(group: int) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
        start = 0
        for chunk, length in zip(_chunks_of(source), lengths, strict=True):
            yield chunk, places()[start : start + length] == group
            start += length

    def numbers(group: int) -> Callable[[], Iterator[Block]]:
        return lambda: (_masked(block, mask) for block, mask in kept(group))

    def texts(group: int) -> Callable[[], Iterator[list[Any]]]:
        return lambda: ([cell for cell, take in zip(chunk, mask, strict=True) if take] for chunk, mask in kept(group))

    if isinstance(source, TextColumn):
        return [replace(source, chunks=texts(group)) for group in range(named.size)]
    return [replace(source, blocks=numbers(group)) for group in range(named.size)]


def _chunks_of(source: DataColumn | TextColumn) -> Iterator[Any]:
    return iter(source.chunks()) if isinstance(source, TextColumn) else source.blocks()


def _values_of(chunk: Any) -> Any:
    """The cells of a list of text, or of a block."""
    return chunk if isinstance(chunk, list) else chunk[0]


def _masked(block: Block, mask: NDArray[np.bool_]) -> Block:
    values, present = block
    return values[mask], None if present is None else present[mask]
