"""The Renyi curve of the Poisson-sampled Gaussian mechanism under replacing one row.

Let s = 1/noise_multiplier, f = 1 - q + q exp(x s - s^2/2) and g = 1 - q + q exp(-x s - s^2/2). Both directions are at
most log A / (order - 1). A is the mean of f^order g^(1-order) over x ~ N(0,1). Source: docs/theory/samples.md, Theorem
4.

A - 1 is the mean of f^order g^(1-order) - 1 - order (f-1) - (1-order) (g-1), which is not negative. The trapezoid rule
sums it. For |Im x| <= Y <= pi/(2s), |f| is at most its value at the real part, and |g| at least that over the root of
2. So a step h errs by at most 2 exp(Y^2/2) 2^((order-1)/2) A / (exp(2 pi Y/h) - 1), which is below 1e-25 A here (see
that page). The mass outside the points is below 1e-20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array

__all__ = ["ReplacedGaussianRenyi"]

_LARGEST = 256.0
"""Orders up to this are summed. Others get a closed form."""
_MOST_POINTS = 50_000
_UNIT = 2.0**-53


@dataclass(frozen=True)
class ReplacedGaussianRenyi:
    """`steps` compositions of the Poisson-sampled Gaussian mechanism, under replacing one row."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    theorem: str = "sampled Gaussian mechanism under replacing a row (docs/theory/samples.md, Theorem 4)"

    def __call__(self, orders: Array) -> Array:
        flat = np.ravel(np.asarray(orders, dtype=np.float64))
        s, q = 1.0 / self.noise_multiplier, self.sampling_rate
        with np.errstate(over="ignore"):
            # x^order y^(1-order) is jointly convex: at most the share q of a Gaussian with means 2s apart
            plain = 2.0 * flat * s * s
            growth = (flat - 1.0) * plain
            far = np.logaddexp(math.log1p(-q), math.log(q) + growth)
            mixed = np.where(growth < 1.0, np.log1p(q * np.expm1(np.minimum(growth, 1.0))), far) / (flat - 1.0)
        single = np.minimum(mixed, plain) * ROUND_UP
        for i in np.flatnonzero(flat <= _LARGEST).tolist():
            found = _log_moment(s, q, float(flat[i]))
            single[i] = min(single[i], found / (flat[i] - 1.0) * ROUND_UP)
        return np.asarray(self.steps * single).reshape(np.shape(orders))


@lru_cache(maxsize=4096)
def _log_moment(s: float, q: float, order: float) -> float:
    """log A, rounded up, or inf if it takes too many points."""
    strip = min(0.5 * math.pi / s, 4.0)
    step = 2.0 * math.pi * strip / (0.5 * strip * strip + 0.35 * (order - 1.0) + 60.0)
    # g is at least 1 - q, and for x < 0 it is at least q exp(-s^2/2)
    above = s * order + math.sqrt(2.0 * (50.0 - order * (math.log(q) + math.log1p(-q)) + 0.5 * order * s * s))
    least = max(math.log1p(-q), math.log(q) - 0.5 * s * s)
    below = s + math.sqrt(2.0 * (50.0 + math.log(order) - (order - 1.0) * least))
    if not (above + below) / step < _MOST_POINTS:
        return math.inf
    x = np.asarray(np.arange(-math.ceil(below / step), math.ceil(above / step) + 1) * step, dtype=np.float64)
    log_f, log_g = _log_ratio(x * s - 0.5 * s * s, q), _log_ratio(-x * s - 0.5 * s * s, q)
    log_phi = -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)
    exponent = order * log_f + (1.0 - order) * log_g
    shift = float(np.max(exponent + log_phi))
    if shift > 1.0 or float(np.max(exponent)) > 600.0:
        rounding = 8.0 * _UNIT * (order * (np.abs(log_f) + np.abs(log_g)) + np.abs(log_phi) + 10.0)
        total = step * float(np.sum(np.exp(exponent + log_phi - shift) * (1.0 + rounding)))
        return max(shift + math.log(total), 0.0) + 1e-14 * (1.0 + abs(shift))
    phi, f, g, power = np.exp(log_phi), np.expm1(log_f), np.expm1(log_g), np.expm1(exponent)
    excess = np.maximum(power - order * f - (1.0 - order) * g, 0.0)
    logs = order * (np.abs(log_f) + np.abs(log_g))
    error = 8.0 * _UNIT * (logs * (1.0 + power) + order * (np.abs(f) + np.abs(g)) + excess * (10.0 + np.abs(log_phi)))
    found = step * float(np.sum(phi * (excess + error)))
    return math.log1p(found * (1.0 + 1e-12) + 1e-20)


def _log_ratio(exponent: Array, q: float) -> Array:
    """log(1 - q + q exp(exponent))."""
    small = np.log1p(q * np.expm1(np.minimum(exponent, 1.0)))
    return np.asarray(np.where(exponent < 1.0, small, np.logaddexp(math.log1p(-q), math.log(q) + exponent)))
