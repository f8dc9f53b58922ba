"""Mechanisms with a known epsilon, outside a failure mass or without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from dpselect.errors import number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedPair
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.profile import RandomizedResponseProfile
from dpselect.privacy.renyi import PureRenyi

__all__ = ["RandomizedResponseRenyi", "approximate_dp", "pure_dp"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE


@dataclass(frozen=True)
class RandomizedResponseRenyi(PureRenyi):
    """The Renyi divergence of randomised response, the largest that an epsilon-private pair can have.

    Every epsilon-private pair is a post-processing of randomised response (Kairouz, Oh, Viswanath 2015), so this is the
    exact worst case. It is below epsilon^2 order / 2 (Bun, Steinke 2016, Proposition 3.3).
    """

    theorem: str = "randomised response dominates (Kairouz, Oh, Viswanath 2015)"

    def __call__(self, orders: Array) -> Array:
        """log(p^a q^(1-a) + q^a p^(1-a)) / (a - 1) with p = 1/(1+exp(-epsilon)), q = 1 - p."""
        a = np.asarray(orders, dtype=np.float64)
        e = self.epsilon
        # the moment is cosh((a - 1/2) e) / cosh(e / 2) in logs; log cosh x = x + log1p(exp(-2x)) - log 2
        difference = (a - 1.0) * e + np.log1p(np.exp(-(2.0 * a - 1.0) * e)) - np.log1p(np.exp(-e))
        # near order 1 or epsilon 0 the sum cancels: the product form 2 sinh sinh / cosh keeps its digits
        x, y = (a - 1.0) * e / 2.0, a * e / 2.0
        with np.errstate(over="ignore", invalid="ignore"):
            product = np.log1p(2.0 * np.sinh(np.minimum(x, 20.0)) * np.sinh(np.minimum(y, 20.0)) / np.cosh(e / 2.0))
        moment = np.where(y < 10.0, product, difference)
        return np.asarray(np.minimum(moment / (a - 1.0) * ROUND_UP, e))


@base_mechanism("pure")
def pure_dp(*, epsilon: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Return the guarantee of (epsilon, 0)-differential privacy.

    Args:
        epsilon: at least 0 and finite. You must ensure that the mechanism satisfies it.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if `epsilon` is negative or not finite.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `epsilon` is not a number.

    >>> pure_dp(epsilon=1).epsilon(delta=0)
    1.0
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    return _response(epsilon, 0.0, {"mechanism": "pure", "epsilon": epsilon}, adjacency)


@base_mechanism("approximate")
def approximate_dp(*, epsilon: SupportsFloat, delta: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Return the guarantee of (epsilon, delta)-differential privacy: epsilon outside a failure mass delta.

    One decomposition serves both directions (Kairouz, Oh, Viswanath 2015, Theorem 3.3), so the Renyi curve of
    randomised response holds outside that mass.

    Args:
        epsilon: at least 0 and finite. You must ensure that the mechanism satisfies it, together with delta.
        delta: in [0, 1).
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if `epsilon` or `delta` is out of range.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `epsilon` or `delta` is not a number.

    >>> g = approximate_dp(epsilon=1.0, delta=1e-6)
    >>> g.epsilon(delta=1e-6), g.epsilon(delta=1e-7)
    (1.0, inf)
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="up")
    return _response(epsilon, delta, {"mechanism": "approximate", "epsilon": epsilon, "delta": delta}, adjacency)


def _response(epsilon: float, delta: float, terms: dict[str, Any], adjacency: Adjacency | str) -> Guarantee:
    """Randomised response outside a failure mass, which has everything that the terms allow."""
    theorem = f"{terms['mechanism']} differential privacy"
    profile = RandomizedResponseProfile(epsilon, delta, theorem=theorem)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem=theorem,
        terms=terms,
        failure=delta,
        pure_epsilon=epsilon,
        renyi_curve=RandomizedResponseRenyi(epsilon),
        profile=profile,
        lower_profile=AttainedPair(profile.pair_source()),
    )
