"""When noisy slice sizes pay: the prices of Reorder-Slice-Compute beside each other and beside plain composition."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsFloat

from dpselect.errors import expect, integer, number
from dpselect.numerics.search import first_true
from dpselect.ordered.slices.price import SlicePrice
from dpselect.privacy import Guarantee
from dpselect.privacy.profile import epsilon_at
from dpselect.privacy.renyi import epsilon_from_renyi

__all__ = ["SlicePrices", "noise_pays_from", "slice_prices"]


@dataclass(frozen=True)
class SlicePrices:
    """Epsilons at one delta, add or remove one row, and inf if a way proves nothing.

    Attributes:
        paper: the paper's constants, w queries at 3 epsilon, w = log(1/delta)/log(6/5).
        basic: basic composition with the exact failure rate.
        renyi: the closed Renyi curve.
        losses: the numeric privacy losses.
        plain: without the noise, every slice a swap.
        charged: what `SlicePrice.guarantee` charges, the smallest.
    """

    paper: float
    basic: float
    renyi: float
    losses: float
    plain: float
    charged: float


def slice_prices(price: SlicePrice, *, delta: SupportsFloat) -> SlicePrices:
    """Return every proved epsilon of Reorder-Slice-Compute at `delta`, to compare them.

    Args:
        price: the parameters of the slices and computations, all public.
        delta: the delta at which epsilons are computed, above 0 and below 1.

    Returns:
        A `SlicePrices`, for adding or removing one row. It has inf for a proof that gives no finite epsilon, and for
        `plain` if the price has no limit on its `slices`.

    Raises:
        ArgumentError: if `delta` is out of range, or a component has no curve at all.
        BoundUnavailableError: if no proof covers the components of the price.
        TypeError: if `price` is not a `SlicePrice`.

    >>> from dpselect.privacy import pure_dp
    >>> prices = slice_prices(SlicePrice(slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05), slices=64), delta=1e-6)
    >>> round(prices.paper, 2), round(prices.basic, 2), round(prices.renyi, 2), round(prices.losses, 2)
    (11.4, 1.75, 1.17, 0.93)
    """
    expect("price", price, SlicePrice)
    delta = number("delta", delta, above=0.0, below=1.0, rounding="down")
    rest, curve = delta - price.leak, price.renyi()

    def at(guarantee: Guarantee | None) -> float:
        return math.inf if guarantee is None else guarantee.epsilon(delta)

    table = price.table()
    return SlicePrices(
        paper=price.paper(rest),
        basic=math.inf if table is None else epsilon_at(table, delta),
        renyi=math.inf if curve is None or rest <= 0.0 else epsilon_from_renyi(curve, rest),
        losses=at(price.numeric()),
        plain=at(None if price.slices is None else price.plain()),
        charged=at(price.guarantee()),
    )


def noise_pays_from(price: SlicePrice, *, delta: SupportsFloat, most: int = 4096) -> int | None:
    """Return the least number of slices from which noisy sizes cost less epsilon at `delta` than plain composition.

    It is for one application under add_or_remove_one. Its result is None if that does not happen up to `most` slices.

    Args:
        price: the parameters of the slices and computations. Its own `slices` and `applications` are not used.
        delta: the delta of the comparison, from 1e-100 to below 1.
        most: the largest number of slices to try.

    Raises:
        ArgumentError: if `delta` or `most` is out of range, or a component has no curve at all.
        BoundUnavailableError: if no proof covers the components of the price.
        TypeError: if `price` is not a `SlicePrice`.

    >>> from dpselect.privacy import pure_dp
    >>> noise_pays_from(SlicePrice(slice_epsilon=0.025, insertion=pure_dp(epsilon=0.05)), delta=1e-6)
    8
    """
    expect("price", price, SlicePrice)
    delta, most = number("delta", delta, at_least=1e-100, below=1.0, rounding="down"), integer("most", most, at_least=1)

    def pays(count: int) -> bool:
        limited = replace(price, slices=count, applications=1)
        return limited.noisy().epsilon(delta) < limited.plain().epsilon(delta)

    return first_true(pays, 1, most, start=1)
