"""Renyi curves and their conversion to epsilon and delta.

A curve is a vectorised function of the order (above 1) that bounds the Renyi divergence in both directions. It may
return inf. Curves are frozen dataclasses, so that guarantees can be pickled and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP, fraction_up
from dpselect.numerics.search import Array, minimise

__all__ = [
    "SEARCH_ORDERS",
    "AffineRenyi",
    "LinearRenyi",
    "MaximumRenyi",
    "PureRenyi",
    "RenyiCurve",
    "SumRenyi",
    "TabulatedRenyi",
    "epsilon_from_renyi",
    "log_delta_at_orders",
    "own_orders",
    "profile_from_renyi",
    "sum_of_curves",
    "theorem_of",
]

RenyiCurve = Callable[[Array], Array]

# order - 1 runs over this range; beyond it the conversion can only gain for epsilons above 1e3 or below 1e-7
_RANGE = (1e-2, 1e7)
SEARCH_ORDERS = 1.0 + np.geomspace(*_RANGE, 84)
"""Where every search over orders begins, so that a curve may keep its values there."""
# some curves are cheaper at whole orders
SEARCH_ORDERS[SEARCH_ORDERS > 12.0] = np.rint(SEARCH_ORDERS[SEARCH_ORDERS > 12.0])
_ROUNDING = 4e-16
_BLOCK = 4096
_GRID = 1.0 + np.geomspace(*_RANGE, 240)


@runtime_checkable
class _Cited(Protocol):
    @property
    def theorem(self) -> str: ...


def theorem_of(curve: RenyiCurve) -> str:
    """The source that a curve names, empty if it names none."""
    return curve.theorem if isinstance(curve, _Cited) else ""


@dataclass(frozen=True)
class PureRenyi:
    """The base of curves that never are above epsilon, since the mechanism satisfies pure epsilon-privacy."""

    epsilon: float


@dataclass(frozen=True)
class LinearRenyi:
    """rho * order: zero-concentrated differential privacy (Bun, Steinke 2016, Definition 1.1)."""

    rho: float

    def __call__(self, orders: Array) -> Array:
        with np.errstate(over="ignore"):
            return self.rho * np.asarray(orders, dtype=np.float64)


@dataclass(frozen=True)
class AffineRenyi:
    """xi + rho * order: (xi, rho)-zero-concentrated differential privacy (Bun, Steinke 2016, Definition 1.1)."""

    xi: float
    rho: float

    def __call__(self, orders: Array) -> Array:
        with np.errstate(over="ignore"):
            return (self.xi + self.rho * np.asarray(orders, dtype=np.float64)) * ROUND_UP


@dataclass(frozen=True)
class SumRenyi:
    """The sum of curves, each so many times: adaptive composition. Source: Mironov 2017, Proposition 1."""

    curves: tuple[tuple[RenyiCurve, int], ...]

    @classmethod
    def of(cls, curves: Iterable[tuple[RenyiCurve, int]]) -> SumRenyi:
        """Their sum. Sums among them are taken apart, and one curve (by identity) is counted once."""
        counts: dict[int, tuple[RenyiCurve, int]] = {}
        for curve, count in curves:
            for part, times in curve.curves if isinstance(curve, SumRenyi) else ((curve, 1),):
                counts[id(part)] = (part, counts.get(id(part), (part, 0))[1] + times * count)
        return cls(tuple(counts.values()))

    def __call__(self, orders: Array) -> Array:
        return np.sum([curve(orders) * count for curve, count in self.curves], axis=0)


def sum_of_curves(curves: Iterable[tuple[RenyiCurve, int]]) -> RenyiCurve:
    """The sum of curves, each so many times. That of linear ones is linear: zero-concentrated privacy composes.

    Source: Bun, Steinke 2016, Lemma 1.7.
    """
    whole = SumRenyi.of(curves)
    rhos = [Fraction(curve.rho) * count for curve, count in whole.curves if isinstance(curve, LinearRenyi)]
    return LinearRenyi(fraction_up(sum(rhos, Fraction(0)))) if len(rhos) == len(whole.curves) else whole


@dataclass(frozen=True)
class MaximumRenyi:
    """The pointwise maximum of curves."""

    curves: tuple[RenyiCurve, ...]

    def __call__(self, orders: Array) -> Array:
        return np.max([curve(orders) for curve in self.curves], axis=0)


@dataclass(frozen=True)
class TabulatedRenyi:
    """A curve known at some orders: chords of the convex function (order - 1) * epsilon(order), inf past the last.

    log E[(P/Q)^order] is convex in the order and 0 at order 1, and a supremum over neighbours keeps that, so a chord
    between known orders is above the curve.
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.orders) != len(self.epsilons) or not self.orders:
            raise ArgumentError("orders and epsilons must be non-empty and of one length")
        orders, epsilons = np.array(self.orders), np.array(self.epsilons)
        if np.any(np.isnan(orders)) or np.any(np.diff(orders) <= 0) or orders[0] <= 1 or np.isinf(orders[-1]):
            raise ArgumentError("orders must be finite, above 1 and strictly increasing")
        if np.any(np.isnan(epsilons)) or np.any(epsilons < 0):
            raise ArgumentError("epsilons must be non-negative numbers")

    def __call__(self, orders: Array) -> Array:
        orders = np.asarray(orders, dtype=np.float64)
        known = np.array(self.orders)
        # a divergence does not decrease with the order, so a later, smaller bound holds for earlier orders too
        closed = np.minimum.accumulate(np.array(self.epsilons)[::-1])[::-1]
        finite = np.isfinite(closed)
        known, closed = known[finite], closed[finite]
        if not known.size:
            return np.full(orders.shape, np.inf)
        moments = np.interp(orders, np.append(1.0, known), np.append(0.0, (known - 1.0) * closed))
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = np.where(orders > 1.0, moments / (orders - 1.0), closed[0])
        # rounding must not leave a chord below the curve; a tabulated value keeps itself
        chord = np.where(np.isin(orders, known), np.interp(orders, known, closed), chord * ROUND_UP)
        return np.where(orders <= known[-1], chord, np.inf)


