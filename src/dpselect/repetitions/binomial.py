"""Binomial laws of K and the fixed number of runs, which is the binomial law with probability one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, gammaln, xlog1py

from dpselect.errors import integer, number
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions.distribution import FloatArray, Repetitions, repetition_law
from dpselect.repetitions.exact_walk import Ratio, Walked, power_of_two_fraction
from dpselect.repetitions.gamma_ratio import log_gamma_ratio

__all__ = ["Binomial", "Fixed"]

_LARGEST = 1 << 24


class _Power(Repetitions):
    """phi(s) = (1 - p (1 - s))**n, p the `probability` and n the `limit`."""

    probability: float

    @property
    @abstractmethod
    def limit(self) -> int:
        """The number of trials."""

    @property
    def mean(self) -> float:
        """E[K] = trials * probability."""
        return self.limit * self.probability

    def _pgf(self, s: FloatArray) -> FloatArray:
        return np.exp(xlog1py(self.limit, -self.probability * (1.0 - s)))

    def _increment(self, complement: FloatArray, mass: FloatArray) -> FloatArray:
        # with x = p mass / (1 - p C): (1 - p C)**n (1 - (1 - x)**n); x is 1 at most but for rounding
        n, p = self.limit, self.probability
        missed = p * complement
        # 1 - p C without cancellation; at least p mass, which matters once 1 - C has lost the mass
        reached = np.where(complement < 0.5, 1.0 - missed, (1.0 - p) + p * (1.0 - complement))
        reached = np.maximum(reached, p * mass)
        log_reached = np.where(missed < 0.5, np.log1p(-np.minimum(missed, 0.5)), np.log(reached))
        share = np.divide(p * mass, reached, out=np.zeros_like(reached), where=reached > 0.0)
        return np.exp(n * log_reached) * -np.expm1(n * np.log1p(-np.minimum(share, 1.0)))

    def _falling(self, order: int, v: FloatArray) -> FloatArray:
        """The derivative of phi of this order at 1 - v."""
        top = math.prod(range(self.limit - order + 1, self.limit + 1)) * self.probability**order
        return float(top) * np.exp(xlog1py(max(self.limit - order, 0), -self.probability * v))

    def _log_derivative(self, v: FloatArray) -> FloatArray:
        return math.log(self.mean) + xlog1py(self.limit - 1, -self.probability * v)

    def _second_derivative(self, v: FloatArray) -> FloatArray:
        return self._falling(2, v)

    def _third_derivative(self, v: FloatArray) -> FloatArray:
        return self._falling(3, v)

    def expected_quantile(self) -> float:
        """E[K / (K + 1)] = 1 - (1 - (1 - p)**(n + 1)) / ((n + 1) p)."""
        n, p = self.limit + 1, self.probability
        missed = 0.0 if p == 1.0 else math.exp(n * math.log1p(-p))
        return 1.0 - (1.0 - missed) / (n * p)


@repetition_law("binomial")
@dataclass(frozen=True, kw_only=True)
class Binomial(Walked, _Power):
    """The binomial distribution: K is the number of successes in independent trials.

    Args:
        trials: the number of trials, from 1 to 2**24.
        probability: the probability of a success, from 1e-100 to below 1.

    Raises:
        ArgumentError: if a parameter is out of range; the message names it.
        TypeError: if a parameter is not a number; the message names it.

    >>> law = Binomial(trials=20, probability=0.5)
    >>> law.mean, law.quantile(0.5), round(law.pgf(0.5), 12) == round(0.75**20, 12)
    (10.0, 10, True)
    """

    trials: int
    probability: float

    minimum = 0
    """Nothing may run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", integer("trials", self.trials, at_least=1, at_most=_LARGEST))
        object.__setattr__(self, "probability", number("probability", self.probability, at_least=1e-100, below=1.0))

    @property
    def limit(self) -> int:
        """The number of trials."""
        return self.trials

    def pure_shift(self, epsilon: float) -> float:
        """(n - 1) log((1 - p + exp(epsilon)) / (1 + (1 - p) exp(epsilon))), at v = 1 / (1 + exp(epsilon))."""
        p = self.probability
        return (self.trials - 1) * math.log1p(-math.expm1(-epsilon) * p / (math.exp(-epsilon) + (1.0 - p)))

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        inside = np.clip(k, 0.0, self.trials)
        fewer = np.minimum(inside, self.trials - inside)
        logs = log_gamma_ratio(self.trials - fewer + 1.0, fewer) - gammaln(fewer + 1.0)
        logs += inside * math.log(self.probability) + (self.trials - inside) * math.log1p(-self.probability)
        return np.where(inside == k, logs, -np.inf)

    def _survival(self, k: FloatArray) -> FloatArray:
        return _binomial_survival(self.trials, self.probability, k)

    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        # K - 1 under the size-biased law has one trial less
        return np.where(m < 1.0, 1.0, _binomial_survival(self.trials - 1, self.probability, np.maximum(m, 1.0) - 1.0))

    def _tilted(self, s: float) -> Binomial:
        # p s / (1 - p + p s); never above p, so that rounding cannot leave the range
        probability = self.probability * s / (1.0 - self.probability * (1.0 - s))
        return Binomial(trials=self.trials, probability=min(probability, self.probability))

    def sample(self, random: RandomSource | None = None) -> int:
        """One exact draw of K, from about two random bits a trial.

        The trials' uniform numbers are compared with the probability bit by bit, all trials at once. Those that agree
        with it so far stay undecided, and each bit decides half of them.
        """
        source = resolve(random)
        numerator, bits = power_of_two_fraction(self.probability)
        undecided, successes = self.trials, 0
        for place in reversed(range(bits)):
            ones = source.bits(undecided).bit_count()
            if numerator >> place & 1:
                successes += undecided - ones
                undecided = ones
            else:
                undecided -= ones
            if undecided == 0:
                break
        return successes

    def _exact_first(self, context: Any) -> Any:
        return (1 - context.mpf(self.probability)) ** self.trials

    def _exact_ratio(self) -> Ratio:
        success, width = power_of_two_fraction(self.probability)
        failure = (1 << width) - success
        return lambda k: ((self.trials - k) * success, (k + 1) * failure)


