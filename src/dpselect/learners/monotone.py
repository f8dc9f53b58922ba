"""Trees whose answers only rise, or only fall, with a column: their leaves are corrected after the noise.

Claim. Let each tree ask one question a level, and let the right side of a question about a number be that of larger
numbers. After `monotone` the values of a tree rise (or fall) with each column that is to rise (or fall) as long as its
number is not missing. So does a sum of such trees, also in floating point.

Proof. A question about the column divides the leaves into pairs that differ in its answer alone. `monotone` replaces a
pair (p, q) in the wrong order by its mean m, one level after the other. So the pair becomes min(p, m) and max(q, m).
Both are increasing functions of p and of q. Hence two pairs (p, q) and (r, s) with p <= r and q <= s stay in that
order. So a level stays in order when another one is put in order. If the number rises, the answers of its questions
change from left to right one after the other. None of these steps lowers the value. In floating point the mean and a
sum are increasing functions of each value, as rounding is one.

Only released values are used, so nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, expect, integer
from dpselect.numerics.search import Array

__all__ = ["monotone", "signs_of"]


def signs_of(directions: Sequence[int] | None, columns: int, numbers: Sequence[int]) -> tuple[int, ...]:
    """1, -1 or 0 for each of the `numbers`, places among all `columns`, or nothing if no column has a direction.

    Raises `ArgumentError` for other values or lengths, and for a direction of a column that is an indicator.
    """
    if directions is None:
        return ()
    expect("monotonic_cst", directions, list, tuple, np.ndarray)
    found = [integer("each of monotonic_cst", each, at_least=-1, at_most=1) for each in directions]
    if len(found) != columns:
        raise ArgumentError(f"monotonic_cst must hold 1, -1 or 0 for each of the {columns} columns, got {len(found)}")
    if any(found[place] for place in set(range(columns)) - set(numbers)):
        raise ArgumentError("monotonic_cst must be 0 for indicators: only numbers rise")
    return tuple(found[place] for place in numbers) if any(found) else ()


def _rising(left: Array, right: Array) -> list[Array]:
    """Pairs of values in order: the same if they are, else their means."""
    mean = (left + right) / 2.0
    return [np.minimum(left, mean), np.maximum(right, mean)]


def monotone(values: Array, columns: Any, signs: Sequence[int]) -> Array:
    """The values of a tree's leaves, corrected, shape (leaves, outputs).

    Args:
        values: shape (leaves, outputs). Two outputs are scores of two classes, and their difference is corrected. Their
            mean is lost, which changes no probability.
        columns: the column of each level, numbers first.
        signs: the direction of each of the numbers, of `signs_of`.

    >>> monotone(np.array([[1.0], [0.0], [4.0], [3.0]]), [0, 1], [1, 1]).T
    array([[0.5, 0.5, 3.5, 3.5]])
    """
    paired = values.shape[1] == 2
    found = ((values[:, 1] - values[:, 0]) / 2.0 if paired else values[:, 0]).reshape((2,) * len(columns))
    for level, column in enumerate(columns):
        sign = signs[column] if column < len(signs) else 0
        if sign:
            found = np.stack(_rising(*sign * np.moveaxis(found, level, 0)), axis=level) * sign
    flat = found.reshape(-1, 1)
    return np.hstack([-flat, flat]) if paired else flat
