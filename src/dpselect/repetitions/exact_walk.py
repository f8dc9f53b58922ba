"""Probabilities as big integers, for drawing K without a floating-point shortcut.

A law whose successive probabilities have an exactly known rational ratio is walked from its first value. mpmath
computes the first probability to the full precision, and integer multiplication the others. Each floor loses less than
one unit of 2**-bits. If the probabilities rise and then fall, the later ratios enlarge that by at most
P(K = k) / P(K = minimum). `bits_for` adds the bits of the first probability to 320. So each of the first 2**20 weights
is within 2**-300 max(P(K = k), P(K = minimum)) of the truth, and the total variation error is below 2**-250.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from dpselect.randomness import RandomSource
from dpselect.repetitions.distribution import Repetitions

__all__ = ["Walked", "bits_for", "draw_decreasing_tail", "power_of_two_fraction"]

Ratio = Callable[[int], tuple[int, int]]
_BITS = 320
_PRECISION = 1024


class Walked(Repetitions):
    """A law that is drawn by walking from its smallest value, by the exact ratio of one probability to the next."""

    @abstractmethod
    def _exact_first(self, context: Any) -> Any:
        """P(K = minimum), computed in an mpmath context."""

    @abstractmethod
    def _exact_ratio(self) -> Ratio:
        """From k to P(K = k + 1) / P(K = k), as a numerator and a denominator."""

    @cached_property
    def _first_weight(self) -> tuple[int, int]:
        """`bits`, and floor(2**bits P(K = minimum))."""
        import mpmath  # for sampling alone

        bits = bits_for(float(self._log_pmf(np.full(1, float(self.minimum)))[0]))
        # a context of its own: that of mpmath has a precision that other threads may change
        context = mpmath.MPContext()
        # 1 - gamma and the like may lose 340 bits against the smallest gamma that the laws accept
        context.prec = bits + 512
        return bits, int(context.floor(context.ldexp(self._exact_first(context), bits)))

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, first = self._first_weight
        return bits, self._walk(first)

    def _walk(self, weight: int) -> Iterator[int]:
        yield from (0 for _ in range(self.minimum))
        k, ratio, limit = self.minimum, self._exact_ratio(), self.limit
        while True:
            yield weight
            if k == limit:
                return
            numerator, denominator = ratio(k)
            weight = weight * numerator // denominator
            k += 1


def bits_for(log_first: float) -> int:
    """The bits that a walk needs when its first probability has this natural logarithm."""
    return 321 + math.ceil(max(0.0, -log_first / math.log(2.0)))


def power_of_two_fraction(value: float) -> tuple[int, int]:
    """(numerator, e) with value = numerator / 2**e exactly, e >= 0."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator.bit_length() - 1


def draw_decreasing_tail(*, start: int, log_weight: Callable[[Any, int], Any], random: RandomSource) -> int:
    """One draw of k >= start with probability proportional to exp(log_weight(context, k)), decreasing in k.

    Rejection: draw a block [start 2**j, start 2**(j + 1)) by its length times its largest weight, then a uniform k in
    it, and accept by k's own weight. All have 320 bits computed at 1024 bits of precision. The weights must in the end
    fall off exponentially. Blocks below 2**-320 of the first are left out. Total variation error below 2**-250.
    """
    import mpmath  # for sampling alone

    context = mpmath.MPContext()
    context.prec = _PRECISION
    origin = log_weight(context, start)

    def fixed(log_value: Any) -> int:
        return int(context.floor(context.ldexp(context.exp(log_value), _BITS)))

    tops: list[Any] = []
    envelopes: list[int] = []
    while not envelopes or envelopes[-1] > 0:
        tops.append(log_weight(context, start << len(tops)))
        envelopes.append(fixed(tops[-1] - origin) << (len(tops) - 1))
    cumulated = list(accumulate(envelopes))
    while True:
        drawn = random.below(cumulated[-1])
        block = next(j for j, reached in enumerate(cumulated) if drawn < reached)
        length = start << block
        k = length + random.below(length)
        if random.bits(_BITS) < fixed(log_weight(context, k) - tops[block]):
            return k
