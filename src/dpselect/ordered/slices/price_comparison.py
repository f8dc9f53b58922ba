"""When noisy slice sizes pay: the prices of Reorder-Slice-Compute beside each other and beside plain composition."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsFloat

from dpselect.errors import integer, number
from dpselect.numerics import first_true
from dpselect.ordered.slices.price import plain_slicing_guarantee, reorder_slice_compute_guarantee, slice_price
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.profile import epsilon_at
from dpselect.privacy.promises import promise
from dpselect.privacy.renyi import epsilon_from_renyi

__all__ = ["SlicePrices", "noise_pays_from", "slice_prices"]


@dataclass(frozen=True)
class SlicePrices:
    """Epsilons at one delta, add or remove one row; inf where a way says nothing.

    Attributes:
        paper: the paper's constants, w queries at 3 epsilon, w = log(1/delta)/log(6/5).
        basic: basic composition with the exact failure rate.
        renyi: the closed Renyi curve.
        losses: the numeric privacy losses.
        plain: without the noise, every slice a swap.
        charged: what `reorder_slice_compute_guarantee` charges, the smallest.
    """

    paper: float
    basic: float
    renyi: float
    losses: float
    plain: float
    charged: float


def slice_prices(
    *,
    delta: SupportsFloat,
    slice_epsilon: SupportsFloat,
    insertion: Guarantee,
    swap: Guarantee | None = None,
    slices: int | None = None,
    applications: int = 1,
) -> SlicePrices:
    """All that is proved about `applications` runs, beside each other; see `reorder_slice_compute_guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> prices = slice_prices(delta=1e-6, slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05), slices=64)
    >>> round(prices.paper, 2), round(prices.basic, 2), round(prices.renyi, 2), round(prices.losses, 2)
    (11.4, 1.75, 1.17, 0.93)
    """
    insertion = promise("insertion", insertion)
    delta = number("delta", delta, above=0.0, below=1.0)
    price = slice_price(
        slice_epsilon=slice_epsilon, insertion=insertion, swap=swap, slices=slices, applications=applications
    )
    total = reorder_slice_compute_guarantee(
        slice_epsilon=slice_epsilon, insertion=insertion, swap=swap, slices=slices, applications=applications
    )
    rest = delta - price.leak
    table, curve, numeric = price.table(), price.renyi(), price.numeric()
    plain = math.inf
    if slices is not None:
        plain = plain_slicing_guarantee(
            swap=price.swap, slices=slices, applications=applications, adjacency=Adjacency.ADD_OR_REMOVE_ONE
        ).epsilon(delta)
    return SlicePrices(
        paper=price.paper(rest),
        basic=math.inf if table is None else epsilon_at(table, delta),
        renyi=math.inf if curve is None or rest <= 0.0 else epsilon_from_renyi(curve, rest),
        losses=math.inf if numeric is None else numeric.epsilon(delta),
        plain=plain,
        charged=total.epsilon(delta),
    )


def noise_pays_from(
    *,
    delta: SupportsFloat,
    slice_epsilon: SupportsFloat,
    insertion: Guarantee,
    swap: Guarantee | None = None,
    most: int = 4096,
) -> int | None:
    """The least number of slices from which noisy sizes cost less epsilon at `delta` than plain composition.

    For one application under add_or_remove_one; None if that does not happen up to `most` slices.

    >>> from dpselect.privacy import pure_dp
    >>> noise_pays_from(delta=1e-6, slice_epsilon=0.025, insertion=pure_dp(epsilon=0.05))
    8
    """
    insertion = promise("insertion", insertion)
    delta, most = number("delta", delta, at_least=1e-100, below=1.0), integer("most", most, at_least=1)
    endless = slice_price(slice_epsilon=slice_epsilon, insertion=insertion, swap=swap)

    def pays(count: int) -> bool:
        plain = plain_slicing_guarantee(swap=endless.swap, slices=count, adjacency=Adjacency.ADD_OR_REMOVE_ONE)
        return replace(endless, slices=count).noisy().epsilon(delta) < plain.epsilon(delta)

    return first_true(pays, 1, most, start=1)
