"""The error budget: how much failure probability is left, and what an ask does to it. Exact fractions, public.

An error budget V starts at the failure probability. An ask stakes s <= V and tests at level s. Rejected: V - s is left.
Accepted: s is left. Fractions neither underflow after many accepts nor round in favour of the searcher.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from dpselect.errors import ArgumentError, BudgetError, number, rational
from dpselect.numerics.digits import rounded_down

__all__ = ["ErrorBudget", "log_of", "shortened"]

_BITS: Final = 64
"""A stake has so many significant bits, rounded down, so that fractions stay short however many asks there are."""
_STEPS: Final = 1 << 20
_EMPTY: Final = 1 << 60
"""In place of the exponent of an empty error budget."""


def log_of(value: Fraction) -> float:
    """The natural logarithm, regardless of the size of a positive fraction.

    >>> round(log_of(Fraction(1, 10**400)), 3)
    -921.034
    """
    return math.log(value.numerator) - math.log(value.denominator)


@dataclass(frozen=True)
class ErrorBudget:
    """The failure probability that is left after the asks so far.

    >>> budget = ErrorBudget(Fraction(1, 16), consultations=4)
    >>> stake = budget.stake(None)
    >>> stake, budget.after(stake, accepted=False).left, budget.after(stake, accepted=True).left
    (Fraction(1, 64), Fraction(3, 64), Fraction(1, 64))

    Source: docs/theory/gate.md, Theorem 1.
    """

    left: Fraction
    consultations: int
    asked: int = 0

    def stake(self, wanted: Any) -> Fraction:
        """The stake of the next ask: None for an even share of what is left, "all", or a number.

        Raises `BudgetError` when nothing is left and `ArgumentError` for a stake that is not above 0 or is more than is
        left.
        """
        if not self.left:
            raise BudgetError("the error budget of this gate is empty. One more answer would not be certified")
        if wanted is None:
            asks_left = self.consultations - self.asked
            return shortened(self.left / asks_left) if asks_left > 1 else self.left
        if isinstance(wanted, str):
            if wanted != "all":
                raise ArgumentError(f'stake must be a number, "all" or None, got {wanted[:40]!r}. Write stake="all"')
            return self.left
        asked = wanted if isinstance(wanted, Fraction) else rational("stake", number("stake", wanted, above=0.0))
        if not 0 < asked <= self.left * (1 + Fraction(1, 10**9)):
            left = rounded_down(float(self.left))
            said = f"stake must be above 0 and at most what is left, {left}, got {float(asked)!r}"
            raise ArgumentError(f"{said}. Write stake={left}")
        # an amount that was printed or is a float64 is not exactly what is left: so near to all of it is all of it
        return self.left if asked >= self.left * (1 - Fraction(1, 10**9)) else shortened(asked)

    def charged(self, stake: Fraction) -> ErrorBudget:
        """The error budget while there is no answer yet, and if there never will be one."""
        return replace(self, left=self.left - stake, asked=self.asked + 1)

    def after(self, stake: Fraction, *, accepted: bool) -> ErrorBudget:
        """The error budget after an answer."""
        return replace(self.charged(stake), left=stake if accepted else self.left - stake)

    def exponent(self) -> int:
        """The failure probability left, as an integer that never decreases. `left_from` is at most what it was."""
        if not self.left:
            return _EMPTY
        return math.ceil(-log_of(self.left) / math.log(2.0) * _STEPS) + 1

    @staticmethod
    def left_from(exponent: int) -> Fraction:
        """At most what was left when `exponent` said so.

        >>> budget = ErrorBudget(Fraction(1, 20), consultations=2)
        >>> 0.0499999 < float(ErrorBudget.left_from(budget.exponent())) < 0.05
        True
        """
        if exponent >= _EMPTY:
            return Fraction(0)
        whole, part = divmod(exponent, _STEPS)
        return Fraction(2.0 ** (-part / _STEPS) * (1.0 - 1e-12)) / (1 << whole)


def shortened(value: Fraction) -> Fraction:
    """At most a fraction between 0 and 1, with few significant bits.

    >>> shortened(Fraction(1, 4)), Fraction(1, 3) - shortened(Fraction(1, 3)) < Fraction(1, 10**19)
    (Fraction(1, 4), True)
    """
    if not value:
        return value
    shift = value.denominator.bit_length() - value.numerator.bit_length() + _BITS
    return Fraction(math.floor(value * (1 << shift)), 1 << shift)
