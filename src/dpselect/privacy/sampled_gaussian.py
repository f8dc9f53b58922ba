"""The Renyi curve of the Poisson-sampled Gaussian mechanism for every real order at once.

Mironov, Talwar, Zhang 2019: under adding or removing one row both Renyi divergences are at most
log A / (order - 1) with A = E over x ~ N(0,1) of (1 - q + q exp(x s - s^2/2))^order, s = 1/noise_multiplier
(Theorems 4 and 5). The trapezoid rule converges geometrically on this integrand: it is analytic in a strip of
half-width pi * noise_multiplier, so a step of 0.4 noise multipliers leaves an error of about exp(-2 pi^2 / 0.4).
At a whole order A is a binomial sum, which is exact and has fewer terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array

__all__ = ["SampledGaussianRenyi"]

_REACH = 10.5
# One evaluation handles orders up to these; past the last, or where it would need too many points, a closed form.
_BUCKETS = (12.0, 64.0, 640.0, 2048.0)
_MOST_POINTS = 100_000
_BLOCK = 1 << 20
_ROUNDING = 3e-15
_DIGITS = 2e-3
_SERIES = 20
_COUNTER = np.arange(_SERIES - 1.0)
_LARGEST_WHOLE = int(_BUCKETS[-1])
# whole orders are summed from this noise on: far below it the losses outgrow a double
_LEAST_NOISE = 1e-3
_LOG_FACTORIALS = gammaln(np.arange(1.0, _LARGEST_WHOLE + 2.0))


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
        return self._points(self.largest)

    def _points(self, order: float) -> int:
        """How many of the points, from the left, orders up to this one need."""
        return math.ceil(min(2 * _REACH + order / self.noise_multiplier, 1e9 * self.step) / self.step) + 1

    @cached_property
    def _tilted(self) -> tuple[Array, Array]:
        """log phi(x) and x s - s^2/2."""
        s = 1.0 / self.noise_multiplier
        x = np.asarray(-_REACH + self.step * np.arange(self.count), dtype=np.float64)
        return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi), x * s - 0.5 * s * s

    @cached_property
    def _log_ratio(self) -> Array:
        """log(1 - q + q exp(x s - s^2/2)), or the logarithm of the second term if that is 1e17 times the first."""
        ratio = math.log(self.q) + self._tilted[1]
        near = int(np.searchsorted(ratio, 40.0))
        ratio[:near] = np.logaddexp(math.log1p(-self.q), ratio[:near])
        return ratio

    def large(self, orders: Array) -> Array:
        """log A by one sum, plus the rounding of its exponents, which are of the size of 40 + 8 log A."""
        points = self._points(float(orders.max()))
        exponent = np.multiply.outer(orders, self._log_ratio[:points])
        exponent += self._tilted[0][:points]
        shift = exponent.max(axis=1)
        exponent -= shift[:, None]
        np.exp(exponent, out=exponent)
        found = shift + np.log(self.step * exponent.sum(axis=1))
        return np.asarray(found + 1e-15 * (20.0 + 8.0 * found))

    @cached_property
    def _second_order(self) -> tuple[Array, NDArray[np.intp], Array, Array]:
        """The sums of phi u^k, k = 2, 3, ..., over the points of small |u|, and of the other points: where they are;
        rows phi, phi u, |phi u|; columns 1, 1 - log phi, and what counts order times in the rounding of an exponent.
        """
        log_phi, tilted = self._tilted
        phi = np.exp(log_phi)
        u = self.q * np.expm1(np.minimum(tilted, 50.0))
        # with the tilted density where exp(tilted) might overflow
        weighted = np.where(tilted < 50.0, phi * u, self.q * np.exp(log_phi + tilted))
        # a term is at most max(0.1, 1 / k) times the one before: those left out are below 1e-16 of the first
        near = np.abs(u) <= min(0.1, 1.0 / self.largest)
        powers = np.multiply.accumulate(np.broadcast_to(u[near], (_SERIES - 2, int(near.sum()))), axis=0)
        rows = np.stack((phi, weighted, np.abs(weighted)))[:, ~near]
        columns = np.stack((np.ones(phi.size), 1.0 - log_phi, np.abs(tilted) - math.log(self.q)), axis=1)[~near]
        return powers @ weighted[near], np.flatnonzero(~near), rows, columns

    def small(self, orders: Array) -> Array:
        """log A if A - 1 may be tiny; inf or NaN if it overflows.

        With u = q (exp(x s - s^2/2) - 1), whose mean is zero, A - 1 is the mean of (1 + u)^order - 1 - order u, which
        is of second order in u. If |u| is small, its binomial series keeps all digits. If not, the difference keeps
        enough, and the rounding of its exponents is added.
        """
        moments, far, rows, columns = self._second_order
        # C(order, k) for k = 2, 3, ...
        binomials = np.multiply.accumulate((orders[:, None] - _COUNTER) / (_COUNTER + 1.0), axis=1)[:, 1:]
        far = far[: far.searchsorted(self._points(float(orders.max())))]
        mass, drift, turnover = rows[:, : far.size].sum(axis=1).tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            exponent = np.multiply.outer(orders, self._log_ratio[far])
            exponent += self._tilted[0][far]
            powers, rounding, rounding_each = (np.exp(exponent, out=exponent) @ columns[: far.size]).T
            excess = binomials @ moments + (powers - mass - orders * drift)
            size = binomials[:, 0] * moments[0] + mass + orders * turnover
            excess += _ROUNDING * (size + 0.2 * (rounding + orders * rounding_each))
            return np.asarray(np.log1p(self.step * np.maximum(excess, 0.0)))

    def log_moment(self, orders: Array) -> Array:
        """log A at orders in (1, largest].

        A - 1 is about order (order - 1) / 2 times the variance of the likelihood ratio. If that is large, log A keeps
        its digits. If not, A - 1 is summed by itself.
        """
        variance = self.q * self.q * math.expm1(min(self.noise_multiplier**-2.0, 50.0))
        found = np.zeros(orders.shape)
        digits = variance * orders * (orders - 1.0) > 4.0 * _DIGITS
        if digits.any():
            found[digits] = self.large(orders[digits])
        few = np.flatnonzero(found <= _DIGITS)
        if few.size:
            found[few] = self.small(orders[few])
            overflown = few[~(found[few] < 1.0)]
            if overflown.size:
                found[overflown] = self.large(orders[overflown])
        return found


@dataclass(frozen=True, eq=False)
class _BinomialSum:
    """A at whole orders up to 2048: the sum over k of C(order, k) q^k (1-q)^(order-k) exp(k (k-1) s^2 / 2).

    A - 1 has expm1 for exp: its terms are positive, so it keeps its digits however small it is.
    """

    noise_multiplier: float
    q: float

    @cached_property
    def _terms(self) -> Array:
        """The part of each logarithm that does not depend on the order, for k = 2, ..., 2048."""
        k = np.arange(2.0, _LARGEST_WHOLE + 1.0)
        # not below 1e-300, so that every logarithm is finite
        loss = np.maximum(k * (k - 1.0) * (0.5 / self.noise_multiplier / self.noise_multiplier), 1e-300)
        odds = math.log(self.q) - math.log1p(-self.q)
        return k * odds + loss + np.log(-np.expm1(-loss))

    def log_moment(self, orders: Array) -> Array:
        """log A plus the rounding of the exponents."""
        lengths = orders.astype(int) - 1
        starts = np.cumsum(lengths) - lengths
        exponent = np.concatenate([_log_binomials(n + 1) for n in lengths.tolist()])
        exponent += np.concatenate([self._terms[:n] for n in lengths.tolist()])
        shift = np.maximum.reduceat(exponent, starts)
        exponent -= np.repeat(shift, lengths)
        total = np.log(np.add.reduceat(np.exp(exponent, out=exponent), starts))
        found = total + shift + orders * math.log1p(-self.q)
        # what the parts of an exponent can be, for each of the order's factors
        size = np.log(orders) - math.log(self.q) - math.log1p(-self.q)
        size += orders / self.noise_multiplier / self.noise_multiplier
        # a moment that underflows is not zero
        return np.asarray(np.logaddexp(0.0, np.maximum(found + 2e-15 * orders * size, -690.0)))


@lru_cache(maxsize=_LARGEST_WHOLE)
def _log_binomials(order: int) -> Array:
    """log C(order, k) for k = 2, ..., order."""
    logs = _LOG_FACTORIALS[: order + 1]
    return np.asarray(logs[-1] - logs[2:] - logs[: order - 1][::-1])


# kept for the next call: a search for an order, or for the noise, comes back with a few orders each time
_integrand, _binomial_sum = lru_cache(maxsize=64)(_Integrand), lru_cache(maxsize=64)(_BinomialSum)


@dataclass(frozen=True)
class SampledGaussianRenyi:
    """`steps` compositions of the Poisson-sampled Gaussian mechanism (adding or removing one row).

    Source: Mironov, Talwar, Zhang 2019, Theorems 4 and 5.
    """

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
            growth = (orders - 1.0) * plain
            far = np.logaddexp(np.log1p(-q), np.log(q) + growth)
            # near zero the logarithms cancel
            mixed = np.where(growth < 1.0, np.log1p(q * np.expm1(np.minimum(growth, 1.0))), far) / (orders - 1.0)
        single = np.minimum(mixed, plain) * ROUND_UP
        bucket = np.searchsorted(_BUCKETS, orders)
        whole = np.flatnonzero((orders == np.floor(orders)) & (bucket < len(_BUCKETS)))
        if whole.size and q < 1.0 and nm > _LEAST_NOISE:
            # done: nothing is left for the quadrature
            bucket[whole] = len(_BUCKETS)
            exact = _binomial_sum(nm, q)
            for part in np.array_split(whole, math.ceil(float(orders[whole].sum()) / _BLOCK)):
                log_a = exact.log_moment(orders[part]) * ROUND_UP
                single[part] = np.minimum(single[part], log_a / (orders[part] - 1.0))
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