@repetition_law("fixed")
@dataclass(frozen=True, kw_only=True)
class Fixed(_Power):
    """The distribution of a fixed number of runs, independent draws of one mixture.

    It is private only at `count` times the cost of one run.

    Args:
        count: the number of runs, from 1 to 2**24.

    Raises:
        ArgumentError: if `count` is out of range or not an integer.
        TypeError: if `count` is not a number.

    >>> Fixed(count=3).pgf(0.5), Fixed(count=3).expected_quantile()
    (0.125, 0.75)
    """

    count: int

    probability = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", integer("count", self.count, at_least=1, at_most=_LARGEST))

    @property
    def minimum(self) -> int:
        """Always `count`."""
        return self.count

    @property
    def limit(self) -> int:
        """Always `count`."""
        return self.count

    def pure_shift(self, epsilon: float) -> float:
        """(count - 1) epsilon: what composition costs."""
        return (self.count - 1) * epsilon

    def _pgf(self, s: FloatArray) -> FloatArray:
        return np.asarray(s**self.count)

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        return np.where(k == self.count, 0.0, -np.inf)

    def _survival(self, k: FloatArray) -> FloatArray:
        return np.where(k < self.count, 1.0, 0.0)

    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        return self._survival(m)

    def _tilted(self, s: float) -> Fixed:  # noqa: ARG002
        return self

    def sample(self, random: RandomSource | None = None) -> int:
        """Always `count`."""
        resolve(random)
        return self.count

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        return 320, ((1 << 320) * (k == self.count) for k in range(self.count + 1))


def _binomial_survival(trials: int, probability: float, k: FloatArray) -> FloatArray:
    inside = k < trials
    within = np.where(inside, k, 0.0)
    return np.where(inside, betainc(within + 1.0, np.maximum(trials - within, 1.0), probability), 0.0)
