"""Gaussian noise for the counts of a binary search: part of it shared by all steps.

A search asks J counts #{x <= probe}, each probe chosen after the last answers. Replacing one value moves all counts
between the old and the new place by one, in the same direction, and no other. So the shift is s times a vector of zeros
and ones, s = 1 or -1. Independent noise of variance a pays mu^2 = J/a for it. Let z_i = g + e_i with one g of variance
b for the whole search and fresh e_i of variance a. Then

    mu^2 = max over j <= J of (1/a) (j - j^2 b/(a + J b)),

the squared length of a vector with j ones in the metric of the inverse covariance. With b = a/sqrt(J) that is about
(sqrt(J) + 1)^2/4 over the variance a + b of one count: for ten steps 4.3 instead of 10. Among covariances that do not
depend on the path this is the best, since all subsets can occur and averaging over the order of steps loses nothing.

*Privacy with adaptive probes.* The transcript has density prod phi over a triangular map of the noise: whiten it with
the Cholesky factor of the covariance. Step i is then a Gaussian mechanism of deviation one whose shift v_i depends on
earlier answers only, and sum v_i^2 = d' Sigma^-1 d <= mu^2 on every path. Add a last Gaussian with the shift that is
missing to mu^2. The log-likelihood ratio is sum v_i w_i + mu^2/2 with adapted v_i and sum v_i^2 = mu^2 exactly. It is
normal with variance mu^2, by E[exp(i s v_n w_n)] = exp(-s^2 v_n^2/2) from the last step backwards. So the search, and
any adaptive sequence of searches with sum of squares mu^2, is exactly as private as N(0,1) against N(mu,1). (Elliptic
Gaussian noise for sets of counts that do not adapt: Joseph, Yu 2024. Fully adaptive Gaussian composition: Smith,
Thakurta 2022.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import integer, number
from dpselect.mechanisms.grid import gaussian_steps
from dpselect.randomness import RandomSource, resolve

__all__ = ["SearchNoise", "best_sharing", "search_cost"]

_FRACTION_BITS = 28


def search_cost(steps: int, sharing: float) -> float:
    """mu^2 of one search times the variance of one count, for a shared variance of `sharing` times the fresh one.

    Source: docs/theory/generalisation.md, Theorem 2.

    >>> search_cost(10, 0.0), round(search_cost(10, 10**-0.5), 3)
    (10.0, 4.314)
    """
    ones = np.arange(steps + 1, dtype=np.float64)
    return float((1.0 + sharing) * np.max(ones - ones * ones * sharing / (1.0 + steps * sharing)))


def best_sharing(steps: int) -> float:
    """The share with the smallest `search_cost`, nearly: any share is sound, so it is searched on a grid."""
    if steps < 2:
        return 0.0
    grid = np.concatenate(([0.0], np.geomspace(0.1, 4.0, 400) / math.sqrt(steps)))
    return float(min(grid, key=lambda sharing: search_cost(steps, float(sharing))))


@dataclass(frozen=True)
class SearchNoise:
    """The noise of one search of `steps` counts, part of it shared by all of them.

    A count's own noise has variance fresh^2 + shared^2. When drawn, both parts are integer multiples of 1/`scale` of a
    count, which is at most 2**-28 of the fresh deviation (see `draw`).

    Args:
        steps: how many counts a search asks, an integer in [0, 4096]. Public.
        fresh: the deviation of the part that each count draws for itself, in counts, in [2**-20, 2**40].
        shared: the deviation of the part that all counts share, in counts. 0 for none, or from 2**-4 to 2**16 times
            `fresh`.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if a parameter is not a number.
    """

    steps: int
    fresh: float
    shared: float

    def __post_init__(self) -> None:
        fresh = number("fresh", self.fresh, at_least=2.0**-20, at_most=2.0**40)
        shared = number("shared", self.shared, at_least=0.0)
        if shared:
            number("shared", shared, at_least=fresh * 2.0**-4, at_most=fresh * 2.0**16)
        object.__setattr__(self, "steps", integer("steps", self.steps, at_least=0, at_most=4096))
        object.__setattr__(self, "fresh", fresh)
        object.__setattr__(self, "shared", shared)

    @staticmethod
    def of_deviation(steps: int, deviation: float, *, sharing: float | None = None) -> SearchNoise:
        """Noise of this deviation on every count, shared as is best (or as given, with 0 for independent noise)."""
        sharing = best_sharing(steps) if sharing is None else sharing
        fresh = number("deviation", deviation, above=0.0) / math.sqrt(1.0 + sharing)
        return SearchNoise(steps, fresh, fresh * math.sqrt(sharing))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of one count."""
        return math.hypot(self.fresh, self.shared)

    @property
    def mu(self) -> float:
        """One search is as private, for one replaced value, as N(0,1) against N(mu,1). Rounded up."""
        sharing = (self.shared / self.fresh) ** 2
        return math.sqrt(search_cost(self.steps, sharing) / (1.0 + sharing)) / self.fresh * (1.0 + 1e-12)

    @property
    def scale(self) -> int:
        """How many steps of the noise grid make one count: a power of two."""
        return 1 << max(_FRACTION_BITS - math.frexp(self.fresh)[1] + 1, 0)

    def draw(self, random: RandomSource | None = None) -> NDArray[np.int64]:
        """The noise of the steps of one search, in 1/`scale` of a count. They are integers, so that nothing is rounded.

        Both parts are discrete Gaussians, exactly. The mixture over the shared one is the continuous mixture up to a
        factor 1 +- exp(-2 pi^2 2^50). This is by Poisson summation, its deviation given the answers being above 2^25
        steps. For the fresh part `gaussian_steps` states the distance from a rounded continuous Gaussian. The sum of
        that one and an integer is a post-processing of the continuous mechanism.
        """
        source = resolve(random)
        fresh: Any = gaussian_steps(self.fresh * self.scale, self.steps, source)
        if self.shared:
            fresh = fresh + gaussian_steps(self.shared * self.scale, 1, source)[0]
        return np.asarray(fresh, dtype=np.int64)
