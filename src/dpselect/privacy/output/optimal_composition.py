"""Optimal composition of equal approximate mechanisms, and when it starts to beat adding up.

Kairouz, Oh, Viswanath, "The composition theorem for differential privacy" (2015), Theorem 3.3; Hartmann et al. (2022),
Appendix A and Table 1. The ledger adds realised costs up. This module computes from how many mechanisms on that costs
more than fixing them in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

import mpmath

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.logs import fraction_up

__all__ = ["OptimalComposition", "composition_delta", "composition_family", "first_improvement"]


@dataclass(frozen=True)
class OptimalComposition:
    """The composition is (epsilon, delta)-private."""

    epsilon: float
    delta: float


def _up(value: mpmath.mpf) -> float:
    """The double at or above a number of many digits."""
    nearest = float(value)
    return nearest if mpmath.mpf(nearest) >= value else math.nextafter(nearest, math.inf)


def _digits(count: int, epsilon: float) -> int:
    """Enough decimal digits that neither the difference of the two sums nor 1 - (1 - delta)^count loses them."""
    return 60 + int(count * epsilon / 2.0) + max(0, -math.floor(math.log10(max(epsilon, 1e-300))))


def composition_family(
    *, count: int, epsilon: SupportsFloat, delta: SupportsFloat = 0.0
) -> tuple[OptimalComposition, ...]:
    """All (count - 2i) epsilon with the delta that goes with it, i = 0 .. count // 2.

    The `count`-fold adaptive composition of (epsilon, delta)-private mechanisms is, for each i,

        ((count - 2i) epsilon, 1 - (1 - delta)^count (1 - delta_i))-private,
        delta_i = sum_{l<i} C(count, l) (e^((count-l) epsilon) - e^((count-2i+l) epsilon)) / (1 + e^epsilon)^count,

    and for no smaller delta at that epsilon. Rounded up. The mechanisms must be fixed in advance: realised costs do not
    go in here. Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.

    >>> [round(c.delta, 6) for c in composition_family(count=2, epsilon=1.0)]
    [0.0, 0.462117]
    """
    count = integer("count", count, at_least=1)
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    delta = number("delta", delta, at_least=0.0, at_most=1.0, rounding="up")
    found = []
    with mpmath.workdps(_digits(count, epsilon)):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        whole = (1 + growth) ** count
        intact = (1 - mpmath.mpf(delta)) ** count
        left = right = mpmath.mpf(0)  # sums over l < i of C e^((count-l) epsilon) and C e^(l epsilon)
        for i in range(count // 2 + 1):
            inside = (left - growth ** (count - 2 * i) * right) / whole
            total = _up(1 - intact * (1 - inside)) if inside > 0 or delta > 0 else 0.0
            spent = Fraction(epsilon) * (count - 2 * i)
            found.append(OptimalComposition(fraction_up(spent), min(total, 1.0)))
            choose = math.comb(count, i)
            left += choose * growth ** (count - i)
            right += choose * growth**i
    return tuple(found)


def composition_delta(
    *, count: int, epsilon: SupportsFloat, delta: SupportsFloat = 0.0, total_epsilon: SupportsFloat
) -> float:
    """The smallest delta at any `total_epsilon` >= 0 for `count` mechanisms, on the whole optimal curve.

    1 - (1 - delta)^count (1 - sum_l C(count, l) [e^((count-l) epsilon) - e^(total_epsilon + l epsilon)]_+ /
    (1 + e^epsilon)^count): the hockey stick of `count` randomised responses outside the failures. Rounded up.
    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3 (between the points that it lists).

    >>> round(composition_delta(count=10, epsilon=0.1, delta=1e-3, total_epsilon=0.8), 10)
    0.0102404842
    """
    count = integer("count", count, at_least=1)
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    delta = number("delta", delta, at_least=0.0, at_most=1.0, rounding="up")
    total = number("total_epsilon", total_epsilon, at_least=0.0, rounding="down")
    with mpmath.workdps(_digits(count, epsilon)):
        growth, bound = mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp(mpmath.mpf(total))
        excess = mpmath.mpf(0)
        for l in range(count + 1):  # the names of the paper
            if Fraction(epsilon) * (count - 2 * l) <= Fraction(total):
                break
            excess += math.comb(count, l) * (growth ** (count - l) - bound * growth**l)
        inside = excess / (1 + growth) ** count
        if inside == 0 and delta == 0:
            return 0.0
        return min(1.0, _up(1 - (1 - mpmath.mpf(delta)) ** count * (1 - inside)))


def first_improvement(*, epsilon: SupportsFloat, delta: SupportsFloat) -> int:
    """The smallest number of epsilon-private mechanisms whose optimal composition beats adding up, within `delta`.

    The smallest k >= 2 with delta_1(k) = (e^(k epsilon) - e^((k-2) epsilon)) / (1 + e^epsilon)^k <= delta: then (k - 2)
    epsilon is proved where adding up gives k epsilon. Table 1 of Hartmann et al. prints one more than this formula in
    every column. k = 16 at delta = 1e-5 can be checked with the exact hockey stick of 16 randomised responses. (At an
    epsilon between the steps of 2 epsilon a smaller gain needs fewer: see `composition_delta`.)

    >>> first_improvement(epsilon=0.1, delta=1e-5)
    16
    """
    epsilon = number("epsilon", epsilon, above=0.0, rounding="up")
    delta = number("delta", delta, above=0.0, below=1.0, rounding="up")
    with mpmath.workdps(_digits(1, epsilon)):
        grown = mpmath.exp(mpmath.mpf(epsilon))
        first = 1 - 1 / grown**2
        shrink = mpmath.log1p(1 / grown)
        count = max(2, int(mpmath.floor(mpmath.log(first / mpmath.mpf(delta)) / shrink)) - 1)
        if count > 10**9:
            raise ArgumentError(f"epsilon {epsilon!r} and delta {delta!r} need more than 1e9 mechanisms")
        while first * (grown / (1 + grown)) ** count > mpmath.mpf(delta):
            count += 1
    return count
