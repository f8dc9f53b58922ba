"""Columns in engines that count: what a data frame that is not in memory has to tell.

An engine needs one query: how many rows there are with each value, or in each slot between given numbers. Its file in
`engines` registers a reader under the name of the package that the objects of callers come from. It imports that
package inside of its functions only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered.domains import Categories, Domain
from dpselect.ordered.order_statistics.intervals import RankedColumn
from dpselect.ordered.sources.counted_ranks import CountedRanks, Range
from dpselect.registry import Registry
from dpselect.tables.fates import FATES, MISSING, text_fates
from dpselect.tables.kinds.each_cell import text_of

__all__ = [
    "READERS",
    "EngineColumn",
    "bisected",
    "engine_column",
    "no_groups",
    "one_of",
    "refuse_groups",
    "type_refused",
]

Answer = TypeVar("Answer")
_TYPES: Final = {"f": np.float64, "i": np.int64}
_MOST: Final = (1 << 63) - 1


class EngineColumn(ABC):
    """A column of numbers or text in an engine that counts. Nulls and NaN are missing.

    `kind` is "f" for doubles, "i" for integers of 64 bits and booleans, "text". The rows must be the same in every
    query: you must ensure that no one writes to them.
    """

    kind: str
    typed = True

    @abstractmethod
    def grouped(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """The rows that are not missing and within one of the ranges (all, if there are none), counted.

        By the slot between the edges that a row is in (see `bisected`), or by its value if `edges` is
        None.
        """

    @abstractmethod
    def head(self, rows: int) -> list[Any]:
        """The values of some rows that are not missing, at most so many."""

    @abstractmethod
    def rows(self) -> int:
        """How many rows there are, missing ones included."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """int64 or float64. Raises `TypeError` for text, which has an order only by categories."""
        if self.kind == "text":
            raise TypeError("values that are text need categories")
        return np.dtype(_TYPES[self.kind])

    def ranked(self, domain: Domain) -> RankedColumn:
        """Ranks from counts."""
        return CountedRanks(self, domain, self.dtype.kind)

    def counts(self, edges: Sequence[Any], ranges: Sequence[Range] = ()) -> NDArray[np.int64]:
        """See `CountingEngine`."""
        if not edges:
            return self.counts([0], ranges).sum(keepdims=True)
        found = np.zeros(len(edges) + 1, dtype=np.int64)
        for slot, rows in _answer(lambda: self.grouped(edges, ranges)):
            found[int(slot)] = int(rows)
        return found

    def values(self, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `CountingEngine`."""
        return sorted(_answer(lambda: self.grouped(None, ranges)))

    def some(self, rows: int) -> list[Any]:
        """See `CountingEngine`."""
        return _answer(lambda: self.head(rows))

    def fates(self, low: Any, high: Any) -> NDArray[np.int64]:
        """See `DataColumn.fates`."""
        if self.dtype.kind == "i":  # an engine binds integers of 64 bits
            edges = [max(edge, -_MOST - 1) for edge in (math.ceil(low), math.floor(high) + 1) if edge <= _MOST]
        else:
            edges = [float(low), math.nextafter(float(high), math.inf)]
        below, inside, above = [*self.counts(edges).tolist(), 0, 0][:3]
        if self.dtype.kind == "i" and math.ceil(low) > _MOST:
            below, inside = below + inside, 0
        return np.array([inside, below, above, self._missing(below + inside + above), 0], dtype=np.int64)

    def _missing(self, present: int) -> int:
        return max(int(_answer(self.rows)) - present, 0)

    def counted(self, named: Categories) -> Callable[[], NDArray[np.int64]]:
        """Counts the rows of each category."""
        if self.kind == "f":
            raise ArgumentError("categories: the column holds neither text nor integers")

        def count() -> NDArray[np.int64]:
            cells, rows = self._cells()
            places = named.places(cells)
            return np.bincount(places[places >= 0], rows[places >= 0], named.size).astype(np.int64)

        return count

    def category_fates(self, named: Categories) -> NDArray[np.int64]:
        """See `TextColumn.category_fates`."""
        cells, rows = self._cells()
        fates = text_fates(cells, named.places(cells))
        found = np.bincount(fates, rows, len(FATES)).astype(np.int64)
        found[MISSING] += self._missing(int(rows.sum()))
        return found

    def _cells(self) -> tuple[list[Any], NDArray[np.int64]]:
        found = _answer(lambda: self.grouped(None, ()))
        return [text_of(cell) for cell, _ in found], np.array([int(rows) for _, rows in found], dtype=np.int64)


