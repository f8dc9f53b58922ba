"""Renyi orders and epsilons for accountants that compose by order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, SupportsFloat

import numpy as np

from dpselect.errors import ArgumentError, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy.renyi import RenyiCurve, own_orders

__all__ = ["RenyiTable", "renyi_table"]

_ORDERS: Final = tuple((1.0 + np.geomspace(0.05, 2e4, 400)).tolist())
"""So dense that an epsilon from these orders is within 0.1 % of the best order's."""


class RenyiTable(NamedTuple):
    """Renyi orders, and a bound on the divergence at each.

    Attributes:
        orders: above 1.
        epsilons: at least the Renyi divergence in both directions, inf where none is known. Rounded up.

    >>> from dpselect.privacy import gaussian
    >>> table = gaussian(noise_multiplier=2).to_renyi([2, 4])
    >>> [round(epsilon, 6) for epsilon in table.epsilons]
    [0.25, 0.5]
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]


def renyi_table(
    curve: RenyiCurve | None, pure_epsilon: float, failure: float, orders: Sequence[SupportsFloat] | None
) -> RenyiTable:
    """The table of a guarantee's Renyi curve and its pure epsilon."""
    if orders is None:
        asked = tuple(sorted({*_ORDERS, *(() if curve is None else own_orders(curve).tolist())}))
    else:
        asked = tuple(number("orders", order, above=1.0, rounding="up") for order in orders)
    if not asked:
        raise ArgumentError("orders is empty: give at least one order above 1, or leave it out")
    if failure > 0.0:
        raise ArgumentError(
            "this guarantee holds outside a failure mass, so it has no finite Renyi divergence: use to_pld() instead"
        )
    found = np.full(len(asked), pure_epsilon)
    if curve is not None:
        found = np.minimum(found, np.asarray(curve(np.array(asked)), dtype=np.float64))
    if not np.any(np.isfinite(found)):
        raise ArgumentError("this guarantee has no Renyi divergence at these orders: use to_pld() instead")
    return RenyiTable(asked, tuple((found * ROUND_UP).tolist()))
