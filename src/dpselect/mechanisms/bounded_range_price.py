"""Bounded range: what the exponential mechanism promises beyond pure privacy, exactly.

A mechanism has range epsilon when, for neighbouring data, the log-ratio of its output probabilities varies by at most
epsilon over the outputs (Durfee, Rogers 2019, Definition 4.1). It is then epsilon-private, and its worst pairs are
weaker than randomised response: the log-ratios are in [t - epsilon, t] for one t, and they average to ratio one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from dpselect.errors import number
from dpselect.numerics.logs import ROUND_UP, log1mexp
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.below import ClosedFormLowerProfile
from dpselect.privacy.losses.bounded_range import BoundedRangeProfile
from dpselect.privacy.renyi import PureRenyi

__all__ = ["BoundedRangeRenyi", "bounded_range", "bounded_range_rho"]


@dataclass(frozen=True)
class BoundedRangeRenyi(PureRenyi):
    """The largest Renyi divergence of a pair with range epsilon, in closed form.

    As for the profile, two-point ratios are worst. Q(R = 1/y) is linear in y = exp(-t). So the moment of order a is
    y^(-a) (A y - B). Here A = (1 - exp(-a r))/(1 - exp(-r)) and B = (exp(-r) - exp(-a r))/(1 - exp(-r)), r the range.
    It is largest at y = a B / ((a-1) A), where it equals A y^(1-a) / a. Its logarithm over a - 1 is

        r + [a log((1-exp(-a r))/a) - (a-1) log((1-exp(-(a-1) r))/(a-1)) - log(1-exp(-r))] / (a-1).

    Near epsilon = 0 the terms cancel. The bound epsilon^2 a / 8 is taken where it is smaller than the closed form with
    its rounding added (Dong, Durfee, Rogers 2020, and Cesar, Rogers 2021).
    """

    theorem: str = "bounded range (Dong, Durfee, Rogers 2020; exact Renyi divergence)"

    def __call__(self, orders: Array) -> Array:
        a = np.asarray(orders, dtype=np.float64)
        e = self.epsilon
        if e == 0.0:
            return np.zeros(a.shape)
        first = a * (log1mexp(a * e) - np.log(a))
        second = (a - 1.0) * (log1mexp((a - 1.0) * e) - np.log(a - 1.0))
        third = float(log1mexp(e))
        exact = e + (first - second - third) / (a - 1.0)
        slack = 1e-15 * (e + (np.abs(first) + np.abs(second) + abs(third) + a) / (a - 1.0))
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(np.minimum(exact + slack, e * e * a / 8.0 * ROUND_UP), e))


def bounded_range_rho(epsilon: SupportsFloat) -> float:
    """x - 1 - log(x) with x = epsilon/(1 - exp(-epsilon)): the largest Kullback-Leibler divergence at this range.

    Harrison and Manurangsi (2026) show that this is the smallest rho for which every mechanism of this range is
    rho-zCDP. Our accounting does not rest on it: it uses the exact Renyi divergence at every order.

    >>> round(bounded_range_rho(1.0), 5)
    0.1233
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    if epsilon < 1e-3:
        return epsilon * epsilon / 8.0  # above it by a factor 1 + epsilon^2/72 at most
    x = epsilon / -math.expm1(-epsilon)
    return x - 1.0 - math.log(x)


def bounded_range(*, epsilon: SupportsFloat, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> Guarantee:
    """Return the guarantee of a mechanism with range epsilon.

    It is pure epsilon, with exact curves below those of pure privacy.

    Args:
        epsilon: the range, at least 0: how much the log-ratio of the output probabilities varies over the outputs
            between neighbours. It is rounded up to a double.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: if `epsilon` is negative, NaN or infinite.
        AdjacencyError: if `adjacency` is neither of the two.
        TypeError: if `epsilon` is not a number.

    >>> bounded_range(epsilon=1.0).epsilon(delta=0)
    1.0
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    profile = BoundedRangeProfile(epsilon)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="bounded range (Durfee, Rogers 2019)",
        terms={"mechanism": "bounded-range", "epsilon": epsilon},
        pure_epsilon=epsilon,
        renyi_curve=BoundedRangeRenyi(epsilon),
        profile=profile,
        lower_profile=ClosedFormLowerProfile(profile),  # each epsilon has its own pair, so none serves them all
    )
