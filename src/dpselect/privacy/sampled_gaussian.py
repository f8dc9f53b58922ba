"""The Renyi curve of the Poisson-sampled Gaussian mechanism, by quadrature, for every real order at once.

Mironov, Talwar, Zhang 2019: under adding or removing one row both Renyi divergences are at most
log A / (order - 1) with A = E over x ~ N(0,1) of (1 - q + q exp(x s - s^2/2))^order, s = 1/noise_multiplier
(Theorems 4 and 5). The trapezoid rule converges geometrically on this integrand: it is analytic in a strip of
half-width pi * noise_multiplier, so a step of a quarter of the noise multiplier leaves an error far below rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics import ROUND_UP

__all__ = ["SampledGaussianRenyi", "log_moment"]

Array = NDArray[np.float64]
_REACH = 12.0
# One evaluation handles orders up to these; past the last, or where it would need too many points, a closed form.
_BUCKETS = (8.0, 32.0, 128.0, 512.0, 2048.0)
_MOST_POINTS = 100_000
_BLOCK = 1 << 20
_ROUNDING = 1e-15


def _points(order: float, noise_multiplier: float) -> tuple[float, int]:
    """Step and number of points that cover the integrand up to this order."""
    step = min(0.2, 0.25 * noise_multiplier)
    return step, int(np.ceil(min(2 * _REACH + order / noise_multiplier, 1e9 * step) / step)) + 1


def log_moment(orders: Array, *, noise_multiplier: float, sampling_rate: float) -> Array:
    """log A at each order (above 1) for 0 < sampling_rate < 1; relative error about 1e-12 in log A.

    With u = q (exp(x s - s^2/2) - 1), whose mean is zero, A - 1 is the mean of (1+u)^order - 1 - order u: terms that
    are non-negative and of second order, so that a tiny A - 1 keeps its digits.
    """
    orders = np.asarray(orders, dtype=np.float64)[:, None]
    s, q = 1.0 / noise_multiplier, sampling_rate
    step, count = _points(float(np.max(orders)), noise_multiplier)
    x = -_REACH + step * np.arange(count)
    log_phi = -0.5 * x * x - 0.5 * np.log(2 * np.pi)
    tilted = x * s - 0.5 * s * s
    u = q * np.expm1(np.minimum(tilted, 50.0))
    # g = log(1 + u) without overflow at large exponents
    g = np.where(tilted < 50.0, np.log1p(u), np.logaddexp(np.log1p(-q), np.log(q) + tilted))
    phi_u = q * (np.exp(log_phi + tilted) - np.exp(log_phi))
    power = orders * g
    exponent = power + log_phi
    shift = np.maximum(np.max(exponent, axis=1, keepdims=True), 0.0)
    scale = np.exp(-shift)
    small = power < 1.0
    grown = np.where(
        small,
        np.exp(log_phi) * scale * np.expm1(np.where(small, power, 0.0)),
        np.exp(np.where(small, -np.inf, exponent) - shift) - np.exp(log_phi) * scale,
    )
    # binomial series where order * u is small: order (order-1)/2 u^2 (1 + (order-2)/3 u (1 + (order-3)/4 u (...)))
    near = (np.abs(orders * u) < 0.1) & (tilted < 50.0)
    v = np.where(near, u, 0.0)
    series = np.ones_like(v)
    for k in range(18, 2, -1):
        series = 1.0 + (orders - (k - 1.0)) / k * v * series
    second = 0.5 * orders * (orders - 1.0) * v * v * np.exp(log_phi) * scale * series
    terms = np.where(near, second, grown - orders * phi_u * scale + _ROUNDING * orders * np.abs(phi_u) * scale)
    with np.errstate(divide="ignore"):
        log_excess = shift[:, 0] + np.log(np.maximum(step * np.sum(terms, axis=1), 0.0))
    return np.logaddexp(0.0, log_excess)


@dataclass(frozen=True)
class SampledGaussianRenyi:
    """`steps` compositions of the Poisson-sampled Gaussian mechanism (adding or removing one row)."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    theorem: str = "sampled Gaussian mechanism (Mironov, Talwar, Zhang 2019, Theorems 4 and 5)"

    def __call__(self, orders: Array) -> Array:
        shape = np.shape(orders)
        orders = np.ravel(np.asarray(orders, dtype=np.float64))
        nm, q = self.noise_multiplier, self.sampling_rate
        # (1 - q + q r)^order is convex in r: a closed form that is at most the unsampled Gaussian
        with np.errstate(over="ignore", divide="ignore"):
            plain = orders / nm / nm / 2.0
            mixed = np.logaddexp(np.log1p(-q), np.log(q) + (orders - 1.0) * plain) / (orders - 1.0)
        single = np.minimum(mixed, plain) * ROUND_UP
        low = 1.0
        for high in _BUCKETS:
            count = _points(high, nm)[1]
            if q == 1.0 or count > _MOST_POINTS:
                break
            chosen = np.flatnonzero((orders > low) & (orders <= high))
            for part in np.array_split(chosen, -(-chosen.size * count // _BLOCK) or 1):
                if part.size:
                    log_a = log_moment(orders[part], noise_multiplier=nm, sampling_rate=q) * ROUND_UP
                    single[part] = np.minimum(single[part], log_a / (orders[part] - 1.0))
            low = high
        return np.asarray(self.steps * single).reshape(shape)
