"""Finite laws made of another law: K drawn again until it is within a limit, min(K, limit), and exponential tilting.

The first two are different laws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dpselect.errors import ArgumentError, expect, integer, number
from dpselect.repetitions.distribution import FloatArray, Repetitions, repetition_law
from dpselect.repetitions.exact_walk import power_of_two_fraction
from dpselect.repetitions.finite import LARGEST_TABLE, FiniteLaw, WeightedLaw
from dpselect.repetitions.one_run import OneRun, RenyiForm

__all__ = ["Capped", "Conditioned", "Tilted", "capped"]


@dataclass(frozen=True, kw_only=True)
class _Truncated(FiniteLaw):
    law: Repetitions
    limit: int

    def __post_init__(self) -> None:
        expect("law", self.law, Repetitions)
        object.__setattr__(self, "limit", integer("limit", self.limit, at_least=1, at_most=LARGEST_TABLE))

    @property
    def minimum(self) -> int:
        """As for the law that was truncated, the limit at most."""
        return min(self.law.minimum, self.limit)


@repetition_law("at-most")
@dataclass(frozen=True, kw_only=True)
class Conditioned(_Truncated, WeightedLaw):
    """The law of K given K <= limit: what `law.at_most(limit)` gives. limit in [1, 2**20].

    Papernot and Steinke (2022), Appendix E.1. Raises `ArgumentError` if no run is possible within the limit.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.law.minimum > self.limit or not np.any(self._log_weights()[1:] > -np.inf):
            raise ArgumentError(f"limit must leave a possible number of runs, got {self.limit}")

    def _log_weights(self) -> FloatArray:
        return self.law._log_pmf(np.arange(self.limit + 1.0))

    def at_most(self, limit: int) -> Repetitions:
        """The same law with a smaller limit."""
        return self if self.limit <= limit else self.law.at_most(limit)

    def renyi_forms(self, run: OneRun) -> tuple[RenyiForm, ...]:
        """The forms of the law before it was redrawn, by Lemma 22 of Papernot, Steinke 2022."""
        outside, biased = self.law.survival(float(self.limit)), self.law.size_biased_survival(float(self.limit))
        if biased >= 1.0:
            return ()
        once, always = -math.log1p(-outside), -math.log1p(-biased)

        def corrected(form: RenyiForm) -> RenyiForm:
            return lambda orders, epsilons: form(orders, epsilons) + once / (orders - 1.0) + always

        return tuple(corrected(form) for form in self.law.renyi_forms(run))

    def _tilted(self, s: float) -> Repetitions:
        # tilting and conditioning commute
        return self.law.tilted(s).at_most(self.limit)

    def _exact_weights(self) -> tuple[int, list[int]]:
        bits, weights = self.law._exact_pmf()
        return bits, list(islice(weights, self.limit + 1))


@repetition_law("capped")
@dataclass(frozen=True, kw_only=True)
class Capped(_Truncated):
    """The law of min(K, limit): what `capped(law, limit)` gives. limit in [1, 2**20]."""

    def _log_weights(self) -> FloatArray:
        logs = self.law._log_pmf(np.arange(self.limit + 1.0))
        with np.errstate(divide="ignore"):
            logs[-1] = np.log(self.law.survival(float(self.limit - 1)))
        return logs

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, weights = self.law._exact_pmf()

        def walk() -> Iterator[int]:
            left = 1 << bits
            for weight in islice(weights, self.limit):
                left -= weight
                yield weight
            yield left

        return bits, walk()


@repetition_law("tilted")
@dataclass(frozen=True, kw_only=True)
class Tilted(WeightedLaw):
    """P(K = k) proportional to factor**k P(law = k), for a finite law: what `law.tilted(factor)` gives.

    Papernot and Steinke (2022), Lemma 20. Raises `ArgumentError` for a law without a limit or above 2**20.
    """

    law: Repetitions
    factor: float

    def __post_init__(self) -> None:
        expect("law", self.law, Repetitions)
        if self.law.limit is None or self.law.limit > LARGEST_TABLE:
            raise ArgumentError(f"law must have a limit of at most {LARGEST_TABLE}")
        object.__setattr__(self, "factor", number("factor", self.factor, above=0.0, at_most=1.0))

    @property
    def limit(self) -> int:
        """The limit of the law that was tilted."""
        assert self.law.limit is not None
        return self.law.limit

    @property
    def minimum(self) -> int:
        """As for the law that was tilted."""
        return self.law.minimum

    def _log_weights(self) -> FloatArray:
        k = np.arange(self.limit + 1.0)
        return self.law._log_pmf(k) + k * math.log(self.factor)

    def _tilted(self, s: float) -> Tilted:
        return Tilted(law=self.law, factor=self.factor * s)

    def _exact_weights(self) -> tuple[int, list[int]]:
        bits, weights = self.law._exact_pmf()
        numerator, shift = power_of_two_fraction(self.factor)
        # room for factor**minimum, the largest power that matters
        bits += math.ceil(-self.law.minimum * math.log2(self.factor))
        power, tilted = 1 << bits, []
        for weight in weights:
            tilted.append(weight * power)
            power = power * numerator >> shift
        return bits, tilted


def capped(law: Repetitions, limit: int) -> Repetitions:
    """Return the distribution of min(K, limit), which stops a search short.

    This is another distribution than `law.at_most(limit)`, priced as itself.

    Args:
        law: the distribution of K.
        limit: the largest number of runs, at least 1. It is at most 2**20 if K can exceed it.

    Returns:
        The capped distribution, or `law` itself if K never exceeds the limit.

    Raises:
        ArgumentError: if `limit` is out of range or not an integer.
        TypeError: if `law` is not a distribution or `limit` is not a number.

    >>> from dpselect.repetitions import Geometric, capped
    >>> law = Geometric(gamma=0.5)
    >>> capped(law, 3).pmf(3), round(law.at_most(3).pmf(3), 12)
    (0.25, 0.142857142857)
    """
    expect("law", law, Repetitions)
    limit = integer("limit", limit, at_least=1)
    return law if law.limit is not None and law.limit <= limit else Capped(law=law, limit=limit)
