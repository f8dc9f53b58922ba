"""Probabilities as big integers, for drawing K without a floating-point shortcut.

A law whose successive probabilities have an exactly known rational ratio is walked from its first value: the first
probability is worked out by mpmath to the full precision, the others by integer multiplication. Each floor loses less
than one unit of 2**-bits, which the later ratios enlarge by at most P(K = k) / P(K = minimum), for a law whose
probabilities rise and then fall. `bits_for` adds the bits of the first probability to 320, so each of the first 2**20
weights is within 2**-300 max(P(K = k), P(K = minimum)) of the truth and the total variation error is below 2**-250.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["bits_for", "fixed_point", "power_of_two_fraction", "walk"]


def bits_for(log_first: float) -> int:
    """The bits that a walk needs when its first probability has this natural logarithm."""
    return 321 + math.ceil(max(0.0, -log_first / math.log(2.0)))


def fixed_point(bits: int, value: Callable[[Any], Any]) -> int:
    """floor(2**bits value), where `value` computes in the mpmath context that it is given.

    The context is private: mpmath's own one has a precision that other threads may change.
    """
    import mpmath  # for sampling alone

    context = mpmath.MPContext()
    # 1 - gamma and the like may lose 340 bits against the smallest gamma that the laws accept
    context.prec = bits + 512
    return int(context.floor(context.ldexp(value(context), bits)))


def power_of_two_fraction(value: float) -> tuple[int, int]:
    """(numerator, e) with value = numerator / 2**e exactly, e >= 0."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator.bit_length() - 1


def walk(
    *, minimum: int, first: int, ratio: Callable[[int], tuple[int, int]], limit: int | None = None
) -> Iterator[int]:
    """Weights of k = 0, 1, 2, ... up to `limit`: zero below `minimum`, then `first`, then by the exact ratios.

    `ratio(k)` is P(K = k + 1) / P(K = k) as a numerator and a denominator.
    """
    yield from (0 for _ in range(minimum))
    k, weight = minimum, first
    while True:
        yield weight
        if k == limit:
            return
        numerator, denominator = ratio(k)
        weight = weight * numerator // denominator
        k += 1
