"""Fixed-point numbers in float64, so that every sum over rows or columns is exact.

Why: the sensitivity of a sum is a statement about real numbers. A matrix product in floating point rounds differently
when a row is added (other block sizes, another order). So each remaining row's term, and the sum itself, may move a
little for reasons that no clipping bounds. When the factors are small multiples of powers of two, every product and
every partial sum is a float64 exactly, fused or not, in any order. The contribution of a row is then a function of that
row and of public numbers alone. The sum of the contributions is the sum of real numbers that the theorems speak of.

One assumption is left. NumPy's `exp`, `tanh`, `sqrt` and division of one number must give the same result at each place
of an array.
"""

from __future__ import annotations

import math

import numpy as np

from dpselect.numerics.search import Array

__all__ = ["EXACT", "STEP", "WEIGHT_LIMIT", "exact_products", "round_weights", "truncate"]

STEP = 2.0**-16
"""The spacing of features, activations and error terms; all are of order one."""

EXACT = 2.0**53
"""Integers up to this magnitude are doubles."""

WEIGHT_LIMIT = 2.0**12
"""Weights are clipped here before they meet the data; a unit row then has scores in the thousands."""


def truncate(values: Array, step: float = STEP, *, out: Array | None = None) -> Array:
    """The multiple of `step` (a power of two) next to each value on the side of zero, so that no norm grows.

    It is written to `out`, which may be `values`, if that is given: new memory takes longer than the arithmetic.

    >>> truncate(np.array([0.75, -0.75]), 0.5)
    array([ 0.5, -0.5])
    """
    found = np.asarray(np.multiply(values, 1.0 / step, out=out))
    np.trunc(found, out=found)
    found *= step
    return found


def round_weights(weights: Array, largest_input: float) -> Array:
    """Weights fit for exact products with rows of multiples of `STEP` whose absolute values sum to `largest_input`.

    The weights are a private output already, so that rounding and clipping them is free.
    """
    step = 2.0 ** math.ceil(math.log2(WEIGHT_LIMIT * largest_input / STEP / EXACT))
    return np.asarray(np.rint(np.clip(weights, -WEIGHT_LIMIT, WEIGHT_LIMIT) / step) * step)


def exact_products(rows: Array, weights: Array) -> Array:
    """Rows of `unit_rows` times weights that are rounded so that the products are exact, shape (rows, columns).

    The model's answer for a row is then a function of that row alone, to the last bit.
    """
    # a unit row and its constant: the absolute values sum to at most sqrt(columns) + 1
    return np.asarray(rows @ round_weights(weights, math.sqrt(len(weights)) + 1.0))
