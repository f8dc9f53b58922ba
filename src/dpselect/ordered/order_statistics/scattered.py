"""Ties broken at random: every row falls at a uniform place inside its code.

If a column is cut at a quantile, a value that many rows share must be cut too, or the ranks on both sides are off. So a
code of weight w becomes w * 2**bits finer ones and every row takes one of them at random. The fine places are drawn
when a rank is first looked at and stay what they were: the law is that of drawing them for all rows at once.

Privacy: the fine place of a row is noise of its own, so one row more or less is one fine row more or less. Anything
that is private for the fine rows is private for the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.domains import Codes
from dpselect.ordered.order_statistics.intervals import RankedColumn, Window, window_of
from dpselect.ordered.round_values import CodeMeasure, points_at_most
from dpselect.randomness import RandomSource

__all__ = ["ColumnPart", "ScatteredColumn", "fine_bits", "fine_codes"]

_WHOLE = 1 << 22
"""Columns of up to this many rows are scattered at once."""


def fine_bits(size: int) -> int:
    """How many bits are left in 64 for places inside a point of a domain of this many values, with any measure."""
    return max(64 - (points_at_most(size) - 1).bit_length(), 0)


def fine_codes(
    codes: NDArray[np.uint64], counts: NDArray[np.int64], measure: CodeMeasure, bits: int, random: RandomSource
) -> NDArray[np.uint64]:
    """A random fine code for each of the `counts` rows of every code: any of the weight * 2**bits that it has.

    Source: docs/theory/round-values.md, Theorem 2.
    """
    rows, shift = np.repeat(np.asarray(measure.starts(codes), dtype=np.uint64), counts), np.uint64(bits)
    if not bits:
        return rows
    words = random.words(len(rows))
    if not measure.levels:
        return rows << shift | words >> np.uint64(64 - bits)
    return (rows << shift) + _high(np.repeat(measure.weights(codes) << shift, counts), words)


def _high(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The upper 64 of the 128 bits of each product."""
    half, mask = np.uint64(32), np.uint64((1 << 32) - 1)
    a, b, c, d = first >> half, first & mask, second >> half, second & mask
    low, cross = b * d, a * d
    middle = b * c + (low >> half) + (cross & mask)  # below 2**64
    return np.asarray(a * c + (cross >> half) + (middle >> half))


@dataclass(frozen=True, repr=False, eq=False)
class _Segment:
    """Fine codes in order, `before` rows to their left: all rows of the codes from `first` to `last`."""

    codes: NDArray[Any]
    before: int
    first: int
    last: int


@dataclass(repr=False)
class ScatteredColumn:
    """The rows of `column` at fine places, `bits` bits below the points of their codes. Secret.

    `wide`: for domains on which the two together have more than 64 bits: a row's place is a number beside its code, and
    its fine code a Python integer. For a mechanism that looks at few rows of a fine domain and must not meet ties.
    """

    column: RankedColumn
    bits: int
    random: RandomSource
    measure: CodeMeasure
    wide: bool = False
    _segments: list[_Segment] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.column.total

    @property
    def at_once(self) -> bool:
        """Whether all rows are scattered when the first one is looked at."""
        return self.total <= _WHOLE and not self.wide

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        if not self.total:
            return window_of(np.empty(0, dtype=np.uint64), 0, 0)
        first, last = min(max(first, 1), self.total), min(max(last, 1), self.total)
        segment = self._segment(first, last)
        codes = segment.codes
        start = int(np.searchsorted(codes, codes[first - 1 - segment.before], side="left"))
        stop = int(np.searchsorted(codes, codes[last - 1 - segment.before], side="right"))
        fine: Codes = codes[start:stop]
        if self.wide:
            fine = self._widened(codes[start:stop])
        return window_of(fine, segment.before + start, self.total - segment.before - stop)

    def _segment(self, first: int, last: int) -> _Segment:
        for segment in self._segments:
            if segment.before < first and last <= segment.before + len(segment.codes):
                return segment
        if self.at_once:
            first, last = 1, self.total
        segment = self._joined(self.column.window(first, last))
        self._segments.append(segment)
        return segment

    def _joined(self, window: Window) -> _Segment:
        """The rows of a window. Those that have a place already keep it."""
        coarse = np.asarray(window.codes, dtype=np.uint64)
        first, last = int(coarse[0]), int(coarse[-1])
        met = [s for s in self._segments if s.first <= last and first <= s.last]
        fresh = np.ones(len(coarse), dtype=bool)
        for segment in met:
            fresh &= (coarse < np.uint64(segment.first)) | (coarse > np.uint64(segment.last))
        rows = self._placed(coarse[fresh], window.counts[fresh])
        self._segments = [s for s in self._segments if s not in met]
        before = min([window.before, *(s.before for s in met)])
        codes = np.concatenate([rows, *(s.codes for s in met)]) if met else rows
        if met or self.wide or np.any(codes[1:] < codes[:-1]):  # rows of different codes are in order already
            codes = np.sort(codes)
        return _Segment(codes, before, min([first, *(s.first for s in met)]), max([last, *(s.last for s in met)]))

    def _placed(self, codes: NDArray[np.uint64], counts: NDArray[np.int64]) -> NDArray[Any]:
        if not self.wide:
            return fine_codes(codes, counts, self.measure, self.bits, self.random)
        rows = np.repeat(codes, counts)
        pairs = np.empty(len(rows), dtype=[("code", np.uint64), ("place", np.uint64)])
        pairs["code"], pairs["place"] = rows, self.random.words(len(rows)) >> np.uint64(64 - self.bits)
        return pairs

    def _widened(self, pairs: NDArray[Any]) -> list[int]:
        """Places are as many as 2**bits, evenly spaced over the weight of the code."""
        codes = pairs["code"]
        starts, weights = np.asarray(self.measure.starts(codes)).tolist(), self.measure.weights(codes).tolist()
        rows = zip(starts, weights, pairs["place"].tolist(), strict=True)
        return [(start << self.bits) + weight * place for start, weight, place in rows]


@dataclass(frozen=True, repr=False)
class ColumnPart:
    """The rows of ranks `start` + 1 .. `stop` of a column as a column. Their codes are counted from `origin`.

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
