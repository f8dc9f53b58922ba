"""One-dimensional searches over vectorised functions. Soundness never depends on finding the optimum.

Every bound here is valid at each point of its search, so a search may stop early and only lose tightness; a root
search returns the endpoint at which the condition was seen to hold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_unsafe", "minimise", "smallest_safe"]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]


def minimise(
    function: Function, low: float, high: float, *, points: int = 65, zooms: int = 4, shrink: int = 33
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


def smallest_safe(
    function: Function,
    target: float,
    *,
    start: float = 1.0,
    limit: float = 1e5,
    relative: float = 1e-11,
    points: int = 33,
) -> float:
    """Close above the smallest x >= 0 with function(x) <= target, for a function that is meant to decrease.

    Returns a point at which the condition was seen to hold, or inf when it holds nowhere up to `limit`.
    """
    if float(function(np.zeros(1))[0]) <= target:
        return 0.0
    low, high = 0.0, start
    while not float(function(np.array([high]))[0]) <= target:
        low, high = high, 4.0 * high
        if high > limit:
            return float("inf")
    while high - low > relative * high:
        grid = np.linspace(low, high, points)[1:]
        if not grid[0] > low:
            break
        good = function(grid) <= target
        good[-1] = True
        # the first good point after the last bad one, so that noise in the function cannot move the answer below it
        first = int(np.flatnonzero(~good)[-1]) + 1 if not good.all() else 0
        if first == 0 and float(grid[0]) == high:
            break
        low, high = (low if first == 0 else float(grid[first - 1])), float(grid[first])
    return high


def largest_unsafe(
    function: Function,
    target: float,
    *,
    start: float = 1.0,
    limit: float = 1e5,
    relative: float = 1e-11,
    points: int = 33,
) -> float:
    """Close below the largest x >= 0 with function(x) > target, for a function that is meant to decrease; 0 if none.

    Returns a point at which the condition was seen to hold, or `limit` when it holds there.
    """
    if not float(function(np.zeros(1))[0]) > target:
        return 0.0
    low, high = 0.0, start
    while float(function(np.array([high]))[0]) > target:
        low, high = high, 4.0 * high
        if low > limit:
            return limit
    while high - low > relative * high:
        grid = np.linspace(low, high, points)[:-1]
        bad = function(grid) > target
        bad[0] = True
        last = int(np.flatnonzero(bad)[-1])
        step = float(grid[1] - grid[0])
        if not step > 0:
            break
        low, high = float(grid[last]), float(grid[last] + step)
    return low
