"""Log-space arithmetic and sums that round up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array

__all__ = ["ROUND_UP", "fraction_up", "log1mexp", "log_weighted_sum", "sum_up"]

ROUND_UP = 1.0 + 1e-12
"""Factor by which closed forms in double precision are inflated: their relative error is below 1e-13."""


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x >= 0, accurate at both ends (Maechler 2012). -inf at 0.

    >>> float(log1mexp(1e-20)), float(log1mexp(50.0)) < 0
    (-46.0517018598809..., True)
    """
    try:
        x = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("x must be a number or an array of numbers, each in the range of a double") from None
    with np.errstate(divide="ignore"):
        small = np.log(-np.expm1(-np.minimum(x, 1.0)))
    return np.where(x < 0.6931471805599453, small, np.log1p(-np.exp(-np.maximum(x, 0.6931471805599453))))


def log_weighted_sum(log_terms: ArrayLike, weights: ArrayLike, *, axis: int = 0) -> Array:
    """log(sum of weights * exp(log_terms)) along an axis, for non-negative weights."""
    return np.asarray(
        logsumexp(np.asarray(log_terms), b=np.asarray(weights), axis=integer("axis", axis, at_least=-64, at_most=63)),
        dtype=np.float64,
    )


def sum_up(values: Sequence[float]) -> float:
    """The smallest double at or above the exact sum of numbers that are not NaN and not -inf.

    >>> sum_up([0.5, 0.5]), sum_up([0.1] * 10) > 1.0
    (1.0, True)
    """
    total = math.fsum(values)
    if math.isfinite(total) and Fraction(total) < sum(map(Fraction, values)):
        return math.nextafter(total, math.inf)
    return total


def fraction_up(value: Fraction) -> float:
    """The smallest double at or above a rational number.

    >>> fraction_up(Fraction(1, 10)), fraction_up(Fraction(1, 3)) >= Fraction(1, 3)
    (0.1, True)
    """
    return number("value", value, rounding="up")
