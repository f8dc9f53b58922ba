"""Ties broken at random: every row falls at a uniform place inside its code.

Where a column is cut at a quantile, a value that many rows share must be cut too, or the ranks on both sides are off.
So a code becomes 2**bits finer ones and every row takes one of them at random. The fine places are drawn when a rank
is first looked at and stay what they were: the law is that of drawing them for all rows at once.

Privacy: the fine place of a row is noise of its own, so one row more or less is one fine row more or less, and
whatever is private for the fine rows is private for the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.order_statistics.intervals import RankedColumn, Window, window_of
from dpselect.ordered.sources.adapters import counted_column
from dpselect.ordered.sources.columns import CountedColumn
from dpselect.randomness import RandomSource

__all__ = ["ColumnPart", "ScatteredColumn", "fine_bits", "scattered_units", "unplaced"]

P = TypeVar("P", bound="Placed")

_WHOLE = 1 << 22
"""Columns of up to this many rows are scattered at once."""


def fine_bits(size: int) -> int:
    """How many bits are left in 64 for places inside a code."""
    return max(64 - (size - 1).bit_length(), 0)


def scattered_units(
    codes: NDArray[np.uint64], units: NDArray[np.int64], bits: int, random: RandomSource
) -> CountedColumn:
    """Rows of several units: each takes one fine place, with all its units, so that it is on one side of every cut."""
    fine = codes << np.uint64(bits) | random.words(len(codes)) >> np.uint64(64 - bits) if bits else codes
    return counted_column(fine, units)


class Placed(Protocol):
    """Rows that have their places: all those of the codes from `first` to `last`."""

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...


def unplaced(window: Window, segments: Sequence[P]) -> tuple[NDArray[np.uint64], list[P], int, int]:
    """The codes of the rows of a window that have no place yet, the segments that hold the others, and the codes from
    the first to the last of them all."""
    coarse = np.asarray(window.codes, dtype=np.uint64)
    low, high = int(coarse[0]), int(coarse[-1])
    met = [s for s in segments if s.first <= high and low <= s.last]
    fresh = np.ones(len(coarse), dtype=bool)
    for segment in met:
        fresh &= (coarse < np.uint64(segment.first)) | (coarse > np.uint64(segment.last))
    ends = min([low, *(s.first for s in met)]), max([high, *(s.last for s in met)])
    return np.repeat(coarse[fresh], window.counts[fresh]), met, *ends


@dataclass(frozen=True, repr=False, eq=False)
class _Segment:
    """Fine codes in order, `before` rows to their left; whole coarse codes from `first` to `last`."""

    codes: NDArray[np.uint64]
    before: int
    first: int
    last: int


@dataclass(repr=False)
class ScatteredColumn:
    """The rows of `column` at fine places. Secret."""

    column: RankedColumn
    bits: int
    random: RandomSource
    _segments: list[_Segment] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.column.total

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        if not self.total:
            return window_of(np.empty(0, dtype=np.uint64), 0, 0)
        first, last = max(first, 1), min(last, self.total)
        segment = self._segment(first, last)
        codes = segment.codes
        start = int(np.searchsorted(codes, codes[first - 1 - segment.before], side="left"))
        stop = int(np.searchsorted(codes, codes[last - 1 - segment.before], side="right"))
        return window_of(codes[start:stop], segment.before + start, self.total - segment.before - stop)

    def _segment(self, first: int, last: int) -> _Segment:
        for segment in self._segments:
            if segment.before < first and last <= segment.before + len(segment.codes):
                return segment
        whole = self.total <= _WHOLE
        segment = self._joined(self.column.window(1, self.total) if whole else self.column.window(first, last))
        self._segments.append(segment)
        return segment

    def _joined(self, window: Window) -> _Segment:
        """The rows of a window; those that have a place already keep it."""
        rows, met, first, last = unplaced(window, self._segments)
        if self.bits:
            rows = rows << np.uint64(self.bits) | self.random.words(len(rows)) >> np.uint64(64 - self.bits)
        self._segments = [s for s in self._segments if s not in met]
        before = min([window.before, *(s.before for s in met)])
        codes = np.sort(np.concatenate([rows, *(s.codes for s in met)]))
        return _Segment(codes, before, first, last)


@dataclass(frozen=True, repr=False)
class ColumnPart:
    """The rows of ranks `start` + 1 .. `stop` of a column as a column; their codes are counted from `origin`.

    Rows that are tied may be on both sides of an end.
    """

    column: RankedColumn
    start: int
    stop: int
    origin: int

    @property
    def total(self) -> int:
        return self.stop - self.start

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        if not self.total:
            return window_of(np.empty(0, dtype=np.uint64), 0, 0)
        first, last = max(first, 1), min(last, self.total)
        found = self.column.window(first + self.start, last + self.start)
        ends = np.clip(found.before + np.append(0, np.cumsum(found.counts)), self.start, self.stop)
        inside = np.flatnonzero(np.diff(ends))
        codes = np.asarray(found.codes, dtype=np.uint64)[inside] - np.uint64(self.origin)
        before = int(ends[inside[0]]) - self.start
        return Window(codes, np.diff(ends)[inside], before, self.stop - int(ends[inside[-1] + 1]))
