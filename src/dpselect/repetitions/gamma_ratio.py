"""Ratios of gamma functions without the cancellation of two large logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from dpselect.repetitions.distribution import FloatArray

__all__ = ["log_gamma_ratio"]

_STIRLING_FROM = 16.0


def log_gamma_ratio(x: ArrayLike, d: ArrayLike) -> FloatArray:
    """log(Gamma(x + d) / Gamma(x)) for x > 0 and x + d > 0, to about 1e-15 of itself plus 1e-14.

    If both arguments are large, Stirling's series is differenced by hand. Subtracting the two logarithms would lose
    about as many digits as they have before the point.
    """
    x, d = np.asarray(x, dtype=np.float64), np.asarray(d, dtype=np.float64)
    large = np.minimum(x, x + d) >= _STIRLING_FROM
    y = np.where(large, x, 2.0 * _STIRLING_FROM)
    e = np.where(large, d, 0.0)
    differenced = (y - 0.5) * np.log1p(e / y) + e * np.log(y + e) - e + _correction(y + e) - _correction(y)
    return np.where(large, differenced, gammaln(x + d) - gammaln(x))


def _correction(x: FloatArray) -> FloatArray:
    """log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x >= 16, to below 1e-16."""
    r = 1.0 / (x * x)
    return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * 691 / 360360))))) / x
