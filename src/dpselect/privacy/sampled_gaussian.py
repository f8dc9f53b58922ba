"""The Renyi curve of the Poisson-sampled Gaussian mechanism, by quadrature, for every real order at once.

Mironov, Talwar, Zhang 2019: under adding or removing one row both Renyi divergences are at most
log A / (order - 1) with A = E over x ~ N(0,1) of (1 - q + q exp(x s - s^2/2))^order, s = 1/noise_multiplier
(Theorems 4 and 5). The trapezoid rule converges geometrically on this integrand: it is analytic in a strip of
half-width pi * noise_multiplier, so a step of 0.4 noise multipliers leaves an error of about exp(-2 pi^2 / 0.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics import ROUND_UP

__all__ = ["SampledGaussianRenyi", "log_moment"]

Array = NDArray[np.float64]
_REACH = 10.5
# One evaluation handles orders up to these; past the last, or where it would need too many points, a closed form.
_BUCKETS = (8.0, 32.0, 128.0, 512.0, 2048.0)
_MOST_POINTS = 100_000
_BLOCK = 1 << 20
_ROUNDING = 3e-15


def _points(order: float, noise_multiplier: float) -> tuple[float, int]:
    """Step and number of points that cover the integrand up to this order."""
    step = 0.4 * min(1.0, noise_multiplier)
    return step, int(np.ceil(min(2 * _REACH + order / noise_multiplier, 1e9 * step) / step)) + 1


def log_moment(orders: Array, *, noise_multiplier: float, sampling_rate: float) -> Array:
    """log A at each order (above 1) for 0 < sampling_rate < 1; rounded up, relative error about 1e-12 in log A.

    With u = q (exp(x s - s^2/2) - 1), whose mean is zero, and t = order log(1 + u), A - 1 is the mean of
    (exp(t) - 1 - t) + order (log(1 + u) - u): both parts are of second order in u, so a tiny A - 1 keeps its digits.
    """
    orders = np.asarray(orders, dtype=np.float64)[:, None]
    s, q = 1.0 / noise_multiplier, sampling_rate
    step, count = _points(float(np.max(orders)), noise_multiplier)
    x = -_REACH + step * np.arange(count)
    log_phi = -0.5 * x * x - 0.5 * np.log(2 * np.pi)
    phi = np.exp(log_phi)
    tilted = x * s - 0.5 * s * s
    u = q * np.expm1(np.minimum(tilted, 50.0))
    # g = log(1 + u) without overflow at large exponents
    g = np.where(tilted < 50.0, np.log1p(u), np.logaddexp(np.log1p(-q), np.log(q) + tilted))
    # phi (g - u), by its series where u is small and with the tilted density where exp(tilted) overflows
    gap = np.where(np.abs(u) < 0.05, phi * _log1p_less_itself(u), phi * g - q * (np.exp(log_phi + tilted) - phi))

    # g rises with x: up to `bend` every t is below 1, past it exp(t) is taken together with the density
    bend = int(np.searchsorted(g, 1.0 / float(np.max(orders))))
    left = _exp_less_line(orders * g[:bend])
    power = orders * g[bend:]
    exponent = power + log_phi[bend:]
    shift = np.max(exponent, axis=1, initial=0.0)
    scale = np.exp(-shift)[:, None]
    small = power < 1.0
    right = np.where(
        small,
        _exp_less_line(np.where(small, power, 0.0)) * (phi[bend:] * scale),
        np.exp(np.where(small, -np.inf, exponent) - shift[:, None]) - (1.0 + power) * (phi[bend:] * scale),
    )
    grown = (left @ phi[:bend]) * scale[:, 0] + np.sum(right, axis=1)
    fallen = float(np.sum(gap)) * orders[:, 0] * scale[:, 0]
    excess = step * (grown + fallen + _ROUNDING * (grown - fallen))
    with np.errstate(divide="ignore"):
        return np.logaddexp(0.0, shift + np.log(np.maximum(excess, 0.0)))


def _exp_less_line(t: Array) -> Array:
    """exp(t) - 1 - t without cancellation, for t below 1 or so."""
    series = 1.0 + t / 7.0
    for k in (6.0, 5.0, 4.0, 3.0):
        series = 1.0 + t / k * series
    return np.where(np.abs(t) < 0.01, 0.5 * t * t * series, np.expm1(t) - t)


def _log1p_less_itself(u: Array) -> Array:
    """log(1 + u) - u for |u| below 0.05, by its series."""
    u = np.where(np.abs(u) < 0.05, u, 0.0)
    series = np.zeros_like(u)
    for k in range(14, 1, -1):
        series = 1.0 / k - u * series
    return -u * u * series


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
