"""Unsorted columns whose rows are found by rank in a pass or two, without sorting them or holding them in memory.

A sample brackets the ranks that you ask for. One pass counts the rows below the bracket and keeps those inside it, ties
compressed to counts. The sample decides how long that takes, never the result: a bracket that missed is widened and
read again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.domains import Domain, threshold_in
from dpselect.ordered.order_statistics.intervals import RankedColumn, Window, window_of

__all__ = ["ChunkedColumn", "CountedColumn", "PaddedColumn", "Progress", "counted_window"]

Chunks = Callable[[], Iterator[NDArray[Any]]]
Progress = Callable[[int], None]
"""Told how many rows were read; a number that depends on how rows are read, so for the operator's eyes only."""

_SAMPLE = 1 << 16
_KEEP = 1 << 19


@dataclass(frozen=True, repr=False)
class CountedColumn:
    """Everything in one window: for weighted rows, and for columns that were counted already."""

    whole: Window

    @cached_property
    def _running(self) -> NDArray[np.int64]:
        return np.cumsum(self.whole.counts)

    @property
    def total(self) -> int:
        return self.whole.before + int(self.whole.counts.sum()) + self.whole.after

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        whole, running = self.whole, self._running
        if not len(running):
            return whole
        start = min(int(np.searchsorted(running, first - whole.before, side="left")), len(running) - 1)
        stop = min(int(np.searchsorted(running, last - whole.before, side="left")), len(running) - 1) + 1
        skipped = int(running[start - 1]) if start else 0
        rest = int(running[-1] - running[stop - 1])
        return Window(whole.codes[start:stop], whole.counts[start:stop], whole.before + skipped, whole.after + rest)


def counted_window(codes: NDArray[np.uint64], units: NDArray[np.int64]) -> Window:
    """All rows in any order, each with the number of rows that it counts as."""
    order = np.argsort(codes, kind="stable")
    ties = window_of(codes[order], 0, 0)
    starts = np.cumsum(ties.counts) - ties.counts
    return Window(ties.codes, np.add.reduceat(units[order], starts) if len(starts) else ties.counts, 0, 0)


