"""One-dimensional searches that return the safe endpoint, a rough root, and a minimiser.

A search asks a predicate at points and returns one at which it was seen to hold, so a predicate that is not monotone
costs tightness and never soundness. An argument names that side, and so the direction of rounding. No other file
halves an interval by hand.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "crossing", "first_true", "last_true", "minimise", "root_between", "root_on_grids"]

Array = NDArray[np.float64]
Number = TypeVar("Number", int, float)

_ENDLESS: Final = 1 << 65536


@overload
def first_true(
    holds: Callable[[int], bool], low: int, high: int, *, start: int | None = None, step: int = 1, relative: float = 0.0
) -> int | None: ...
@overload
def first_true(
    holds: Callable[[int], bool], low: int, high: None, *, start: int, step: int = 1, relative: float = 0.0
) -> int: ...
def first_true(
    holds: Callable[[int], bool],
    low: int,
    high: int | None,
    *,
    start: int | None = None,
    step: int = 1,
    relative: float = 0.0,
) -> int | None:
    """The smallest integer from low to high, both included, where `holds`, or None if it holds nowhere.

    It was seen to hold at the answer, and not to hold at the number before it if that is at least `low`.

    Args:
        holds: meant to be false up to some number and true from there on.
        low: the smallest candidate.
        high: the limit of the search. None, with a `start`, if it is certain that there is an answer.
        start: where to look first; from there in steps that double until the boundary is passed, then by halving: at
            most 2 log2 |answer - start| + 3 numbers are asked about. Without it the range is halved, log2 of its
            length.
        step: the first step from `start`.
        relative: the answer may be too large by this share of itself; 0 for the smallest number.

    >>> first_true(lambda k: k * k >= 50, 0, 100), first_true(lambda k: k * k >= 50, 0, None, start=1)
    (8, 8)
    >>> first_true(lambda k: k * k >= 50, 0, 7) is None
    True
    """
    end = low + _ENDLESS if high is None else high + 1
    first = _narrow(
        holds,
        good=end,
        bad=low - 1,
        start=start,
        leap=lambda place, turn, up: place + ((1 << turn) - 1) * (step if up else -step),
        middle=lambda good, bad: (good + bad) // 2,
        near=lambda good, bad: good < end and relative > 0.0 and good - bad <= relative * good,
    )
    return None if first == end else first


def last_true(holds: Callable[[int], bool], low: int, high: int, *, start: int | None = None) -> int | None:
    """The largest integer from low to high, both included, where `holds`, or None if it holds nowhere.

    For a predicate that is true up to some number and false from there on. All else is as for `first_true`.

    >>> last_true(lambda k: k * k <= 50, 0, 100), last_true(lambda k: k * k <= 50, 8, 100)
    (7, None)
    """
    beyond = first_true(lambda k: not holds(k), low, high, start=start)
    last = high if beyond is None else beyond - 1
    return last if last >= low else None


def root_between(
    holds: Callable[[float], bool],
    *,
    safe: float,
    unsafe: float,
    start: float | None = None,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> float:
    """A number at which `holds`, next to where it ceases to: the last one there is, or one within the tolerance of it.

    Rounded from `unsafe` towards `safe`, which may be the lower or the upper end. The answer is strictly between
    them and was seen to hold, or it is `safe` itself where nothing was: the ends are not asked about. At most 100
    numbers are, regardless of the range.

    Args:
        holds: meant to be true from `safe` to some number, and false from there to `unsafe`.
        safe: an end at which it is true, or which may be returned anyhow. It may be infinite.
        unsafe: the other end, which may be infinite.
        start: where to look first, in the middle by default; from there by factors 2, 8, 128, ... until the boundary is
            passed, then by halving, in the order of doubles where the ends are far apart.
        relative: the largest distance to a number at which it does not hold (or `unsafe`), as a share of the smaller.
        absolute: the same as it is. Where both are 0 the two are neighbours among doubles.

    >>> root_between(lambda x: x * x >= 2.0, safe=2.0, unsafe=0.0, relative=1e-3)
    1.4150390625
    >>> root_between(lambda x: x * x <= 2.0, safe=0.0, unsafe=2.0, relative=1e-3)
    1.4140625
    """
    good, bad = float(safe), float(unsafe)
    if start is None:
        start = good + 0.5 * (bad - good)
    return _narrow(
        holds,
        good=good,
        bad=bad,
        start=start if _between(start, good, bad) else _middle(good, bad),
        leap=_leap,
        middle=_middle,
        near=(lambda good, bad: abs(good - bad) <= max(absolute, relative * min(abs(good), abs(bad))))
        if absolute or relative
        else (lambda good, bad: good == bad),
    )


def root_on_grids(
    holds: Callable[[Array], NDArray[np.bool_]],
    *,
    safe: float,
    unsafe: float,
    start: float = 1.0,
    relative: float = 1e-11,
    points: int = 32,
) -> float:
    """`root_between` for a vectorised predicate that is expensive to call, and may break down far beyond the answer.

    First at `start` > 0 and over 4, 16, 64, ... times that, no farther than needed, or at many fractions of it. Then at
    about `points` numbers at once. If a predicate that should be monotone is not, for rounding, all numbers that it
    was asked about between the answer and `safe` were seen to hold.

    >>> root_on_grids(lambda x: x * x >= 2.0, safe=1e9, unsafe=0.0, relative=1e-3, points=8) ** 2 >= 2.0
    True
    """
    good, bad, at = float(safe), float(unsafe), start
    while _between(at, good, bad):
        held = bool(holds(np.array([at]))[0])
        good, bad = (at, bad) if held else (good, at)
        if held == (safe > unsafe):
            break
        at *= 4.0
    grid = [_leap(start, turn, False) for turn in range(1, 11)] if at == start else _grid(good, bad, points)
    while abs(good - bad) > relative * min(abs(good), abs(bad)):
        # from the safe side on, the ends left out
        trials = np.array(sorted({x for x in grid if _between(x, good, bad)}, reverse=good > bad))
        if not trials.size:
            break
        failed = np.flatnonzero(~np.asarray(holds(trials), dtype=np.bool_))
        last = int(failed[0]) if failed.size else trials.size
        good, bad = (float(trials[last - 1]) if last else good), (float(trials[last]) if failed.size else bad)
        grid = _grid(good, bad, points)
    return good


def crossing(excess: Callable[[float], float], low: float, high: float, *, relative: float, steps: int = 60) -> float:
    """About where a continuous function changes its sign, to a share of the answer: on either side, so no safe number.

    Brent's method (1973): secants, or inverse quadratics through the last three points, and the middle where those do
    not shorten the bracket fast enough. `excess` has opposite signs at the ends, or is zero at one of them (the caller
    must ensure it). After so many steps the best point so far.

    >>> round(crossing(lambda x: x * x - 2.0, 0.0, 2.0, relative=1e-9), 8)
    1.41421356
    """
    last, best = low, high
    at_last, at_best = excess(last), excess(best)
    if at_last == 0.0:
        return last
    other, at_other, step, before = last, at_last, best - last, best - last
    for _ in range(steps):
        if at_best != 0.0 and (at_last < 0.0) != (at_best < 0.0):
            other, at_other, step, before = last, at_last, best - last, best - last
        if abs(at_other) < abs(at_best):
            last, best, other = best, other, best
            at_last, at_best, at_other = at_best, at_other, at_best
        near, middle = relative * abs(best) / 2.0, (other - best) / 2.0
        if at_best == 0.0 or abs(middle) < near:
            break
        tried = math.inf
        if abs(before) > near and abs(at_best) < abs(at_last):
            if last == other:
                tried = -at_best * (best - last) / (at_best - at_last)
            else:
                one, two = (at_last - at_best) / (last - best), (at_other - at_best) / (other - best)
                bend = two * one * (at_other - at_last)
                tried = -at_best * (at_other * two - at_last * one) / bend if bend else math.inf
        fast = 2.0 * abs(tried) < min(abs(before), 3.0 * abs(middle) - near)
        before, step = (step, tried) if fast else (middle, middle)
        last, at_last = best, at_best
        best += step if abs(step) > near else math.copysign(near, middle)
        at_best = excess(best)
    return best


def minimise(
    function: Callable[[Array], Array], low: float, high: float, *, points: int = 65, zooms: int = 4, shrink: int = 33
) -> tuple[float, float]:
    """The smallest value met on a grid over [low, high], zoomed around its best point: (argument, value).

    `function` maps an array to an array of the same shape and may return inf. The value is one that `function` took,
    so it is valid whenever every value of `function` is.
    """
    grid = np.linspace(low, high, points)
    best_x, best = float(low), np.inf
    for _ in range(zooms + 1):
        values = function(grid)
        i = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
        if values[i] < best:
            best_x, best = float(grid[i]), float(values[i])
        left, right = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, grid.size - 1)])
        if not right > left:
            break
        grid = np.linspace(left, right, shrink)
    return best_x, best


def _narrow(
    holds: Callable[[Number], bool],
    *,
    good: Number,
    bad: Number,
    start: Number | None,
    leap: Callable[[Number, int, bool], Number],
    middle: Callable[[Number, Number], Number],
    near: Callable[[Number, Number], bool],
) -> Number:
    """From `start` in growing steps until the answer changes, then by halving: `good`, or the last number that held."""
    if start is not None and _between(start, good, bad):
        good, bad = (start, bad) if holds(start) else (good, start)
        turn, up = 1, max(good, bad) > start
        # one way only: past the boundary the next number is outside
        while not near(good, bad) and _between(at := leap(start, turn, up), good, bad):
            good, bad = (at, bad) if holds(at) else (good, at)
            turn += 1
    while not near(good, bad) and _between(at := middle(good, bad), good, bad):
        good, bad = (at, bad) if holds(at) else (good, at)
    return good


def _between(x: float, one: float, other: float) -> bool:
    return one < x < other or other < x < one


def _leap(start: float, turn: int, up: bool) -> float:
    """The next number to look at, upwards or downwards of `start`: 2**(2**turn - 1) as large or small."""
    power = float((1 << turn) - 1) if turn < 11 else math.inf
    return start * 2.0 ** (power if up == (start > 0.0) else -power)


def _middle(one: float, other: float) -> float:
    """Halfway: by value within a factor of four, else in the order of doubles. An end where nothing is between."""
    if _close(one, other):
        middle = one + 0.5 * (other - one)
        if _between(middle, one, other):
            return middle
    return _double((_place(one) + _place(other)) // 2)


def _close(one: float, other: float) -> bool:
    least, most = (one, other) if one < other else (other, one)
    return (least > 0.0 and most <= 4.0 * least and most < math.inf) or (most < 0.0 and _close(-most, -least))


def _grid(one: float, other: float, points: int) -> list[float]:
    """Numbers between two, spaced as `_middle` does."""
    if _close(one, other):
        return np.linspace(one, other, points + 2)[1:-1].tolist()
    start, end = _place(one), _place(other)
    return [_double(start + (end - start) * k // (points + 1)) for k in range(1, points + 1)]


def _place(x: float) -> int:
    """How many doubles are between 0 and x, with the sign of x."""
    bits: int = struct.unpack("<q", struct.pack("<d", abs(x)))[0]
    return bits if x >= 0.0 else -bits


def _double(place: int) -> float:
    """The double at a place."""
    size: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return math.copysign(size, place)
