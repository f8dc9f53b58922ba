"""The exponential mechanism over an ordered domain, drawn exactly from the few rows around the target rank.

Between two neighbouring data values every answer has the same score. So a sorted column of n rows cuts a domain of any
size into at most 2n + 1 pieces. The score falls by one for each row away from the target rank. The pieces far from it
hold almost nothing, and how little is known without looking at them. A uniform real that is known bit by bit decides
for a piece as soon as its bits, the rounding errors and what was not looked at leave no doubt. In the rare other cases
more is looked at. The result has exactly the law that real arithmetic on all rows would give it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.domains import Codes, Domain, threshold_in
from dpselect.ordered.round_values import CodeMeasure
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyUniform, exponential_enclosure

__all__ = [
    "ASIDE",
    "PrefetchedColumn",
    "RankedColumn",
    "SortedColumn",
    "Window",
    "draw_code",
    "draw_ranked",
    "window_of",
]

ASIDE = 45.0
"""Ranks are looked at until what is left aside has a share of at most exp(-45) = 2**-64.9."""


@dataclass(frozen=True, repr=False)
class Window:
    """Neighbouring codes that occur, with the number of rows at each and on both sides. Secret.

    `codes` are different and increasing, `counts` positive. Every row is counted exactly once.
    """

    codes: Codes
    counts: NDArray[np.int64]
    before: int
    after: int


class RankedColumn(Protocol):
    """A column whose rows can be found by rank. Secret: `total` counts rows that are not missing."""

    @property
    def total(self) -> int: ...

    def window(self, first: int, last: int) -> Window:
        """A window with the rows of ranks `first` .. `last` (from 1 on, clipped at 1 and `total`) and their ties."""
        ...


@runtime_checkable
class PrefetchedColumn(RankedColumn, Protocol):
    """A column that is cheaper to read in several places at once than one after the other."""

    def prefetch(self, ranks: Sequence[tuple[int, int]]) -> None:
        """Read the windows of several ranges of ranks together."""
        ...


def window_of(codes: Codes, before: int, after: int) -> Window:
    """The window of sorted codes with ties."""
    if isinstance(codes, list):
        starts = [place for place in range(len(codes)) if not place or codes[place] != codes[place - 1]]
        counts = [stop - start for start, stop in pairwise([*starts, len(codes)])]
        return Window([codes[p] for p in starts], np.array(counts, dtype=np.int64), before, after)
    first = np.empty(len(codes), dtype=bool)
    first[:1] = True
    np.not_equal(codes[1:], codes[:-1], out=first[1:])
    places = np.flatnonzero(first)
    return Window(codes[places], np.diff(np.append(places, len(codes))), before, after)


@dataclass(frozen=True, repr=False)
class SortedColumn:
    """Sorted values without missing ones, `before` of them left out at the beginning and `after` at the end."""

    values: Any
    domain: Domain
    before: int = 0
    after: int = 0

    @property
    def total(self) -> int:
        return self.before + len(self.values) + self.after

    def window(self, first: int, last: int) -> Window:
        """Constant time but for binary searches: only rows of the window are encoded, and of an atom at an end none."""
        values, count = self.values, len(self.values)
        start = min(max(first - 1 - self.before, 0), max(count - 1, 0))
        stop = max(min(last - self.before, count), min(start + 1, count))
        if start == stop:
            return window_of(self.domain.encode(values[start:stop]), self.before + start, self.after + count - stop)
        ends = values[[start, stop - 1]] if isinstance(values, np.ndarray) else [values[start], values[stop - 1]]
        low, high = (int(code) for code in self.domain.encode(ends))
        before, after = self._left(low, start), count - self._left(high + 1, count, stop)
        first_end = self._left(low + 1, count - after, start + 1)
        last_start = self._left(high, stop, start) if high > low else first_end
        inner = window_of(self.domain.encode(values[first_end:last_start]), 0, 0)
        codes, counts = [low, *inner.codes], [first_end - before, *inner.counts]
        if high > low:
            codes, counts = [*codes, high], [*counts, count - after - last_start]
        kept = codes if isinstance(inner.codes, list) else np.array(codes, dtype=np.uint64)
        return Window(kept, np.array(counts, dtype=np.int64), self.before + before, self.after + after)

    def _left(self, code: int, high: int, low: int = 0) -> int:
        """How many of the values have a smaller code, which is known to be between `low` and `high`."""
        if code <= 0:
            return 0
        if code >= self.domain.size:
            return len(self.values)
        threshold = self.domain.threshold(code)
        if isinstance(self.values, np.ndarray) and self.values.dtype != object:
            fitting = threshold_in(self.values.dtype, threshold)
            return high if fitting is None else low + int(np.searchsorted(self.values[low:high], fitting, side="left"))
        return bisect_left(self.values, threshold, low, high)


def draw_code(
    column: RankedColumn,
    *,
    size: int,
    target: Fraction,
    rate: Fraction,
    random: RandomSource,
    measure: CodeMeasure | None = None,
) -> int:
    """Code z in 0 .. size-1 with probability proportional to weight(z) * exp(rate * score(z)), exactly.

    The weights are those of the public `measure`, or equal. score(z) = min(rows with code <= z - target, target - rows
    with code < z). The privacy of the draw depends on how `target` and the scores move between neighbours: see
    `quantile_rate`.

    With the target in [0, total] some code has a score >= 0: that of the row whose rank is target, rounded up. Its
    weight is at least 1. The codes further than w ranks away have at most exp(-rate * w) times that of all codes.
    A target outside lowers all scores by its distance to the next end.
    """
    return draw_ranked(column, size=size, target=target, rate=rate, random=random, measure=measure)[0]


def draw_ranked(
    column: RankedColumn,
    *,
    size: int,
    target: Fraction,
    rate: Fraction,
    random: RandomSource,
    measure: CodeMeasure | None = None,
) -> tuple[int, int]:
    """`draw_code`, and how many rows are at most that code. The second number is secret."""
    weighed = CodeMeasure(size) if measure is None else measure
    uniform, points = LazyUniform(random), weighed.points
    width = math.ceil((math.log(points) + ASIDE) / float(rate)) + 2
    nearest = min(max(target, Fraction(0)), Fraction(column.total))
    low, high = math.floor(nearest), math.ceil(nearest)
    while True:
        window = column.window(low - width, high + width)
        if not len(window.codes):
            return weighed.code_at(random.below(points)), 0
        sizes = _sizes(window, weighed)
        piece = _choose_fast(window, sizes, target, rate, uniform)
        if piece is None:
            piece = _choose_slow(window, sizes, target, rate, uniform)
        if piece is not None:
            # pieces alternate: what is below the first code, a code, what is between it and the next, ...
            codes = (piece + 1) // 2  # searches: wider windows, more bits of lazy numbers: part of the draw
            start = int(window.codes[codes - 1]) + 1 - piece % 2 if piece else 0
            at_most = window.before + int(window.counts[:codes].sum())
            return weighed.code_at(weighed.start(start) + random.below(int(sizes[piece]))), at_most
        width *= 16  # searches: wider windows, more bits of lazy numbers: part of the draw


def _sizes(window: Window, measure: CodeMeasure) -> Codes:
    """The weight of the codes below the first one of the window, at it, between it and the next, ..."""
    codes = window.codes
    if isinstance(codes, list) and not measure.levels:
        gaps = [b - a - 1 for a, b in pairwise([*codes, measure.size])]
        return [codes[0], *(part for gap in gaps for part in (1, gap))]
    exact = np.asarray(codes, dtype=np.uint64)
    starts, own = np.asarray(measure.starts(exact)), measure.weights(exact)
    sizes = np.empty(2 * len(exact) + 1, dtype=np.uint64)
    sizes[0] = starts[0]
    sizes[1::2] = own
    sizes[2:-1:2] = np.diff(starts) - own[:-1]
    sizes[-1] = measure.points - int(starts[-1]) - int(own[-1])
    return sizes


def _choose_fast(window: Window, sizes: Codes, target: Fraction, rate: Fraction, uniform: LazyUniform) -> int | None:
    """The piece, by double precision with a margin, or None when it is too close to call.

    Scores are counted from the best. A weight then has a relative error below 2**-38, and a running sum one of 2**-52 a
    piece. This is for integers of ranks below 2**53 and exponents below 745 in magnitude, with NumPy's exp and log
    within 2**-44.
    """
    whole = math.floor(target)
    ranks = np.empty(len(window.counts) + 1)
    ranks[0] = window.before - whole
    np.cumsum(window.counts, out=ranks[1:])
    ranks[1:] += window.before - whole
    ranks -= float(target - whole)
    scores = np.empty(len(sizes))
    scores[0::2] = -np.abs(ranks)
    np.minimum(-ranks[:-1], ranks[1:], out=scores[1::2])
    with np.errstate(divide="ignore"):
        if isinstance(sizes, np.ndarray):
            logs = np.log(sizes)
        else:
            logs = np.array([math.log(size) if size else -math.inf for size in sizes])
    logs += scores * float(rate)
    logs -= logs.max()
    margin = (2.0**-30 if isinstance(sizes, list) else 2.0**-37) + (len(sizes) + float(rate)) * 2.0**-52
    with np.errstate(under="ignore"):
        weights = np.exp(logs)
    low, high = float(weights[0]), float(weights[-1])
    # what is outside the window weighs at most `low` and `high`; it is certain only if there are no rows in it
    aside_low, aside_high = (low if window.before else 0.0), (high if window.after else 0.0)
    weights[0] -= aside_low
    weights[-1] -= aside_high
    running = np.cumsum(weights)
    total = float(running[-1])
    value, bits = uniform.extend(64)
    point = (value / (1 << bits)) * total
    found = int(np.searchsorted(running, point, side="right"))
    if found >= len(sizes):
        return None
    slack = 2.0 * margin * (total + low + high)
    above = point - (float(running[found - 1]) if found else -math.inf)
    below = float(running[found]) - point
    # for any weights a, b of what is outside: u (a + total + b) against a + running
    return found if above > aside_low + slack and below > aside_high + slack else None


def _choose_slow(window: Window, sizes: Codes, target: Fraction, rate: Fraction, uniform: LazyUniform) -> int | None:
    """The piece by rational arithmetic, with as many digits as it takes, or None if the window is too narrow."""
    ranks = [window.before, *(window.before + np.cumsum(window.counts)).tolist()]
    scores = [-abs(ranks[0] - target)]
    for less, at_most in pairwise(ranks):
        scores += [min(target - less, at_most - target), -abs(at_most - target)]
    lengths = [int(length) for length in sizes]
    best = max(score for score, length in zip(scores, lengths, strict=True) if length)
    precision, last = 128, len(lengths) - 1
    while True:
        value, bits = uniform.extend(precision)
        lows, highs = [], []
        for place, (length, score) in enumerate(zip(lengths, scores, strict=True)):
            low, high = exponential_enclosure(rate * max(best - score, Fraction(0)), precision + 64)
            aside = (place == 0 and window.before) or (place == last and window.after)
            lows.append(Fraction(0) if aside else low * length)
            highs.append(high * length)
        # the real number u is in [value, value + 1] / 2**bits; piece j holds it if below <= u * total < below + j
        u_low, u_high = Fraction(value, 1 << bits), Fraction(value + 1, 1 << bits)
        before_low = before_high = Fraction(0)
        rest_low, rest_high = sum(lows, Fraction(0)), sum(highs, Fraction(0))
        for place in range(len(lengths)):
            rest_low, rest_high = rest_low - lows[place], rest_high - highs[place]
            # u * (before + this + rest) - before, at its least, and the same for the upper end
            least = u_low * (lows[place] + rest_low) - (1 - u_low) * before_high
            most = u_high * rest_high - (1 - u_high) * (before_low + lows[place])
            aside = (place == 0 and window.before) or (place == last and window.after)
            if least >= 0 and most < 0 and not aside:
                return place
            before_low, before_high = before_low + lows[place], before_high + highs[place]
        if (window.before or window.after) and precision > 1000:
            return None
        precision *= 2  # searches: wider windows, more bits of lazy numbers: part of the draw
