"""Ranks of a column in an engine that can only count: no statement sorts, and the column is never read."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError
from dpselect.ordered.domains import Codes, Domain
from dpselect.ordered.order_statistics.intervals import Window, window_of
from dpselect.ordered.sources.columns import CountedColumn

__all__ = ["CountedRanks", "CountingEngine", "Range"]

Range = tuple[float | int | None, float | int | None]
"""From a number on, up to another; None is no end."""
_EDGES: Final = 31
"""Codes at which one query counts: five comparisons for each row."""
_GUIDES: Final = 1 << 12
"""So many rows are read to guide the first counts."""
_FEW: Final = (1 << 15, 1 << 20)
"""One row of 128, within these numbers, is read: that costs less than to count once more."""
_MOST: Final = (1 << 63) - 1


class CountingEngine(Protocol):
    """A column in an engine that counts. Values that are missing (NULL, NaN) take no part."""

    def counts(self, edges: Sequence[Any], ranges: Sequence[Range] = ()) -> NDArray[np.int64]:
        """How many rows are below the first edge, from it up to the second, ..., from the last one on.

        `edges` increase. Rows outside of `ranges` are not counted.
        """
        ...

    def values(self, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """The values in these ranges in order, each with its number of rows."""
        ...

    def some(self, rows: int) -> list[Any]:
        """The values of some rows, at most so many. They decide where rows are counted, never the result."""
        ...


@dataclass(repr=False)
class CountedRanks:
    """The rows of a column found by rank, by an engine that counts. Secret.

    One query counts the rows between many codes. The pieces between them that hold the wanted ranks are cut again,
    until each has one code or so few rows that reading them costs less than counting. A last query reads the
    different values of these pieces.

    All queries must see the same rows: one transaction that reads repeatably, or a table that no one writes to (you
    must ensure this). `kind` is "f" for floating-point domains, "i" for integers of 64 bits, which are compared without
    rounding.
    """

    engine: CountingEngine
    domain: Domain
    kind: str = "f"
    _guides: list[int] = field(default_factory=list)
    _codes: list[int] = field(default_factory=list)
    """In order: 0, codes of which it is known how many rows are below, the size of the domain."""
    _below: list[int] = field(default_factory=list)
    """How many rows are below each of them."""
    _read: dict[int, Window] = field(default_factory=dict)
    """The codes that occur in a piece, by the first code of the piece."""

    @cached_property
    def total(self) -> int:
        self._guides = sorted(set(self._encoded(self.engine.some(_GUIDES))))
        inner = sorted(self._between(0, self.domain.size, _EDGES + 1))
        edges = [(code, edge) for code in inner if (edge := self._edge(code)) is not None]
        counts = self.engine.counts([edge for _, edge in edges])
        self._codes = [0, *(code for code, _ in edges), self.domain.size]
        self._below = [0, *np.cumsum(counts).tolist()]
        return self._below[-1]

    def rows_below(self, size: int) -> NDArray[np.int64]:
        """How many rows have a code below 0, 1, ..., size."""
        if not self.total:
            return np.zeros(size + 1, dtype=np.int64)
        for first in range(0, size - 1, _EDGES):
            self._cut([(first, size)], range(first + 1, min(first + _EDGES + 1, size)))
        return np.array(self._below[: size + 1], dtype=np.int64)

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        if not self.total:
            return window_of(np.empty(0, dtype=np.uint64), 0, 0)
        self.prefetch([(first, last)])
        pieces = self._pieces(*self._held(first, last))
        found = [self._read[low] for low, _ in pieces if low in self._read]
        codes = [code for part in found for code in part.codes]
        kept: Codes = codes if self.domain.size > 1 << 64 else np.array(codes, dtype=np.uint64)
        whole = Window(kept, np.concatenate([part.counts for part in found]), found[0].before, found[-1].after)
        return CountedColumn(whole).window(first, last)

    def prefetch(self, ranks: Sequence[tuple[int, int]]) -> None:
        """Read several windows, together."""
        if not self.total:
            return
        spans = [self._held(first, last) for first, last in ranks]
        each = int(np.clip(self.total >> 7, *_FEW)) // len(spans)
        few = max([each, *(4 * (last - first) for first, last in spans)])
        while wide := [piece for piece in self._unread(spans) if self._rows(*piece) > few]:
            parts = max(_EDGES // len(wide), _EDGES // 2)
            self._cut(wide, set().union(*(self._between(low, high, parts) for low, high in wide)))
        self._read_pieces(self._unread(spans))

    def _between(self, low: int, high: int, parts: int) -> set[int]:
        """Codes that cut a piece into parts: equal ones of the rows that guide, or if these are few, of the codes."""
        guides = self._guides[bisect_right(self._guides, low) : bisect_left(self._guides, high)]
        if len(guides) >= 2 * parts:
            return {guides[len(guides) * part // parts] for part in range(1, parts)}
        return {low + (high - low) * part // parts for part in range(1, parts)} - {low}

    def _held(self, first: int, last: int) -> tuple[int, int]:
        """The range of ranks clipped to those that there are."""
        return min(max(first, 1), self.total), min(max(last, 1), self.total)

    def _pieces(self, first: int, last: int) -> list[tuple[int, int]]:
        """The pieces that hold these ranks, as pairs of codes."""
        start, stop = bisect_left(self._below, first) - 1, bisect_left(self._below, last)
        return list(pairwise(self._codes[start : stop + 1]))

    def _rows_below(self, code: int) -> int:
        return self._below[bisect_left(self._codes, code)]

    def _rows(self, low: int, high: int) -> int:
        return self._rows_below(high) - self._rows_below(low)

    def _unread(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The pieces that hold the ranks and have rows of unknown codes. A piece of one code needs no reading."""
        found = sorted({piece for span in spans for piece in self._pieces(*span)})
        found = [piece for piece in found if piece[0] not in self._read and self._rows(*piece)]
        for low, high in found:
            if high - low == 1:
                self._keep((low, high), [low], np.array([self._rows(low, high)], dtype=np.int64))
        return [(low, high) for low, high in found if high - low > 1]

    def _cut(self, pieces: Sequence[tuple[int, int]], inner: Iterable[int]) -> None:
        """Count the rows below further codes, all within these pieces, by one query."""
        inner = sorted(inner)
        ends = {code for piece in pieces for code in piece}
        edges = [(code, edge) for code in sorted({*inner, *ends}) if (edge := self._edge(code)) is not None]
        counts = self.engine.counts([edge for _, edge in edges], self._ranges(pieces))
        below = dict.fromkeys((*inner, *ends), int(counts.sum()))  # of these pieces alone
        below |= {0: 0, **dict(zip([code for code, _ in edges], np.cumsum(counts)[:-1].tolist(), strict=True))}
        known = dict(zip(self._codes, self._below, strict=True))
        for low, high in pieces:
            self._unchanged(below[high] - below[low], low, high)
            self._read.pop(low, None)
            start, stop = bisect_right(inner, low), bisect_left(inner, high)
            known |= {code: known[low] + below[code] - below[low] for code in inner[start:stop]}
        self._codes = sorted(known)
        self._below = [known[code] for code in self._codes]

    def _read_pieces(self, pieces: Sequence[tuple[int, int]]) -> None:
        """Read which codes occur in pieces, by one query."""
        if not pieces:
            return
        found = self.engine.values(self._ranges(pieces))
        codes = self._encoded([value for value, _ in found])
        rows = np.array([count for _, count in found], dtype=np.int64)
        for low, high in pieces:
            start, stop = bisect_left(codes, low), bisect_left(codes, high)
            self._keep((low, high), codes[start:stop], rows[start:stop])

    def _encoded(self, values: list[Any]) -> list[int]:
        with suppress(TypeError, ValueError, OverflowError):  # whose messages may show a cell
            cells = np.array(values, dtype=np.float64 if self.kind == "f" else np.int64)
            return [int(code) for code in self.domain.encode(cells)]
        raise ContentError("the column does not hold numbers of its declared kind")

    def _keep(self, piece: tuple[int, int], codes: list[int], rows: NDArray[np.int64]) -> None:
        """Keep what occurs in a piece, equal codes together."""
        low, high = piece
        self._unchanged(int(rows.sum()), low, high)
        different = window_of(codes, 0, 0)
        stops = np.cumsum(different.counts)
        counts = np.diff(np.append(0, np.cumsum(rows)[stops - 1]))
        before, after = self._rows_below(low), self.total - self._rows_below(high)
        self._read[low] = Window(different.codes, counts, before, after)

    def _unchanged(self, rows: int, low: int, high: int) -> None:
        if rows != self._rows(low, high):
            raise ContentError("the table changed while its rows were counted: give one that no one writes to")

    def _ranges(self, pieces: Sequence[tuple[int, int]]) -> list[Range]:
        """The pieces as numbers, neighbours together."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(pieces):
            joined = bool(merged) and merged[-1][1] == low
            merged[-1:] = [(merged[-1][0], high)] if joined else [*merged[-1:], (low, high)]
        return [(self._edge(low), self._edge(high)) for low, high in merged]

    def _edge(self, code: int) -> float | int | None:
        """A number such that the rows below it are those with a smaller code, or None for none of them or for all.

        Integers are clipped to those that an engine binds, before which and after which there are no rows.
        """
        if not 0 < code < self.domain.size:
            return None
        edge = self.domain.threshold(code)
        if self.kind == "f":
            return float(edge)
        whole = math.ceil(edge)
        return None if whole > _MOST else max(whole, -_MOST - 1)
