"""Beta-binomial laws of K and the uniform law, which is one of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpselect.errors import integer, number
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions.exact_walk import bits_for, fixed_point, power_of_two_fraction, walk
from dpselect.repetitions.finite import LARGEST_TABLE, FiniteLaw
from dpselect.repetitions.gamma_ratio import log_gamma_ratio
from dpselect.repetitions.law import Family, FloatArray, repetition_law

__all__ = ["BetaBinomial", "Uniform"]


class _BetaMixture(FiniteLaw):
    """P(K = k) = a Gamma(n + 1) Gamma(k + a) / (Gamma(k + 1) Gamma(n + a + 1)) on 0 .. n."""

    @property
    @abstractmethod
    def _n(self) -> int: ...

    @property
    @abstractmethod
    def _shape(self) -> float: ...

    @property
    def minimum(self) -> int:
        """Nothing may run."""
        return 0

    def _log_weights(self) -> FloatArray:
        return log_gamma_ratio(np.arange(1.0, self._n + 2.0), self._shape - 1.0)

    @cached_property
    def _first_weight(self) -> tuple[int, int]:
        bits = bits_for(float(np.log(self._table[0])))

        def first(context: Any) -> Any:
            a = context.mpf(self._shape)
            return context.exp(
                context.loggamma(self._n + 1) + context.loggamma(a + 1) - context.loggamma(self._n + 1 + a)
            )

        return bits, fixed_point(bits, first)

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, first = self._first_weight
        shape, width = power_of_two_fraction(self._shape)

        def ratio(k: int) -> tuple[int, int]:
            return (k << width) + shape, (k + 1) << width

        return bits, walk(minimum=0, first=first, ratio=ratio, limit=self._n)


@repetition_law("beta-binomial")
@dataclass(frozen=True, kw_only=True)
class BetaBinomial(_BetaMixture):
    """K ~ Binomial(trials, p) with p ~ Beta(shape, 1). trials in [1, 2**20], shape in [1e-6, 1e3].

    Raises `ArgumentError` or `TypeError` naming the parameter that is out of range.

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

    @property
    def _n(self) -> int:
        return self.trials

    @property
    def _shape(self) -> float:
        return self.shape


@repetition_law("uniform")
@dataclass(frozen=True, kw_only=True)
class Uniform(_BetaMixture):
    """The uniform law on 0, 1, ..., limit; limit in [1, 2**20].

    Raises `ArgumentError` or `TypeError` for another limit.

    >>> Uniform(limit=4).pmf(4), Uniform(limit=4).mean
    (0.2, 2.0)
    """

    limit: int

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

    @property
    def _n(self) -> int:
        return self.limit

    @property
    def _shape(self) -> float:
        return 1.0

    def sample(self, random: RandomSource | None = None) -> int:
        """One exact draw of K."""
        return resolve(random).below(self.limit + 1)
