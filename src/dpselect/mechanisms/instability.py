"""How many rows must change until order statistics are too far apart: exact, on integers.

Data are integer multiples of a granularity, sorted. Ranks count from 1. Beyond the first and the last rank stand values
below and above everything, since a changed row may take any value. Everything here is secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms.grid import round_to_grid
from dpselect.mechanisms.scores import as_vector
from dpselect.numerics.search import first_true

__all__ = [
    "changes_until",
    "declared_rows",
    "largest_gap",
    "read_granularity",
    "sensitivity_of_middle",
    "smallest_gap",
    "sorted_units",
]

Units = NDArray[np.int64]
_BEYOND = 1 << 61
"""Above every value (at most 2**52 units), and differences still fit."""


def sorted_units(values: ArrayLike, granularity: float) -> Units:
    """The rows as multiples of `granularity` (a power of two), sorted. See `declared_rows`.

    Each is rounded by itself, and NaN or infinite ones become 0, so that neighbours stay neighbours.
    """
    return np.sort((round_to_grid(declared_rows(values), granularity) / granularity).astype(np.int64))


def read_granularity(name: str, granularity: SupportsFloat) -> float:
    """Parse a power of two in [2**-300, 2**300]."""
    parsed = number(name, granularity, at_least=2.0**-300, at_most=2.0**300)
    round_to_grid(0.0, parsed)
    return parsed


def declared_rows(values: ArrayLike) -> NDArray[np.float64]:
    """The rows as doubles, as they are.

    Raises `ArgumentError` unless they are one-dimensional, real and not empty (the number of rows is public).
    """
    try:
        array = as_vector("values", values)
    except TypeError:
        array = np.empty(0)
    if array.ndim != 1 or not array.size:
        raise ArgumentError("values must be a one-dimensional array of real numbers with at least one row")
    return array


def _at(rows: Units, ranks: Units) -> Units:
    inside = rows[np.clip(ranks, 1, len(rows)) - 1]
    return np.where(ranks < 1, -_BEYOND, np.where(ranks > len(rows), _BEYOND, inside))


def largest_gap(rows: Units, low: int, high: int, changes: int) -> int:
    """The largest x(high) - x(low) that `changes` replaced rows can make, low < high.

    Of the changes, a put rows from rank `high` on above everything and the others put rows from `low` down below
    everything. The result is the max over a of x(high + a) - x(low - changes + a). Nothing moves an order statistic
    further.
    """
    up = np.arange(changes + 1)
    return int(np.max(_at(rows, high + up) - _at(rows, low - changes + up)))


def smallest_gap(rows: Units, low: int, high: int, changes: int) -> int:
    """The smallest one, at least 0: the rows are put in between, min over a of x(high - changes + a) - x(low + a)."""
    up = np.arange(changes + 1)
    return max(int(np.min(_at(rows, high - changes + up) - _at(rows, low + up))), 0)


def sensitivity_of_middle(rows: Units, trimmed: int, changes: int) -> int:
    """The largest change of the sum of the ranks trimmed + 1 .. n - trimmed by one more row, after `changes` of them.

    Replacing a row shifts the window of summed ranks by one place at most. Up it costs x(n - trimmed + 1) - x(trimmed +
    1), down x(n - trimmed) - x(trimmed). With one rank left this is the median.
    Source: Nissim, Raskhodnikova, Smith 2007, Proposition 3.4.
    """
    count = len(rows)
    up = largest_gap(rows, trimmed + 1, count - trimmed + 1, changes)
    return max(up, largest_gap(rows, trimmed, count - trimmed, changes))


def changes_until(violated: Callable[[int], bool], most: int) -> int:
    """The smallest number of changes for which a condition that stays true once true holds, or `most` + 1 if none.

    >>> changes_until(lambda changes: changes >= 3, 10)
    3
    """
    found = first_true(violated, 0, most)
    return most + 1 if found is None else found
