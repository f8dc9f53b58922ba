"""Poisson laws of K (Papernot and Steinke 2022, Section 3.3), with and without K = 0."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaln, xlogy

from dpselect.errors import ArgumentError, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import root_between
from dpselect.repetitions.distribution import Family, FloatArray, repetition_law
from dpselect.repetitions.exact_walk import Ratio, Walked, power_of_two_fraction
from dpselect.repetitions.one_run import OneRun, RenyiForm, orders_above_one

__all__ = ["Poisson", "ZeroTruncatedPoisson", "corollary_21", "theorem_6"]


class _PoissonLike(Walked):
    """A Poisson law with mean `_rate`, its values k >= 1 divided by `_kept` = 1 - P(its K = 0), or by one."""

    convex_log_derivative = True
    limit = None
    """K has no limit."""

    @property
    @abstractmethod
    def _rate(self) -> float: ...

    @property
    def _kept(self) -> float:
        return 1.0

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

    def pure_shift(self, epsilon: float) -> float:
        """The rate times tanh(epsilon / 2), at v = 1 / (1 + exp(epsilon)): log phi' is linear in v."""
        return self._slope * math.tanh(epsilon / 2.0)

    def renyi_forms(self, run: OneRun) -> tuple[RenyiForm, ...]:
        """Papernot, Steinke 2022, Theorem 6 with the largest hat_epsilon it admits.

        If K = 0 is left out, phi' is divided by P(K > 0), and the rate is the mean before that.
        """
        log_mean, rate = self.log_derivative(0.0), self._slope * ROUND_UP

        def theorem_6(orders: FloatArray, epsilons: FloatArray) -> FloatArray:
            hat_delta = run.hockey_stick(np.log1p(1.0 / (orders - 1.0)))
            return epsilons + rate * hat_delta + log_mean / (orders - 1.0)

        return (theorem_6,)

    @property
    def _slope(self) -> float:
        """How much log phi' falls from v = 0 to v = 1: the rate, as the derivatives have it."""
        return self.log_derivative(0.0) - self.log_derivative(1.0)

    def _exact_ratio(self) -> Ratio:
        rate, rate_bits = power_of_two_fraction(self._rate)
        return lambda k: (rate, (k + 1) << rate_bits)


@repetition_law("poisson")
@dataclass(frozen=True, kw_only=True)
class Poisson(_PoissonLike):
    """The Poisson distribution of K on 0, 1, ...: with probability exp(-mean) nothing runs.

    Args:
        mean: the expected number of runs, above 0 and at most 1e6.

    Raises:
        ArgumentError: if `mean` is out of range.
        TypeError: if `mean` is not a number.

    >>> round(Poisson(mean=10).expected_quantile(), 8)
    0.90000454
    """

    mean: float

    minimum = 0
    """Nothing may run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, above=0.0, at_most=1e6))

    @property
    def _rate(self) -> float:
        return self.mean

    def negative_binomial_shape(self) -> float:
        """Infinity: the law is the limit of large shapes."""
        return math.inf

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By mean."""
        return (Family("Poisson", lambda mean: cls(mean=mean)),)

    def _pgf(self, s: FloatArray) -> FloatArray:
        return np.exp(self.mean * (s - 1.0))

    def _tilted(self, s: float) -> Poisson:
        return Poisson(mean=self.mean * s)

    def _exact_first(self, context: Any) -> Any:
        return context.exp(-context.mpf(self.mean))


@repetition_law("zero-truncated-poisson")
@dataclass(frozen=True, kw_only=True)
class ZeroTruncatedPoisson(_PoissonLike):
    """The distribution of a Poisson number given that it is not 0.

    Args:
        mean: E[K] of this distribution, above 1 and at most 1e6. It is not the mean of the Poisson distribution.

    Raises:
        ArgumentError: if `mean` is out of range.
        TypeError: if `mean` is not a number.

    >>> law = ZeroTruncatedPoisson(mean=10)
    >>> law.mean, law.minimum, round(law.pmf(10), 6)
    (10.0, 1, 0.125116)
    """

    mean: float

    minimum = 1
    """At least one run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, above=1.0, at_most=1e6))

    @cached_property
    def _rate(self) -> float:
        """The mean of the Poisson law: rate / (1 - exp(-rate)) = mean, rounded up."""
        return root_between(lambda x: x >= -self.mean * math.expm1(-x), safe=self.mean, unsafe=0.0)

    @cached_property
    def _kept(self) -> float:
        return -math.expm1(-self._rate)

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By mean."""
        return (Family("zero-truncated Poisson", lambda mean: cls(mean=mean)),)

    def _pgf(self, s: FloatArray) -> FloatArray:
        # expm1(rate s) / expm1(rate), free of overflow for s <= 1 and of cancellation for small s
        return np.exp(self._rate * (s - 1.0)) * -np.expm1(-self._rate * s) / self._kept

    def _tilted(self, s: float) -> ZeroTruncatedPoisson:
        rate = self._rate * s
        return ZeroTruncatedPoisson(mean=max(rate / -math.expm1(-rate), math.nextafter(1.0, 2.0)))

    def _exact_first(self, context: Any) -> Any:
        rate = context.mpf(self._rate)
        return rate / context.expm1(rate)


def theorem_6(*, law: Poisson, order: ArrayLike, epsilon: ArrayLike, hat_delta: ArrayLike) -> FloatArray:
    """epsilon + E[K] hat_delta + log E[K] / (order - 1) for K Poisson, as printed.

    `hat_delta` is the base's delta at hat_epsilon = log(order / (order - 1)), the largest that the theorem admits.
    With the base's exact profile this is the optimum of Lemma 7. Raises `ArgumentError` for E[K] < 1, where the
    printed form is false (equal base laws make it negative). `best_of` adds the outcome K = 0 at every mean.
    Source: Papernot, Steinke 2022, Theorem 6 (page 7).
    """
    if law.mean < 1.0:
        raise ArgumentError(f"law must have a mean of at least 1 for the printed theorem, got {law.mean!r}")
    return np.asarray(
        np.asarray(epsilon) + law.mean * np.asarray(hat_delta) + math.log(law.mean) / (orders_above_one(order) - 1.0)
    )


def corollary_21(*, law: Poisson, epsilon: SupportsFloat, failure: SupportsFloat) -> tuple[float, float, float]:
    """(largest order, Renyi epsilon, failure) of Poisson repetition of an (epsilon, failure)-private base.

    For orders up to 1 + 1/(exp(epsilon) - 1) the result is failure'-approximate Renyi private. Here
    epsilon' = epsilon + (exp(epsilon) - 1) log E[K] and failure' = 1 - exp(-E[K] failure). E[K] >= 1 is needed.
    Source: Papernot, Steinke 2022, Corollary 21 (whose epsilon in the range of orders is the base's).
    """
    epsilon = number("epsilon", epsilon, above=0.0)
    failure = number("failure", failure, at_least=0.0, below=1.0)
    if law.mean < 1.0:
        raise ArgumentError(f"law must have a mean of at least 1, got {law.mean!r}")
    growth = math.expm1(epsilon)
    return 1.0 + 1.0 / growth, epsilon + growth * math.log(law.mean), law.success_probability(failure)
