"""The least rho that a Renyi curve proves: the supremum of the divergence over the order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from dpselect.numerics.logs import ROUND_UP, fraction_up
from dpselect.numerics.search import Array
from dpselect.privacy.renyi import LinearRenyi, MaximumRenyi, PureRenyi, RenyiCurve, SumRenyi

__all__ = ["concentrated_rho"]

_COARSE: Final = 0.01
"""Ratio of neighbouring orders, less 1."""
_FINE: Final = 128
"""Parts of a coarse step where the supremum may be: rho is then above it by less than one part in 10,000."""
_LAST_ORDER: Final = 1e15


def concentrated_rho(curve: RenyiCurve, limit: float = math.inf) -> float:
    """Return a rho such that every mechanism with this curve satisfies rho-zCDP, or inf if none is proved.

    Args:
        curve: a bound on the Renyi divergence at each order.
        limit: a pure epsilon in both directions, which bounds the divergence at all orders. Inf if none is known.

    Returns:
        The supremum over orders of the curve over the order, rounded up by less than one part in 10,000. Sums and
        maxima are taken apart.

    Source: docs/theory/odometer.md, Theorem 4; Bun, Steinke 2016, Proposition 1.4.

    >>> from dpselect.privacy.mechanisms.laplace import LaplaceRenyi
    >>> round(concentrated_rho(LaplaceRenyi(1.0)), 4)
    0.3679
    """
    whole = _supremum(curve, limit)
    if isinstance(curve, LinearRenyi):
        return min(whole, curve.rho)
    if isinstance(curve, SumRenyi):
        parts = [concentrated_rho(part) * count for part, count in curve.curves]
        return min(whole, math.fsum(parts) * ROUND_UP)
    if isinstance(curve, MaximumRenyi):
        return min(whole, max(concentrated_rho(part) for part in curve.curves))
    return min(whole, _supremum(curve, curve.epsilon)) if isinstance(curve, PureRenyi) else whole


def _supremum(curve: RenyiCurve, limit: float) -> float:
    """A bound on the curve over the order for a mechanism of this pure epsilon.

    The divergence does not fall with the order. So between two orders it is at most that at the larger one, and the
    ratio at most that over the smaller order. Past the last order it is at most the limit over that order.
    """
    if limit == 0.0 or math.isinf(limit):
        return limit
    by_epsilon = fraction_up(Fraction(limit) ** 2 / 2)
    at_two = min(float(curve(np.array([2.0]))[0]), limit)
    last = min(2.0 * limit / at_two, _LAST_ORDER) if at_two > 0.0 else _LAST_ORDER
    orders = np.exp(np.arange(0.0, math.log(last) + 2.0 * _COARSE, _COARSE))
    values = _bounded(curve, orders[1:], limit)
    bounds = values / orders[:-1]
    steps = np.flatnonzero(bounds > np.max(values / orders[1:]))
    inner = orders[steps, None] * np.exp(_COARSE / _FINE * np.arange(_FINE + 1))
    inner[:, -1] = orders[steps + 1]
    finer = _bounded(curve, inner[:, 1:].ravel(), limit).reshape(len(steps), _FINE) / inner[:, :-1]
    bounds[steps] = np.max(finer, axis=1, initial=0.0)
    found = max(float(np.max(bounds)), limit / float(orders[-1])) * ROUND_UP
    return min(found, by_epsilon) if not math.isnan(found) else by_epsilon


def _bounded(curve: RenyiCurve, orders: Array, limit: float) -> Array:
    return np.asarray(np.minimum(curve(orders), limit))