READERS = Registry[Callable[[Any, str | None], EngineColumn | None]]("engine", room="dpselect.ordered.sources.engines")
"""What makes a column of an object of a package, by the package's name; None for one that it does not read.

It also takes the name of the frame's column that holds the groups, or None.
"""


class GroupingColumn(EngineColumn):
    """A column of an engine that can also split the rows by a second column, of groups."""

    grouping = False
    """Whether there is a column of groups."""

    @abstractmethod
    def group_cells(self) -> list[Any]:
        """The different cells of the column of groups."""

    @abstractmethod
    def among(self, cells: list[Any]) -> EngineColumn:
        """The column of the rows whose cell of the column of groups is one of these."""

    def by_group(self, named: Categories) -> list[EngineColumn]:
        """The column of each group's rows. A row's group depends on its own cell alone.

        One query reads the different cells of the column of groups, and `named` says which of them name a group.
        """
        cells = _answer(self.group_cells)
        places = named.places([text_of(cell) for cell in cells]).tolist()
        return [
            self.among([cell for cell, place in zip(cells, places, strict=True) if place == group])
            for group in range(named.size)
        ]


def engine_column(values: Any, by: str | None = None) -> EngineColumn | None:
    """The column, if the values are of a package with a reader. `by` names the frame's column of groups."""
    package = type(values).__module__.partition(".")[0]
    return READERS[package](values, by) if package in READERS else None


def one_of(columns: Sequence[str], by: str | None = None) -> str:
    """The name of the only column of a frame beside that of groups. Raises `ArgumentError` for more, or for none."""
    if by is not None and by not in columns:
        listed = ", ".join(map(repr, columns))
        raise ArgumentError(f"groups: the frame has no column {by!r}. There are {listed}")
    others = [name for name in columns if name != by]
    if len(others) != 1:
        beside = "" if by is None else f" beside {by!r}"
        raise ArgumentError(f"values: a frame must have one column{beside}, got {len(others)}: select it first")
    return others[0]


def refuse_groups(by: str | None, package: str) -> None:
    """Raise `ArgumentError` if a column of groups is named, for a package whose frames are not split."""
    if by is not None:
        raise ArgumentError(f"groups: a frame of {package} is not split by groups: use Ibis, or a file or database")


def no_groups(by: str) -> ArgumentError:
    """The error for a column that names no groups."""
    return ArgumentError(f"groups: column {by!r} holds neither text nor integers, so it names no groups")


def type_refused(name: str) -> ArgumentError:
    """The error for a type that is not read."""
    return ArgumentError(f"values: a column of the type {name} is not read; cast it to float64, int64 or text")


def bisected(edges: Sequence[Any], below: Callable[[Any], Any], choose: Callable[[Any, Any, Any], Any]) -> Any:
    """An expression for the number of edges that are at most x.

    Args:
        edges: numbers in order.
        below: gives the condition x < edge.
        choose: gives the expression "if a condition then this else that".
    """

    def slot(low: int, high: int) -> Any:
        if low == high:
            return low
        middle = (low + high + 1) // 2
        return choose(below(edges[middle - 1]), slot(low, middle - 1), slot(middle, high))

    return slot(0, len(edges))


def _answer(query: Callable[[], Answer]) -> Answer:
    """The answer of an engine. Its report of a failure may quote the data, and is not passed on."""
    with suppress(Exception):  # and raised outside, so that no traceback shows the engine's error either
        return query()
    raise ContentError("the engine did not answer. Its message is not shown, as it may quote the data")
