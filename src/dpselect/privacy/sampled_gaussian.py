"""The Renyi curve of the Poisson-sampled Gaussian mechanism, by quadrature, for every real order at once.

Mironov, Talwar, Zhang 2019: under adding or removing one row both Renyi divergences are at most
log A / (order - 1) with A = E over x ~ N(0,1) of (1 - q + q exp(x s - s^2/2))^order, s = 1/noise_multiplier
(Theorems 4 and 5). The trapezoid rule converges geometrically on this integrand: it is analytic in a strip of
half-width pi * noise_multiplier, so a step of 0.4 noise multipliers leaves an error of about exp(-2 pi^2 / 0.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics import ROUND_UP

__all__ = ["SampledGaussianRenyi", "log_moment"]

Array = NDArray[np.float64]
_REACH = 10.5
# One evaluation handles orders up to these; past the last, or where it would need too many points, a closed form.
_BUCKETS = (12.0, 64.0, 640.0, 2048.0)
_MOST_POINTS = 100_000
_BLOCK = 1 << 20
_ROUNDING = 3e-15
_DIGITS = 2e-3


@dataclass(frozen=True, eq=False)
class _Integrand:
    """The quadrature for all orders up to `largest`."""

    noise_multiplier: float
    q: float
    largest: float

    @cached_property
    def step(self) -> float:
        """Distance of the points."""
        return 0.4 * min(1.0, self.noise_multiplier)

    @cached_property
    def count(self) -> int:
        """Number of points."""
        return math.ceil(min(2 * _REACH + self.largest / self.noise_multiplier, 1e9 * self.step) / self.step) + 1

    @cached_property
    def _tilted(self) -> tuple[Array, Array]:
        """log phi(x) and x s - s^2/2."""
        s = 1.0 / self.noise_multiplier
        x = np.asarray(-_REACH + self.step * np.arange(self.count), dtype=np.float64)
        return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi), x * s - 0.5 * s * s

    @cached_property
    def _log_ratio(self) -> Array:
        """log(1 - q + q exp(x s - s^2/2)); where the second term is 1e17 times the first, its logarithm."""
        ratio = math.log(self.q) + self._tilted[1]
        near = int(np.searchsorted(ratio, 40.0))
        ratio[:near] = np.logaddexp(math.log1p(-self.q), ratio[:near])
        return ratio

    def large(self, orders: Array) -> Array:
        """log A by one sum; the rounding of its exponents, which are of the size of 40 + 8 log A, is added."""
        exponent = np.multiply.outer(orders, self._log_ratio)
        exponent += self._tilted[0]
        shift = exponent.max(axis=1)
        exponent -= shift[:, None]
        np.exp(exponent, out=exponent)
        found = shift + np.log(self.step * exponent.sum(axis=1))
        return np.asarray(found + 1e-15 * (20.0 + 8.0 * found))

    @cached_property
    def _small(self) -> tuple[Array, Array, Array, float]:
        """phi, g = log(1 + u), log phi, and the sum of phi (g - u)."""
        log_phi, tilted = self._tilted
        phi = np.exp(log_phi)
        u = self.q * np.expm1(np.minimum(tilted, 50.0))
        # without overflow at large exponents
        g = np.where(tilted < 50.0, np.log1p(u), self._log_ratio)
        # by its series where u is small and with the tilted density where exp(tilted) overflows
        far = phi * g - self.q * (np.exp(log_phi + tilted) - phi)
        return phi, g, log_phi, float(np.sum(np.where(np.abs(u) < 0.05, phi * _log1p_less_itself(u), far)))

    def small(self, orders: Array) -> Array:
        """log A where A - 1 may be tiny.

        With u = q (exp(x s - s^2/2) - 1), whose mean is zero, and t = order log(1 + u), A - 1 is the mean of
        (exp(t) - 1 - t) + order (log(1 + u) - u): both parts are of second order in u, so a tiny A - 1 keeps its
        digits.
        """
        phi, g, log_phi, gap = self._small
        orders = orders[:, None]
        # g rises with x: up to `bend` every t is below 1, past it exp(t) is taken together with the density
        bend = int(np.searchsorted(g, 1.0 / float(orders.max())))
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
        fallen = gap * orders[:, 0] * scale[:, 0]
        excess = self.step * (grown + fallen + _ROUNDING * (grown - fallen))
        with np.errstate(divide="ignore"):
            return np.logaddexp(0.0, shift + np.log(np.maximum(excess, 0.0)))

    def log_moment(self, orders: Array) -> Array:
        """log A at orders in (1, largest].

        A - 1 is about order (order - 1) / 2 times the variance of the likelihood ratio. Where that is large log A
        keeps its digits; else A - 1 is summed by itself.
        """
        variance = self.q * self.q * math.expm1(min(self.noise_multiplier**-2.0, 50.0))
        digits = variance * orders * (orders - 1.0) > 4.0 * _DIGITS
        if digits.all():
            found = self.large(orders)
            if found.min() > _DIGITS:
                return found
        else:
            found = np.zeros(orders.shape)
            if digits.any():
                found[digits] = self.large(orders[digits])
        digits &= found > _DIGITS
        found[~digits] = self.small(orders[~digits])
        return found


@lru_cache(maxsize=64)
def _integrand(noise_multiplier: float, q: float, largest: float) -> _Integrand:
    """Kept for the next call: a search for an order, or for the noise, comes back with a few orders each time."""
    return _Integrand(noise_multiplier, q, largest)


def log_moment(orders: Array, *, noise_multiplier: float, sampling_rate: float) -> Array:
    """log A at each order (above 1) for 0 < sampling_rate < 1; rounded up, relative error about 1e-11 in log A."""
    orders = np.asarray(orders, dtype=np.float64)
    return _Integrand(noise_multiplier, sampling_rate, float(orders.max())).log_moment(orders)


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
            plain = orders * (0.5 / nm / nm)
            mixed = np.logaddexp(np.log1p(-q), np.log(q) + (orders - 1.0) * plain) / (orders - 1.0)
        single = np.minimum(mixed, plain) * ROUND_UP
        bucket = np.searchsorted(_BUCKETS, orders)
        for i in sorted(set(bucket.tolist()) - {len(_BUCKETS)}) if q < 1.0 else ():
            integrand = _integrand(nm, q, _BUCKETS[i])
            if integrand.count > _MOST_POINTS:
                break
            chosen = np.flatnonzero(bucket == i)
            rows = max(1, _BLOCK // integrand.count)
            for part in (chosen[k : k + rows] for k in range(0, chosen.size, rows)):
                log_a = integrand.log_moment(orders[part]) * ROUND_UP
                single[part] = np.minimum(single[part], log_a / (orders[part] - 1.0))
        return np.asarray(self.steps * single).reshape(shape)