def log_delta_at_orders(orders: Array, epsilons_renyi: Array, epsilon: Array) -> Array:
    """log delta at DP `epsilon` given Renyi bounds.

    delta = exp((order-1)(epsilon_renyi - epsilon)) / order * (1 - 1/order)^(order-1), with broadcasting. Rounded up:
    the rounding of the epsilons counts (order - 1) times. Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    slack = _ROUNDING * (epsilons_renyi + epsilon)
    return (orders - 1.0) * (epsilons_renyi - epsilon + np.log1p(-1.0 / orders) + slack) - np.log(orders)


def epsilon_from_renyi(curve: RenyiCurve, delta: float) -> float:
    """The smallest epsilon >= 0 that the curve gives at `delta`, the order optimised continuously.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12. And epsilon = 0 where delta^2 >= 1 - exp(-KL)
    (Bretagnolle, Huber 1979). Every order gives a valid bound, so the search can only lose tightness.
    """
    if delta <= 0.0:
        return float("inf")
    if delta >= 1.0:
        return 0.0

    def at(orders: Array) -> Array:
        excess = orders - 1.0  # of the rounded order
        renyi = curve(orders)
        tail, price = np.log(excess / orders), -np.log(delta) / excess
        epsilon = renyi + tail + price - np.log(orders) / excess + _ROUNDING * (renyi - tail + price + 1.0)
        # below 1e-150 the square would be no double
        return np.where((delta > 1e-150) & (delta * delta + np.expm1(-renyi) >= 0.0), 0.0, np.maximum(epsilon, 0.0))

    start = at(SEARCH_ORDERS)
    i = int(np.argmin(start))
    low, high = np.log(SEARCH_ORDERS[[max(i - 1, 0), min(i + 1, start.size - 1)]] - 1.0).tolist()
    best = minimise(lambda x: at(1.0 + np.exp(x)), low, high, points=17, zooms=2, shrink=17)[1]
    return min([float(start[i]), best, *at(own_orders(curve)).tolist()])


def profile_from_renyi(curve: RenyiCurve, epsilons: Array) -> Array:
    """delta at each epsilon >= 0 from a Renyi curve, the order taken from a fixed fine grid and refined once.

    The same bounds as `epsilon_from_renyi`. Every order is valid.
    """
    epsilons = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    grid = np.union1d(_GRID, own_orders(curve))
    renyi = curve(grid)
    blocks = range(0, epsilons.size, _BLOCK)
    return np.concatenate([_profile_block(curve, grid, renyi, epsilons[i : i + _BLOCK]) for i in blocks] or [epsilons])


def own_orders(curve: RenyiCurve) -> Array:
    """The orders of a tabulated curve: the best one is often a corner of the table."""
    return np.asarray(curve.orders if isinstance(curve, TabulatedRenyi) else (), dtype=np.float64)


def _profile_block(curve: RenyiCurve, grid: Array, renyi: Array, epsilons: Array) -> Array:
    """`profile_from_renyi` for a vector of epsilons, `renyi` being the curve on `grid`."""

    def log_deltas(orders: Array, renyi: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(np.isfinite(renyi), log_delta_at_orders(orders, renyi, epsilons[..., None]), np.inf)

    logs = log_deltas(grid, renyi)
    best = np.argmin(logs, axis=-1)
    result = np.min(logs, axis=-1)
    # refine around each distinct best order with one more evaluation of the curve
    cells = np.unique(best)
    low, high = grid[np.maximum(cells - 1, 0)], grid[np.minimum(cells + 1, grid.size - 1)]
    if cells.size <= 64:
        fine = 1.0 + (low - 1.0)[:, None] * ((high - 1.0) / (low - 1.0))[:, None] ** np.linspace(0.0, 1.0, 33)
        fine_renyi = curve(fine.ravel()).reshape(fine.shape)
        row = np.searchsorted(cells, best)
        result = np.minimum(result, np.min(log_deltas(fine[row], fine_renyi[row]), axis=-1))
    total_variation = np.sqrt(-np.expm1(-np.min(renyi))) if np.isfinite(np.min(renyi)) else 1.0
    # a delta that underflows is not zero
    return np.minimum(np.exp(np.clip(result, -690.0, 0.0)), total_variation)
