"""Ties broken at random on domains of any size: a row's place inside its code is a number beside it.

As `ScatteredColumn`, with codes that are Python integers: for a mechanism that looks at few rows of a fine domain and
must not meet ties, however many rows share a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.order_statistics.intervals import RankedColumn, Window, window_of
from dpselect.ordered.order_statistics.scattered import unplaced
from dpselect.randomness import RandomSource

__all__ = ["PairedColumn"]


@dataclass(frozen=True, repr=False, eq=False)
class _PairSegment:
    """Rows by code and place, in order, `before` of them to their left; whole codes from `first` to `last`."""

    codes: NDArray[np.uint64]
    places: NDArray[np.uint64]
    before: int
    first: int
    last: int


@dataclass(repr=False)
class PairedColumn:
    """The rows of `column` at places of `bits` bits, at most 64, inside their codes. Secret.

    Places are drawn when a code is first looked at and stay what they were.
    """

    column: RankedColumn
    bits: int
    random: RandomSource
    _segments: list[_PairSegment] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.column.total

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        if not self.total:
            return window_of([], 0, 0)
        first, last = min(max(first, 1), self.total), min(max(last, 1), self.total)
        segment = self._segment(first, last)
        codes, places = segment.codes, segment.places
        start, stop = first - 1 - segment.before, last - segment.before
        while start and codes[start - 1] == codes[start] and places[start - 1] == places[start]:
            start -= 1
        while stop < len(codes) and codes[stop] == codes[stop - 1] and places[stop] == places[stop - 1]:
            stop += 1
        pairs = zip(codes[start:stop].tolist(), places[start:stop].tolist(), strict=True)
        fine = [code << self.bits | place for code, place in pairs]
        return window_of(fine, segment.before + start, self.total - segment.before - stop)

    def _segment(self, first: int, last: int) -> _PairSegment:
        for segment in self._segments:
            if segment.before < first and last <= segment.before + len(segment.codes):
                return segment
        segment = self._joined(self.column.window(first, last))
        self._segments.append(segment)
        return segment

    def _joined(self, window: Window) -> _PairSegment:
        """The rows of a window; those that have a place already keep it."""
        rows, met, first, last = unplaced(window, self._segments)
        drawn = self.random.words(len(rows)) >> np.uint64(64 - self.bits)
        self._segments = [s for s in self._segments if s not in met]
        codes = np.concatenate([rows, *(s.codes for s in met)])
        places = np.concatenate([drawn, *(s.places for s in met)])
        order = np.lexsort((places, codes))
        before = min([window.before, *(s.before for s in met)])
        return _PairSegment(codes[order], places[order], before, first, last)