@dataclass(frozen=True, repr=False)
class PaddedColumn:
    """A column with `pad` rows more at the first and at the last of its `size` codes: public ones, not data.

    An answer that should be left of every row finds the first code heavy then, however few rows there are.
    """

    column: RankedColumn
    size: int
    pad: int

    @property
    def total(self) -> int:
        return self.column.total + 2 * self.pad

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`."""
        inner = self.column.window(first - self.pad, last - self.pad)
        low, high = first <= self.pad, last > self.total - self.pad
        if len(inner.codes):
            low, high = low or int(inner.codes[0]) == 0, high or int(inner.codes[-1]) == self.size - 1
        if self.size == 1:
            low = high = True
        rows = [*zip(inner.codes, inner.counts, strict=True), *([(self.size - 1, self.pad)] if high else [])]
        merged: dict[int, int] = {0: self.pad} if low else {}
        for code, count in rows:
            merged[int(code)] = merged.get(int(code), 0) + int(count)
        before, after = 0 if low else inner.before + self.pad, 0 if high else inner.after + self.pad
        codes = list(merged)
        kept = codes if isinstance(inner.codes, list) else np.array(codes, dtype=np.uint64)
        return Window(kept, np.array(list(merged.values()), dtype=np.int64), before, after)


@dataclass(repr=False)
class ChunkedColumn:
    """Rows that are read in chunks as often as needed, in the same order or another.

    `chunks()` yields arrays of real numbers, integers or timestamps. NaN and NaT are missing. The chunks must hold
    the same rows every time (you must ensure this: the ranks of two readings are put together).
    """

    chunks: Chunks
    domain: Domain
    progress: Progress | None = None
    _found: list[CountedColumn] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self._surveyed[1]

    @cached_property
    def _surveyed(self) -> tuple[NDArray[Any], int]:
        return self._survey()

    def _read(self) -> Iterator[NDArray[Any]]:
        for chunk in self.chunks():
            yield chunk
            if self.progress is not None:
                self.progress(len(chunk))

    def _survey(self) -> tuple[NDArray[Any], int]:
        """Count the rows and keep every k-th of them, k doubled whenever they become too many: (in order, count)."""
        parts: list[NDArray[Any]] = []
        total = kept = skip = 0
        step = 1
        for chunk in self._read():
            total += len(chunk) - _missing(chunk)
            taken = chunk[skip::step]
            skip = (skip - len(chunk)) % step
            parts.append(taken.copy())
            kept += len(taken)
            if kept > 4 * _SAMPLE:
                step *= 4  # searches: a coarser sample, and wider windows, while a file is read
                parts = [np.concatenate(parts)[::4]]
                kept = len(parts[0])
        sample = np.concatenate(parts) if parts else np.empty(0)
        return np.sort(sample[sample == sample]), total  # NaN and NaT differ from themselves

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`. Windows inside one that was read before cost no reading."""
        if not self.total:
            return Window(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), 0, 0)
        first, last = self._held(first, last)
        spread = 5.0
        while True:
            for found in self._found:
                if found.whole.before < first and last <= self.total - found.whole.after:
                    return found.window(first, last)
            self._found += self._extract([self._bracket(first, last, spread)])
            spread *= 8.0  # searches: a coarser sample, and wider windows, while a file is read

    def prefetch(self, ranks: Sequence[tuple[int, int]]) -> None:
        """Read the windows of several ranges of ranks in one pass."""
        if not self.total:
            return
        wanted = sorted(self._bracket(*self._held(first, last), 5.0) for first, last in ranks)
        merged: list[tuple[int, int]] = []
        for low, high in wanted:
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        self._found += self._extract(merged)

    def _held(self, first: int, last: int) -> tuple[int, int]:
        """The range of ranks clipped to those that there are."""
        return min(max(first, 1), self.total), min(max(last, 1), self.total)

    def _bracket(self, first: int, last: int, spread: float) -> tuple[int, int]:
        """Codes that the ranks are between, most likely, or the whole domain when the sample does not tell."""
        sample, total = self._surveyed
        count, end = len(sample), self.domain.size - 1

        def place(rank: int, side: float) -> float:
            share = rank / total
            return share * count + side * (spread * math.sqrt(count * share * (1.0 - share)) + spread)

        low, high = math.floor(place(first - 1, -1.0)), math.ceil(place(last, 1.0))
        low_code = int(self.domain.encode(sample[low : low + 1])[0]) if 0 <= low < count else 0
        high_code = int(self.domain.encode(sample[high : high + 1])[0]) if 0 <= high < count else end
        return low_code, max(high_code, low_code)

    def _extract(self, brackets: list[tuple[int, int]]) -> list[CountedColumn]:
        """The windows of all rows with codes in these brackets, which do not overlap, in one pass."""
        size = self.domain.size
        keepers = [_Keeper(self.domain, low, high, size) for low, high in brackets]
        for chunk in self._read():
            for keeper in keepers:
                keeper.take(chunk)
        return [CountedColumn(keeper.window(self.total)) for keeper in keepers]


class _Keeper:
    """Counts the rows below a bracket of codes and keeps those inside it. Secret."""

    def __init__(self, domain: Domain, low: int, high: int, size: int) -> None:
        self._domain = domain
        self._low = domain.threshold(low) if low > 0 else None
        self._high = domain.threshold(high + 1) if high + 1 < size else None
        self._only = low if low == high else None
        self._before = self._alike = 0
        self._codes: list[NDArray[np.uint64]] = []
        self._found: Window | None = None
        self._kept = 0

    def take(self, chunk: NDArray[Any]) -> None:
        """Read one chunk."""
        inside = chunk == chunk if self._low is None else _at_least(chunk, self._low)
        if self._low is not None:
            self._before += len(chunk) - _missing(chunk) - int(np.count_nonzero(inside))
        if self._high is not None:
            inside &= ~_at_least(chunk, self._high)
        if self._only is not None:  # a heavy atom: its rows are counted, not collected
            self._alike += int(np.count_nonzero(inside))
            return
        rows = chunk[inside]
        if len(rows):
            self._codes.append(np.asarray(self._domain.encode(rows), dtype=np.uint64))
            self._kept += len(rows)
            if self._kept > _KEEP:
                self._compress()

    def _compress(self, *, end: bool = False) -> Window:
        """The rows that were kept so far, ties put together."""
        fresh = np.sort(np.concatenate(self._codes)) if self._codes else np.empty(0, dtype=np.uint64)
        found, known = window_of(fresh, 0, 0), self._found
        if not end and known is None and 2 * len(found.codes) > len(fresh):  # hardly any ties: sorted once more, later
            self._codes, self._kept = [fresh], -2 * len(fresh)
            return found
        if known is not None:
            codes, counts = np.append(known.codes, found.codes), np.append(known.counts, found.counts)
            found = counted_window(codes, counts)
        # as much again may come before the next time, so that the work stays linear
        self._codes, self._found, self._kept = [], found, -len(found.codes)
        return found

    def window(self, total: int) -> Window:
        """The rows that were kept."""
        if self._only is not None:
            alike = np.array([self._alike] if self._alike else [], dtype=np.int64)
            atom = np.full(len(alike), self._only, dtype=np.uint64)
            return Window(atom, alike, self._before, total - self._before - self._alike)
        found = self._compress(end=True)
        return Window(found.codes, found.counts, self._before, total - self._before - int(found.counts.sum()))


def _missing(chunk: NDArray[Any]) -> int:
    """How many values are NaN or NaT."""
    return 0 if chunk.dtype.kind in "iub" else int(np.count_nonzero(chunk != chunk))


def _at_least(chunk: NDArray[Any], threshold: Any) -> NDArray[np.bool_]:
    """chunk >= threshold."""
    fitting = threshold_in(chunk.dtype, threshold)
    return np.zeros(len(chunk), dtype=bool) if fitting is None else np.asarray(chunk >= fitting)
