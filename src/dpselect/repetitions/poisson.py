"""Poisson laws of K (Papernot and Steinke 2022, Section 3.3), with and without K = 0."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammainc, gammaln, xlogy

from dpselect.errors import number
from dpselect.repetitions.exact_walk import bits_for, fixed_point, power_of_two_fraction, walk
from dpselect.repetitions.law import FloatArray, Repetitions

__all__ = ["Poisson", "ZeroTruncatedPoisson"]


class _PoissonLike(Repetitions):
    """A Poisson law with mean `_rate`, its values k >= 1 divided by `_kept` = 1 - P(its K = 0), or by one."""

    @property
    @abstractmethod
    def _rate(self) -> float: ...

    @property
    @abstractmethod
    def _kept(self) -> float: ...

    @abstractmethod
    def _exact_first(self, context: Any) -> Any:
        """P(K = minimum), computed in an mpmath context."""

    @property
    def limit(self) -> int | None:
        """K has no limit."""
        return None

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        inside = np.maximum(k, 0.0)
        logs = xlogy(inside, self._rate) - self._rate - gammaln(inside + 1.0) - math.log(self._kept)
        return np.where(k >= self.minimum, logs, -np.inf)

    def _survival(self, k: FloatArray) -> FloatArray:
        return np.minimum(gammainc(k + 1.0, self._rate) / self._kept, 1.0)

    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        # K - 1 under the size-biased law is Poisson again
        return np.where(m < 1.0, 1.0, gammainc(np.maximum(m, 1.0), self._rate))

    def _increment(self, complement: FloatArray, mass: FloatArray) -> FloatArray:
        return np.exp(-self._rate * complement) * -np.expm1(-self._rate * mass) / self._kept

    def _log_derivative(self, v: FloatArray) -> FloatArray:
        return math.log(self._rate / self._kept) - self._rate * v

    def _second_derivative(self, v: FloatArray) -> FloatArray:
        return self._rate**2 / self._kept * np.exp(-self._rate * v)

    def _third_derivative(self, v: FloatArray) -> FloatArray:
        return self._rate**3 / self._kept * np.exp(-self._rate * v)

    def expected_quantile(self) -> float:
        """E[K / (K + 1)] = (1 - (1 - exp(-rate)) / rate) / P(not 0)."""
        rate = self._rate
        if rate > 0.1:
            return (1.0 + math.expm1(-rate) / rate) / self._kept
        # the alternating series of 1 - (1 - exp(-rate)) / rate, which would cancel
        return sum(-((-rate) ** n) / math.factorial(n + 1) for n in range(1, 14)) / self._kept

    @cached_property
    def _first_weight(self) -> tuple[int, int]:
        bits = bits_for(float(self._log_pmf(np.full(1, self.minimum))[0]))
        return bits, fixed_point(bits, self._exact_first)

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, first = self._first_weight
        rate, rate_bits = power_of_two_fraction(self._rate)

        def ratio(k: int) -> tuple[int, int]:
            return rate, (k + 1) << rate_bits

        return bits, walk(minimum=self.minimum, first=first, ratio=ratio)


@dataclass(frozen=True, kw_only=True)
class Poisson(_PoissonLike):
    """The Poisson law on 0, 1, ...; with probability exp(-mean) nothing runs. mean in (0, 1e6].

    Raises `ArgumentError` or `TypeError` for another mean.

    >>> round(Poisson(mean=10).expected_quantile(), 8)
    0.90000454
    """

    law_name: ClassVar[str] = "poisson"
    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, above=0.0, at_most=1e6))

    @property
    def minimum(self) -> int:
        """Nothing may run."""
        return 0

    @property
    def _rate(self) -> float:
        return self.mean

    @property
    def _kept(self) -> float:
        return 1.0

    def _pgf(self, s: FloatArray) -> FloatArray:
        return np.exp(self.mean * (s - 1.0))

    def _tilted(self, s: float) -> Poisson:
        return Poisson(mean=self.mean * s)

    def _exact_first(self, context: Any) -> Any:
        return context.exp(-context.mpf(self.mean))


@dataclass(frozen=True, kw_only=True)
class ZeroTruncatedPoisson(_PoissonLike):
    """A Poisson law given that it is not 0. `mean` is E[K] of this law, in (1, 1e6], not that of the Poisson law.

    Raises `ArgumentError` or `TypeError` for another mean.

    >>> law = ZeroTruncatedPoisson(mean=10)
    >>> law.mean, law.minimum, round(law.pmf(10), 6)
    (10.0, 1, 0.125116)
    """

    law_name: ClassVar[str] = "zero-truncated-poisson"
    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, above=1.0, at_most=1e6))

    @property
    def minimum(self) -> int:
        """At least one run."""
        return 1

    @cached_property
    def _rate(self) -> float:
        """The mean of the Poisson law: rate / (1 - exp(-rate)) = mean, bisected to the larger endpoint."""
        low, high = 0.0, self.mean
        while low < (middle := 0.5 * (low + high)) < high:
            low, high = (middle, high) if middle < -self.mean * math.expm1(-middle) else (low, middle)
        return high

    @cached_property
    def _kept(self) -> float:
        return -math.expm1(-self._rate)

    def _pgf(self, s: FloatArray) -> FloatArray:
        # expm1(rate s) / expm1(rate), free of overflow for s <= 1 and of cancellation for small s
        return np.exp(self._rate * (s - 1.0)) * -np.expm1(-self._rate * s) / self._kept

    def _tilted(self, s: float) -> ZeroTruncatedPoisson:
        rate = self._rate * s
        return ZeroTruncatedPoisson(mean=max(rate / -math.expm1(-rate), math.nextafter(1.0, 2.0)))

    def _exact_first(self, context: Any) -> Any:
        rate = context.mpf(self._rate)
        return rate / context.expm1(rate)
