"""Exact confidence limits for a probability, from counts (Clopper, Pearson 1934).

For C ~ Binomial(n, p): P[lower_limit(C, n, error) > p] <= error, and the same for upper_limit(C, n, error) < p, for
every n and every p. Nothing here is asymptotic. The limits are moved outward until the tail itself, an incomplete beta
function with a relative error below 1e-10, is at most `error` with that much to spare.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from dpselect.numerics.search import Array

__all__ = ["lower_limit", "upper_limit"]

_ROUNDING: Final = 1.0 + 1e-10


def lower_limit(count: ArrayLike, trials: ArrayLike, error: float) -> Array:
    """The largest p with P[Binomial(trials, p) >= count] <= error, rounded down (0 for a count of 0).

    >>> lower_limit(10, 10, 0.01).round(4).tolist()
    0.631
    """
    seen, size = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    hits = np.maximum(seen, 1.0)
    limit = np.nan_to_num(betaincinv(hits, size - hits + 1.0, error / _ROUNDING**2), nan=0.0)
    step = 1e-13
    while np.any(wrong := betainc(hits, size - hits + 1.0, limit) * _ROUNDING > error):
        # searches: moves limits outward by steps that grow, whole arrays at once
        limit, step = np.where(wrong, np.maximum(limit * (1.0 - step), 0.0), limit), 2.0 * step
    return np.where(seen > 0.0, limit, 0.0)


def upper_limit(count: ArrayLike, trials: ArrayLike, error: float) -> Array:
    """The smallest p with P[Binomial(trials, p) <= count] <= error, rounded up (1 when every trial counted).

    >>> upper_limit(0, 10, 0.01).round(4).tolist()
    0.369
    """
    seen, size = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    misses = np.maximum(size - seen, 1.0)
    limit = np.nan_to_num(betainccinv(size - misses + 1.0, misses, error / _ROUNDING**2), nan=1.0)
    step = 1e-13
    while np.any(wrong := betaincc(size - misses + 1.0, misses, limit) * _ROUNDING > error):
        # searches: moves limits outward by steps that grow, whole arrays at once
        limit, step = np.where(wrong, np.minimum(limit * (1.0 + step), 1.0), limit), 2.0 * step
    return np.where(seen < size, limit, 1.0)
