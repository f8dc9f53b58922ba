"""The supremum of a function from bounds over cells, which are divided where it may be largest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpselect.numerics.search import Array

__all__ = ["Supremum", "supremum_over_cells"]


class Supremum(NamedTuple):
    """attained <= the supremum <= bound."""

    attained: float
    bound: float


def supremum_over_cells(
    measure: Callable[[Array, float], tuple[Array, Array]],
    cells: Array,
    *,
    split: Callable[[Array], Array] | None = None,
    relative: float = 1e-10,
    absolute: float = 0.0,
    enough: float = -math.inf,
    stop: float = math.inf,
    limit: int = 150_000,
) -> Supremum:
    """An enclosure of the largest value of a function over all cells, by branch and bound.

    All cells that may hold more than the largest value met (and the tolerance) are divided at once, because `measure`
    is vectorised. If the limit does not allow for all of them, those with the largest bounds are divided. The same
    cells give the same result. A NaN among the bounds counts as infinity, among the values as none.

    Args:
        measure: from an array of cells, and the value below which bounds do not matter, to an upper bound for each
            cell and to a value that the function takes in it, or -inf. Bounds need not shrink with their cells.
        cells: of shape (sides, n). Intervals have two rows, the lower and the upper ends.
        split: from cells to all the parts they are divided into. By default intervals are halved.
        relative: where to stop: bound <= attained + relative |attained| + absolute.
        absolute: see `relative`.
        enough: a value below which the function does not matter. The bound is not pressed below it.
        stop: a value at which the search is over once it is met. The bound is then as far as it got.
        limit: the most cells that are measured (when a cell is split into two), but all of the first ones always are.

    >>> def parabola(cells, settled):
    ...     left, right = cells
    ...     return right * (1.0 - left), left * (1.0 - left)
    >>> found = supremum_over_cells(parabola, np.array([[0.0, 0.4], [0.4, 1.0]]), relative=1e-4)
    >>> round(found.attained, 4), round(found.bound, 4)
    (0.25, 0.25)
    """
    split = _halves if split is None else split
    attained, settled, bound, measured = -math.inf, enough, math.inf, 0
    waiting, tops = cells[:, :0], np.empty(0)
    while True:
        bounds, values = measure(cells, max(_above(attained, relative, absolute), settled))
        measured += cells.shape[1]
        attained = max(attained, float(np.max(np.fmax(values, -math.inf), initial=-math.inf)))
        waiting = np.concatenate((waiting, cells), axis=1)
        tops = np.concatenate((tops, np.where(np.isnan(bounds), math.inf, bounds)))
        bound = min(bound, max(attained, settled, float(np.max(tops, initial=-math.inf))))
        useful = tops > max(_above(attained, relative, absolute), settled)
        allowed = (limit - measured) // 2
        if attained >= stop or not np.any(useful) or allowed < 1:
            return Supremum(attained, max(attained, bound))
        # of what is left aside only the largest bound counts
        settled = max(settled, float(np.max(tops[~useful], initial=-math.inf)))
        waiting, tops = waiting[:, useful], tops[useful]
        if tops.size > allowed:
            order = np.argsort(-tops, kind="stable")
            waiting, tops = waiting[:, order], tops[order]
        cells, waiting, tops = split(waiting[:, :allowed]), waiting[:, allowed:], tops[allowed:]


def _above(attained: float, relative: float, absolute: float) -> float:
    return attained + relative * abs(attained) + absolute if math.isfinite(attained) else attained


def _halves(cells: Array) -> Array:
    low, high = cells
    middle = low + 0.5 * (high - low)
    return np.array([np.concatenate((low, middle)), np.concatenate((middle, high))])
