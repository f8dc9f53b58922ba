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
# One evaluation handles orders up to these; past the last the unsampled Gaussian, which is never smaller, is used.
_BUCKETS = (8.0, 32.0, 128.0, 512.0, 2048.0)


def log_moment(orders: Array, *, noise_multiplier: float, sampling_rate: float) -> Array:
    """log A at each order (above 1) for 0 < sampling_rate < 1; relative error about 1e-12 in log A.

    A - 1 is summed as phi(x) (exp(order g) - 1) - order q (phi(x - s) - phi(x)), whose correction integrates to zero
    and cancels the first-order part, so that a tiny A - 1 keeps its digits.
    """
    orders = np.asarray(orders, dtype=np.float64)
    s, q = 1.0 / noise_multiplier, sampling_rate
    step = min(0.2, 0.25 * noise_multiplier)
    count = int(np.ceil((2 * _REACH + float(np.max(orders)) * s) / step)) + 1
    x = -_REACH + step * np.arange(count)
    log_phi = -0.5 * x * x - 0.5 * np.log(2 * np.pi)
    tilted = x * s - 0.5 * s * s
    # g = log(1 - q + q exp(t)) without cancellation at small q or overflow at large t
    g = np.where(
        tilted < 1.0, np.log1p(q * np.expm1(np.minimum(tilted, 1.0))), np.logaddexp(np.log1p(-q), np.log(q) + tilted)
    )
    correction = q * (np.exp(log_phi + tilted) - np.exp(log_phi))
    power = orders[:, None] * g
    exponent = power + log_phi
    shift = np.maximum(np.max(exponent, axis=1, keepdims=True), 0.0)
    small = power < 1.0
    direct = np.exp(log_phi - shift) * np.expm1(np.where(small, power, 0.0))
    large = np.exp(np.where(small, -np.inf, exponent) - shift) - np.where(small, 0.0, np.exp(log_phi - shift))
    terms = np.where(small, direct, large) - orders[:, None] * correction * np.exp(-shift)
    excess = step * np.sum(terms, axis=1)
    with np.errstate(divide="ignore"):
        log_excess = shift[:, 0] + np.log(np.maximum(excess, 0.0))
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
        plain = orders / (2.0 * self.noise_multiplier**2)
        single = plain.copy()
        if self.sampling_rate < 1.0:
            low = 1.0
            for high in _BUCKETS:
                chosen = (orders > low) & (orders <= high)
                if np.any(chosen):
                    log_a = log_moment(
                        orders[chosen], noise_multiplier=self.noise_multiplier, sampling_rate=self.sampling_rate
                    )
                    # rounding of A near 1 is absolute, hence the added 4e-16
                    single[chosen] = (log_a * ROUND_UP + 4e-16 * self.sampling_rate) / (orders[chosen] - 1.0)
                low = high
        return np.asarray(self.steps * np.minimum(single, plain)).reshape(shape)
