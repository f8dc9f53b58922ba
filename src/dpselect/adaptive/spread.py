"""Quantile intervals, and what being inside one says about the mean.

The interval qi(a, b) of a distribution Y holds the v with P(Y <= v) > a and P(Y < v) < b. Take an answer inside
qi(rank, 1 - rank) of an estimator. It is as good as one new run of the estimator, up to the share `rank` of the worst
runs on either side.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

from dpselect.errors import number

__all__ = [
    "cantelli_tail",
    "error_from_mean_deviation",
    "error_from_standard_deviation",
    "gaussian_half_width",
    "hoeffding_subsample",
    "rank_from_mean_deviation",
    "rank_from_standard_deviation",
]


def _ranks(lower: SupportsFloat, upper: SupportsFloat | None) -> tuple[float, float]:
    if upper is None:
        low = number("lower_rank", lower, at_least=0.0, below=0.5)
        return low, 1.0 - low
    low = number("lower_rank", lower, at_least=0.0, below=1.0)
    return low, number("upper_rank", upper, above=low, at_most=1.0)


def cantelli_tail(deviations: SupportsFloat) -> float:
    """Return a bound on how often a value is so many standard deviations above its mean.

    P(Y >= EY + x sd) <= 1/(1 + x^2), for x >= 0 (Cantelli). Two-point distributions attain it.

    Args:
        deviations: x, in standard deviations, at least 0.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if an argument is not a number.
    """
    x = number("deviations", deviations, at_least=0.0)
    return 1.0 / (1.0 + x * x)


def error_from_standard_deviation(lower_rank: SupportsFloat, upper_rank: SupportsFloat | None = None) -> float:
    """Return how many standard deviations a value in qi(lower_rank, upper_rank) is from the mean at most.

    It is sqrt((1 - r)/r) for qi(r, 1 - r), by Cantelli on both sides: a supremum that two-point distributions attain.
    At the quartiles it is sqrt(3), where Feldman and Steinke's Remark 4.5 has 2.

    Args:
        lower_rank: at least 0 and below 1, or below 1/2 without an `upper_rank`.
        upper_rank: above `lower_rank` and at most 1. None, the default, is 1 - lower_rank.

    Returns:
        The bound in standard deviations, inf if `lower_rank` is 0 or `upper_rank` is 1.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if an argument is not a number.

    >>> round(error_from_standard_deviation(0.25), 7), round(error_from_standard_deviation(0.1, 0.5), 7)
    (1.7320508, 3.0)
    """
    low, high = _ranks(lower_rank, upper_rank)
    if low == 0.0 or high == 1.0:
        return math.inf
    return math.sqrt(max((1.0 - low) / low, high / (1.0 - high)))


def rank_from_standard_deviation(error: SupportsFloat) -> float:
    """The largest rank r such that qi(r, 1 - r) is within `error` standard deviations: 1/(1 + error^2)."""
    return cantelli_tail(number("error", error, at_least=1.0))


def error_from_mean_deviation(lower_rank: SupportsFloat, upper_rank: SupportsFloat | None = None) -> float:
    """Return how many mean absolute deviations a value in qi(lower_rank, upper_rank) is from the mean at most.

    It is 1/(2 r) for qi(r, 1 - r), by Markov on either side of the mean. At the quartiles it is 2, where Feldman and
    Steinke's Corollary 4.4 has 4.

    Args:
        lower_rank: at least 0 and below 1, or below 1/2 without an `upper_rank`.
        upper_rank: above `lower_rank` and at most 1. None, the default, is 1 - lower_rank.

    Returns:
        The bound in mean absolute deviations, inf if `lower_rank` is 0 or `upper_rank` is 1.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if an argument is not a number.

    >>> error_from_mean_deviation(0.25)
    2.0
    """
    low, high = _ranks(lower_rank, upper_rank)
    if low == 0.0 or high == 1.0:
        return math.inf
    return max(0.5 / low, 0.5 / (1.0 - high))


def rank_from_mean_deviation(error: SupportsFloat) -> float:
    """The largest rank r such that qi(r, 1 - r) is within `error` mean absolute deviations."""
    return 0.5 / number("error", error, at_least=1.0)


def gaussian_half_width(rank: SupportsFloat) -> float:
    """Half the width of qi(rank, 1 - rank) of a normal law, in standard deviations, exact for normal estimators."""
    from scipy.special import ndtri

    return float(-ndtri(number("rank", rank, above=0.0, at_most=0.5)))


def hoeffding_subsample(*, rank: SupportsFloat, error: SupportsFloat, width: SupportsFloat = 2.0) -> int:
    """Rows for the mean of values in an interval of this width to be within `error` outside probability `rank`.

    One side, Hoeffding: t >= width^2 ln(1/rank) / (2 error^2). Then qi(rank, 1 - rank) is within `error` of the mean.

    >>> hoeffding_subsample(rank=1e-6, error=0.1)
    2764
    """
    rank, error = number("rank", rank, above=0.0, below=1.0), number("error", error, at_least=1e-100)
    width = number("width", width, above=0.0, at_most=1e50)
    return math.ceil(width * width * -math.log(rank) / (2.0 * error * error) * (1.0 + 1e-12))
