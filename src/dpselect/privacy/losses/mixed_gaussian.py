"""The privacy-loss distribution of Gaussian noise on a random shift, pessimistic: what a mixture of Gaussians costs.

P = sum of p_i N(c_i, 1) with c_i >= 0 against Q = N(0, 1). Let a_i(x) = exp(c_i x - c_i^2 / 2), and let x solve
sum of p_i a_i = exp(e), or exp(-e) for the other direction. With G_i(t) = H_{exp(t)}(N(c_i, 1) || N(0, 1)), e >= 0,

    H_{exp(e)}(P || Q) = sum of p_i G_i(log a_i)    and    H_{exp(e)}(Q || P) = exp(e) sum of p_i a_i G_i(-log a_i).

Shifts of 0 add nothing. Source: docs/theory/samples.md, Theorem 5. With another x each sum still bounds its divergence,
if the sum of p_i a_i is at most exp(e) in the first and at least exp(-e) in the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.losses.composition import BothLosses
from dpselect.privacy.losses.connect_the_dots import MOST_POINTS, Curve, connect_the_dots
from dpselect.privacy.losses.pld import LossSource
from dpselect.privacy.profile import GaussianProfile

__all__ = ["MixedGaussianRenyi", "mixed_gaussian_curves", "mixed_gaussian_loss", "mixed_gaussian_mesh"]

_REACH = 14.3
"""Standard deviations kept on either side: 1e-46 of the mass is beyond."""
_ERROR = 3e-14
_UNIT = 2.0**-53
_NEWTON = 60
"""Steps towards x, from above on a convex function. They end when x no longer falls."""

Shift = tuple[float, float]
"""A positive shift in standard deviations of the noise, and its probability."""


@dataclass(frozen=True)
class MixedGaussianRenyi:
    """The Renyi divergence of the mixture in both directions, by joint convexity of x^order y^(1-order)."""

    shifts: tuple[Shift, ...]
    theorem: str = "mixture of Gaussians, by joint convexity"

    def __call__(self, orders: Array) -> Array:
        orders = np.asarray(orders, dtype=np.float64)
        zero = max(0.0, 1.0 - sum(p for _, p in self.shifts))
        with np.errstate(over="ignore", divide="ignore"):
            terms = [math.log(p) + 0.5 * orders * (orders - 1.0) * c * c for c, p in self.shifts]
            whole = reduce(np.logaddexp, terms, np.full(orders.shape, np.log(zero)))
            return np.asarray(np.maximum(whole + 8.0 * _UNIT, 0.0) / (orders - 1.0) * ROUND_UP)


@dataclass(frozen=True)
class mixed_gaussian_loss(LossSource):
    """The privacy-loss distribution of one mixture of these shifts, each at most once, and 0 for the rest."""

    shifts: tuple[Shift, ...]

    def __call__(self, interval: float) -> BothLosses:
        remove, add = mixed_gaussian_curves(self.shifts, interval)
        return BothLosses(connect_the_dots(interval, remove, add), connect_the_dots(interval, add, remove))


def mixed_gaussian_mesh(shifts: tuple[Shift, ...]) -> float:
    """A mesh width at which connecting the dots costs about 1e-5 of epsilon, as for a sampled Gaussian."""
    largest = max(c for c, _ in shifts)
    squared = math.fsum(p * r * math.expm1(min(c * d, 2.0)) for c, p in shifts for d, r in shifts)
    return max(math.sqrt(squared) / 64.0, largest * (largest + _REACH) / 1e6)


def mixed_gaussian_curves(shifts: tuple[Shift, ...], width: float) -> tuple[Curve, Curve]:
    """H(P || Q) and H(Q || P) at 0, width, 2 width, ..., with bounds on their absolute errors."""
    total = min(math.fsum(p for _, p in shifts), 1.0)
    largest = max(c for c, _ in shifts)
    far = np.array([largest + _REACH, -_REACH])
    ends = np.logaddexp(math.log1p(-total) if total < 1.0 else -math.inf, _log_ratio(shifts, far))
    e = _mesh(float(ends[0]), width)
    # log(exp(e) - 1 + total): what the positive shifts have to reach
    above = e + np.log(-np.expm1(-e) + total * np.exp(-e))
    remove = _sums(shifts, _solve(shifts, above - _margin(e, largest)), 1.0)
    e = _mesh(-float(ends[1]) + width, width)
    left = total + np.expm1(-e) + 8.0 * _UNIT
    inside = left > 0.0
    x = _solve(shifts, np.log(np.where(inside, left, 1.0)) + _margin(e, largest))
    values, error = _sums(shifts, x, -1.0)
    scale = np.where(inside, np.exp(e) * (1.0 + 8.0 * _UNIT), 0.0)
    return remove, (np.minimum(values * scale, 1.0), error * scale)


def _mesh(top: float, width: float) -> Array:
    points = min(math.ceil(max(top, width) / width), MOST_POINTS) + 1
    return np.asarray(np.arange(points) * width, dtype=np.float64)


def _margin(e: Array, largest: float) -> Array:
    """More than the rounding of the logarithm of the sum of p_i a_i, at any x within reach."""
    return np.asarray(64.0 * _UNIT * (1.0 + e + largest * (largest + _REACH)))


def _log_ratio(shifts: tuple[Shift, ...], x: Array) -> Array:
    return np.asarray(reduce(np.logaddexp, [math.log(p) + c * x - 0.5 * c * c for c, p in shifts]))


def _solve(shifts: tuple[Shift, ...], target: Array) -> Array:
    """The x at which the logarithm of the sum of p_i a_i is the target."""
    x = reduce(np.minimum, [(target - math.log(p)) / c + 0.5 * c for c, p in shifts])
    for _ in range(_NEWTON if len(shifts) > 1 else 0):
        logs = [math.log(p) + c * x - 0.5 * c * c for c, p in shifts]
        whole = reduce(np.logaddexp, logs)
        slope = sum(c * np.exp(log - whole) for (c, _), log in zip(shifts, logs, strict=True))
        step = (whole - target) / slope
        x = x - step
        if np.all(np.abs(step) <= 8.0 * _UNIT * (1.0 + np.abs(x))):
            break
    return np.asarray(x)


def _sums(shifts: tuple[Shift, ...], x: Array, sign: float) -> Curve:
    """The sum of p_i G_i(log a_i), or of p_i a_i G_i(-log a_i), and a bound on its error."""
    values, error = np.zeros(x.shape), np.zeros(x.shape)
    for c, p in shifts:
        log = c * x - 0.5 * c * c
        t = sign * log
        inside = GaussianProfile(c).at(np.abs(t))
        # below 0 by reciprocity: G(t) = 1 - exp(t) + exp(t) G(-t)
        low = np.minimum(t, 0.0)
        one = np.where(t < 0.0, -np.expm1(low) + np.exp(low) * inside, inside)
        one *= p if sign > 0.0 else p * np.exp(np.minimum(log, 700.0))
        near, far = np.maximum(np.abs(t) / c - 0.5 * c, 1.0), np.abs(t) / c + 0.5 * c
        # a unit of each term of log a_i moves the sum by a share of it
        moved = (np.abs(c * x) + 0.5 * c * c) * (near / c + 1.0)
        values += one
        error += one * (_ERROR * (1.0 + near * far) + 8.0 * _UNIT * moved)
    return np.minimum(values, 1.0), error
