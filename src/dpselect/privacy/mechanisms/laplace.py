"""The Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

import numpy as np

from dpselect.errors import number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedLaplace
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.profile import LaplaceProfile
from dpselect.privacy.renyi import PureRenyi

__all__ = ["LaplaceRenyi", "laplace", "laplace_divergence"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE


@dataclass(frozen=True)
class LaplaceRenyi(PureRenyi):
    """The Laplace mechanism of scale 1/epsilon at sensitivity 1. Source: Mironov 2017, Proposition 6."""

    theorem: str = "Laplace mechanism (Mironov 2017, Proposition 6)"

    def __call__(self, orders: Array) -> Array:
        """The divergence at each order."""
        return laplace_divergence(self.epsilon, orders)


def laplace_divergence(epsilon: float | Array, orders: Array) -> Array:
    """log(a/(2a-1) exp((a-1)e) + (a-1)/(2a-1) exp(-a e)) / (a - 1), rounded up.

    The first-order terms of both cancel.
    """
    a, e = np.asarray(orders, dtype=np.float64), epsilon
    with np.errstate(over="ignore"):
        near = np.log1p(
            (a * _expm1_tail(np.minimum((a - 1.0) * e, 30.0)) + (a - 1.0) * _expm1_tail(-a * e)) / (2.0 * a - 1.0)
        )
        far = (a - 1.0) * e + np.log(a / (2.0 * a - 1.0)) + np.log1p((a - 1.0) / a * np.exp(-(2.0 * a - 1.0) * e))
    moment = np.where((a - 1.0) * e < 30.0, near, far)
    return np.asarray(np.minimum(moment / (a - 1.0) * ROUND_UP, e))


def _expm1_tail(x: Array) -> Array:
    """exp(x) - 1 - x, which is non-negative. Near zero, where the difference cancels, by its series."""
    small = np.clip(x, -0.5, 0.5)
    series = np.zeros_like(small)
    for k in range(16, 1, -1):
        series = small / k * (1.0 + series)
    return np.where(np.abs(x) < 0.5, small * series, np.expm1(x) - x)


@base_mechanism("laplace", noise="scale")
def laplace(*, scale: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Return the exact guarantee of the Laplace mechanism on a number.

    Args:
        scale: noise scale / sensitivity, above 0. You must ensure the sensitivity under the given adjacency.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if `scale` is not above 0 and finite.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `scale` is not a number.

    >>> laplace(scale=2).epsilon(delta=0)
    0.5
    """
    scale = number("scale", scale, above=0.0, rounding="down")
    epsilon = 1.0 / scale
    if math.isfinite(epsilon) and Fraction(epsilon) * Fraction(scale) < 1:
        epsilon = math.nextafter(epsilon, math.inf)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="Laplace mechanism",
        terms={"mechanism": "laplace", "scale": scale},
        pure_epsilon=epsilon,
        renyi_curve=LaplaceRenyi(epsilon),
        profile=LaplaceProfile(epsilon),
        lower_profile=AttainedLaplace.of(epsilon),
    )
