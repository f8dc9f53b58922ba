"""Log-space arithmetic."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

__all__ = ["log1mexp", "log_weighted_sum"]


def log1mexp(x: ArrayLike) -> NDArray[np.float64]:
    """log(1 - exp(-x)) for x >= 0, accurate at both ends (Maechler 2012). -inf at 0.

    >>> float(log1mexp(1e-20)), float(log1mexp(50.0)) < 0
    (-46.0517018598809..., True)
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore"):
        small = np.log(-np.expm1(-np.minimum(x, 1.0)))
    return np.where(x < 0.6931471805599453, small, np.log1p(-np.exp(-np.maximum(x, 0.6931471805599453))))


def log_weighted_sum(log_terms: ArrayLike, weights: ArrayLike, *, axis: int = 0) -> NDArray[np.float64]:
    """log(sum of weights * exp(log_terms)) along an axis; weights are non-negative."""
    return np.asarray(logsumexp(np.asarray(log_terms), b=np.asarray(weights), axis=axis), dtype=np.float64)
