"""Mechanisms with known Renyi divergences, or known points of the privacy profile."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import SupportsFloat

from dpselect.errors import ArgumentError, number
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedGaussian, AttainedPair
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.profile import TabulatedProfile
from dpselect.privacy.renyi import LinearRenyi, TabulatedRenyi

__all__ = ["from_profile", "renyi_dp", "zcdp"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE


@base_mechanism("zcdp")
def zcdp(*, rho: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Return the guarantee of rho-zero-concentrated differential privacy (Bun, Steinke 2016).

    It does not imply a Gaussian trade-off curve. The Gaussian mechanism of mu = sqrt(2 rho) satisfies it, so nothing
    valid for all such mechanisms is below that one.

    Args:
        rho: the parameter of zCDP, at least 0 and finite. You must ensure that the mechanism satisfies it.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if `rho` is negative or not finite.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `rho` is not a number.
    """
    rho = number("rho", rho, at_least=0.0, rounding="up")
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="zero-concentrated differential privacy (Bun, Steinke 2016)",
        terms={"mechanism": "zcdp", "rho": rho},
        pure_epsilon=0.0 if rho == 0.0 else math.inf,
        renyi_curve=LinearRenyi(rho),
        lower_profile=AttainedGaussian.of(math.sqrt(2.0 * rho)),
    )


def renyi_dp(*, orders: Sequence[float], epsilons: Sequence[float], adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Return a guarantee from Renyi differential privacy at some orders (Mironov 2017).

    Between the orders dpselect takes chords. It says nothing past the last. The Gaussian mechanism whose line through
    the origin stays below all bounds satisfies the guarantee.

    Args:
        orders: above 1, finite and strictly increasing.
        epsilons: a bound on the Renyi divergence at each order, at least 0 or inf, in both directions. You must ensure
            that each bound is proved.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if the sequences are empty or differ in length, or a number is out of range or order.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if an entry is not a number.
    """
    if not (isinstance(orders, Sized) and isinstance(epsilons, Sized) and len(orders) == len(epsilons)):
        raise ArgumentError("orders and epsilons must be lists of one length. Write orders=[2, 4], epsilons=[0.1, 0.2]")
    orders = tuple(number("orders", o, above=1.0, rounding="down") for o in orders)
    epsilons = tuple(number("epsilons", e, at_least=0.0, finite=False, rounding="up") for e in epsilons)
    curve = TabulatedRenyi(orders, epsilons)
    slope = min(e / o for e, o in zip(epsilons, orders, strict=True))
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="Renyi differential privacy (Mironov 2017)",
        terms={"mechanism": "renyi", "orders": list(orders), "epsilons": list(epsilons)},
        pure_epsilon=0.0 if min(epsilons) == 0.0 else math.inf,
        renyi_curve=curve,
        lower_profile=AttainedGaussian.of(math.sqrt(2.0 * slope)) if math.isfinite(slope) else None,
    )


def from_profile(
    epsilons: Sequence[float], deltas: Sequence[float], *, adjacency: Adjacency | str = _DEFAULT
) -> Guarantee:
    """Return a guarantee from a privacy profile: (epsilons[i], deltas[i])-privacy for every i, in both directions.

    Between the points dpselect takes chords in exp(epsilon), which are above the true (convex) profile. Past the last
    point its delta holds. The pair whose curve is made of these chords satisfies the guarantee.

    Args:
        epsilons: at least 0, finite and strictly increasing.
        deltas: one for each epsilon, in [0, 1]. You must ensure that each pair is proved.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if the sequences are empty or differ in length, or a number is out of range or order.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if an entry is not a number.
    """
    epsilons = tuple(number("epsilons", e, at_least=0.0, rounding="up") for e in epsilons)
    deltas = tuple(number("deltas", d, at_least=0.0, at_most=1.0, rounding="up") for d in deltas)
    pure = min((e for e, d in zip(epsilons, deltas, strict=False) if d == 0.0), default=float("inf"))
    profile = TabulatedProfile(epsilons, deltas)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="privacy profile",
        terms={"mechanism": "profile", "epsilons": list(epsilons), "deltas": list(deltas)},
        pure_epsilon=pure,
        profile=profile,
        lower_profile=AttainedPair(profile.pair_source()),
    )
