"""Exact laws and divergences of best-of-K on finite outputs: what every bound must cover.

Outputs are listed worst first. All functions work on the last axis and broadcast over the others, so that thousands
of pairs are checked at once. Probabilities are pushed through the generating function of K by `increment`, which
subtracts nothing. A comparison needs no more than a rounding tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.profile import PrivacyProfile
from dpselect.repetitions import Repetitions

__all__ = [
    "FinitePair",
    "best_of_masses",
    "finite_guarantee",
    "finite_pair",
    "hockey_stick",
    "renyi_divergence",
]


def best_of_masses(masses: ArrayLike, law: Repetitions) -> Array:
    """The law of the best of K independent outputs, "no run" first, then as given (worst first).

    >>> from dpselect.repetitions import Fixed
    >>> best_of_masses([0.5, 0.5], Fixed(count=2)).tolist()
    [0.0, 0.25, 0.75]
    """
    masses = np.asarray(masses, dtype=np.float64)
    better = np.cumsum(masses[..., ::-1], axis=-1)[..., ::-1]
    complement = np.concatenate((better[..., 1:], np.zeros((*masses.shape[:-1], 1))), axis=-1)
    steps = law.increment(complement_after=complement, mass=masses)
    empty = np.full((*masses.shape[:-1], 1), law.zero_probability)
    return np.concatenate((empty, steps), axis=-1)


def hockey_stick(upper: ArrayLike, lower: ArrayLike, epsilon: ArrayLike) -> Array:
    """H_{exp(epsilon)}(upper || lower): the sum of (upper - exp(epsilon) lower) where positive."""
    upper, lower = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    # exp(700) times any mass that a double can hold beside 1 is above 1; beyond, inf times 0 would be NaN
    factor = np.exp(np.minimum(np.asarray(epsilon, dtype=np.float64), 700.0))[..., None]
    return np.asarray(np.sum(np.maximum(upper - factor * lower, 0.0), axis=-1))


def renyi_divergence(upper: ArrayLike, lower: ArrayLike, order: ArrayLike) -> Array:
    """D_order(upper || lower) for orders above 1, inf allowed. It is inf if `upper` has mass that `lower` has not."""
    upper, lower = np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    order = np.asarray(order, dtype=np.float64)[..., None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.where(upper > 0.0, np.log(upper) - np.log(lower), -np.inf)
        log_upper = np.log(upper)
        largest = np.max(loss, axis=-1)
        finite = np.isfinite(order)
        excess = np.where(finite, order - 1.0, 1.0)
        exponent = np.where(upper > 0.0, log_upper + excess * loss, -np.inf)
        top = np.max(exponent, axis=-1, keepdims=True)
        moment = top[..., 0] + np.log(np.sum(np.exp(exponent - np.where(np.isfinite(top), top, 0.0)), axis=-1))
        value = np.where(finite[..., 0], moment / excess[..., 0], largest)
    return np.where(np.isinf(largest) & (largest > 0), np.inf, value)


@dataclass(frozen=True)
class FinitePair(PrivacyProfile):
    """Two laws on the same finitely many outputs, worst first, with exact curves in both directions."""

    upper: tuple[float, ...]
    lower: tuple[float, ...]
    theorem: str = "exact, finite outputs"

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(upper || lower)."""
        return hockey_stick(self.upper, self.lower, epsilons)

    def add(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(lower || upper)."""
        return hockey_stick(self.lower, self.upper, epsilons)

    def __call__(self, orders: Array) -> Array:
        """The larger Renyi divergence of the two directions."""
        return np.maximum(
            renyi_divergence(self.upper, self.lower, orders), renyi_divergence(self.lower, self.upper, orders)
        )

    def best_of(self, law: Repetitions) -> FinitePair:
        """The pair of laws of the best of K runs, "no run" first."""
        return finite_pair(best_of_masses(self.upper, law), best_of_masses(self.lower, law))


def finite_pair(upper: ArrayLike, lower: ArrayLike) -> FinitePair:
    """Two laws, as a pair."""
    ours, theirs = (tuple(np.asarray(law, dtype=np.float64).tolist()) for law in (upper, lower))
    return FinitePair(ours, theirs)


def finite_guarantee(upper: Sequence[float], lower: Sequence[float]) -> Guarantee:
    """The exact guarantee of a mechanism whose output laws on two neighbours are these (under add or remove).

    The masses must sum to one (you must ensure this).

    >>> e = math.e
    >>> round(finite_guarantee([e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)]).epsilon(delta=0), 9)
    1.0
    """
    pair = finite_pair(upper, lower)
    return Guarantee(
        adjacency=Adjacency.ADD_OR_REMOVE_ONE,
        theorem=pair.theorem,
        terms={"mechanism": "finite", "upper": list(pair.upper), "lower": list(pair.lower)},
        pure_epsilon=max(float(pair(np.array([math.inf]))[0]), 0.0),  # equal laws round below zero
        renyi_curve=pair,
        profile=pair,
    )
