"""Beta-binomial laws of K and the uniform law, which is one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.errors import integer, number
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions.distribution import Family, FloatArray, repetition_law
from dpselect.repetitions.exact_walk import Ratio, Walked, power_of_two_fraction
from dpselect.repetitions.finite import LARGEST_TABLE, FiniteLaw
from dpselect.repetitions.gamma_ratio import log_gamma_ratio

__all__ = ["BetaBinomial", "Uniform"]


class _BetaMixture(Walked, FiniteLaw):
    """P(K = k) = a Gamma(n + 1) Gamma(k + a) / (Gamma(k + 1) Gamma(n + a + 1)) on 0 .. n, a the `shape`."""

    minimum = 0
    """Nothing may run."""

    shape: float

    def _log_weights(self) -> FloatArray:
        return log_gamma_ratio(np.arange(1.0, self.limit + 2.0), self.shape - 1.0)

    def _exact_first(self, context: Any) -> Any:
        n, a = self.limit, context.mpf(self.shape)
        return context.exp(context.loggamma(n + 1) + context.loggamma(a + 1) - context.loggamma(n + 1 + a))

    def _exact_ratio(self) -> Ratio:
        shape, width = power_of_two_fraction(self.shape)
        return lambda k: ((k << width) + shape, (k + 1) << width)


@repetition_law("beta-binomial")
@dataclass(frozen=True, kw_only=True)
class BetaBinomial(_BetaMixture):
    """The beta-binomial distribution: K ~ Binomial(trials, p) with p ~ Beta(shape, 1).

    Args:
        trials: the largest K, from 1 to 2**20.
        shape: the first shape parameter of the beta distribution, from 1e-6 to 1e3. The mean of p is shape / (shape +
            1).

    Raises:
        ArgumentError: if a parameter is out of range; the message names it.
        TypeError: if a parameter is not a number; the message names it.

    >>> law = BetaBinomial(trials=30, shape=0.5)
    >>> law.mean, law.minimum, law.limit
    (10.0, 0, 30)
    """

    trials: int
    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", integer("trials", self.trials, at_least=1, at_most=LARGEST_TABLE))
        object.__setattr__(self, "shape", number("shape", self.shape, at_least=1e-6, at_most=1e3))

    @property
    def mean(self) -> float:
        """E[K] = trials shape / (shape + 1)."""
        return self.trials * self.shape / (self.shape + 1.0)

    @property
    def limit(self) -> int:
        """The number of trials."""
        return self.trials

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By the number of trials, at shape 1/2."""
        return (Family("beta-binomial, shape 1/2", lambda limit: cls(trials=int(limit), shape=0.5), whole=True),)


@repetition_law("uniform")
@dataclass(frozen=True, kw_only=True)
class Uniform(_BetaMixture):  # class-names: users write both: of the number of runs and of a parameter
    """The uniform distribution of K on 0, 1, ..., limit.

    Args:
        limit: the largest K, from 1 to 2**20.

    Raises:
        ArgumentError: if `limit` is out of range or not an integer.
        TypeError: if `limit` is not a number.

    >>> Uniform(limit=4).pmf(4), Uniform(limit=4).mean
    (0.2, 2.0)
    """

    limit: int

    shape = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", integer("limit", self.limit, at_least=1, at_most=LARGEST_TABLE))

    @property
    def mean(self) -> float:
        """E[K] = limit / 2."""
        return 0.5 * self.limit

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By the limit."""
        return (Family("uniform", lambda limit: cls(limit=int(limit)), whole=True),)

    def sample(self, random: RandomSource | None = None) -> int:
        """One exact draw of K."""
        return resolve(random).below(self.limit + 1)
