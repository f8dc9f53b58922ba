"""The cost of a sequence of mechanisms, if each of them and the moment to stop may depend on all earlier outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, SupportsFloat

import numpy as np

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.promises import promise

__all__ = ["odometer_epsilon"]

_LEVELS: Final = 85
_FIRST, _RATIO = 0.05, 1.1
"""The levels, fixed in advance: 0.05 to 150, each 10 % above the one before."""
_SCALES: Final = np.array([0.6, 0.9])
"""Orders of a level, relative to the best one for Gaussian noise. Below 0.5 the conversion alone takes the level."""
_SHARES: Final = _LEVELS * _SCALES.size
"""Parts of delta, one for each level and order."""
_INSIDE: Final = 1.0 - 1e-12


def odometer_epsilon(mechanisms: Sequence[tuple[Guarantee, int]], delta: SupportsFloat) -> float:
    """Return an epsilon of all outputs together that needs nothing fixed in advance.

    Each mechanism, its guarantee and the moment to stop may be chosen after seeing earlier outputs. The epsilon depends
    on the guarantees that occurred. With R for it, E[1 - exp(R) dP'/dP]_+ <= delta over all views. There are 85 levels,
    each with two orders and an equal share of delta for each of them. The result is the first level that the sum of
    the Renyi divergences fits at one of its orders, or the sum of pure epsilons if that is smaller. The orders are
    1 + scale * 2 log(1 / share) / level. Levels, shares and orders depend on delta alone.

    Args:
        mechanisms: the guarantees that occurred, each with how often it did.
        delta: the delta of the whole sequence, in (0, 1). Rounded down.

    Returns:
        The epsilon, rounded up to a level. Infinity if none fits.

    Raises:
        ArgumentError: if there is no mechanism, if a count is below 1, if delta is out of range, or if a guarantee has
            a failure mass, which has no share of delta here.
        AdjacencyError: if adjacencies differ.

    Source: docs/theory/odometer.md, Theorem 3.

    >>> from dpselect.privacy import gaussian
    >>> round(odometer_epsilon([(gaussian(noise_multiplier=4), 10)], delta=1e-6), 3)
    4.851
    """
    share = number("delta", delta, above=0.0, below=1.0, rounding="down") / _SHARES * _INSIDE
    used = [(promise("mechanisms", guarantee), integer("count", count, at_least=1)) for guarantee, count in mechanisms]
    if not used:
        raise ArgumentError("mechanisms must hold at least one guarantee")
    common_adjacency(guarantee.adjacency for guarantee, _ in used)
    if any(guarantee.failure > 0.0 for guarantee, _ in used):
        raise ArgumentError("mechanisms: a guarantee with a failure mass has no odometer here, so use a ledger")
    levels = _FIRST * _RATIO ** np.arange(_LEVELS)
    orders = 1.0 + _SCALES * (2.0 * math.log(1.0 / share) / levels)[:, None]
    total = np.zeros(orders.shape)
    for guarantee, count in used:
        total += _divergence(guarantee, orders) * (count * ROUND_UP)
    limits = levels[:, None] * _INSIDE - _conversion(orders, share)
    fits = np.flatnonzero(np.any(total * ROUND_UP * (1.0 + len(used) * 2.0**-52) <= limits, axis=1))
    level = float(levels[fits[0]]) if fits.size else math.inf
    return min(level, _pure_total(used))


def _pure_total(used: Sequence[tuple[Guarantee, int]]) -> float:
    return math.fsum(guarantee.pure_epsilon * count for guarantee, count in used) * ROUND_UP


def _divergence(guarantee: Guarantee, orders: Array) -> Array:
    """A bound on the Renyi divergence at these orders, in both directions."""
    values = np.full(orders.shape, guarantee.pure_epsilon)
    if guarantee.renyi_curve is not None:
        values = np.minimum(values, guarantee.renyi_curve(orders.ravel()).reshape(orders.shape) * ROUND_UP)
    return values


def _conversion(orders: Array, delta: float) -> Array:
    """The excess of epsilon over the divergence. Source: Canonne, Kamath, Steinke 2020, Proposition 12. Rounded up."""
    excess = orders - 1.0
    tail, price = np.log1p(-1.0 / orders), (-math.log(delta) - np.log(orders)) / excess
    return tail + price + 1e-13 * (np.abs(tail) + np.abs(price))
