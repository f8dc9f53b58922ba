"""Exact amounts: how a price or a budget in floating point becomes a rational number, rounded to the safe side."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpselect.decoding.limits import LimitError
from dpselect.decoding.numbers import fraction_of
from dpselect.errors import ArgumentError, rational
from dpselect.numerics.logs import fraction_up

__all__ = ["Exact", "charged_amount", "charged_price", "epsilon_used", "granted_amount", "noise_epsilon"]

Exact = int | float | str | Decimal | Fraction

_TYPED_DIGITS = 15
_KEPT_DIGITS = 30


def charged_amount(name: str, value: Exact) -> Fraction:
    """A price, never rounded down: what is subtracted from a budget.

    A float stands for the shortest decimal that reads back as it, so that three charges of 0.1 fill a budget of 0.3. If
    that decimal has more than 15 digits (a computed number), the larger of the two counts. Numbers with other prime
    factors than 2 and 5 below the line are rounded up at the 30th digit, so that sums keep a bounded size.

    >>> charged_amount("epsilon", 0.1), charged_amount("epsilon", "1e-6")
    (Fraction(1, 10), Fraction(1, 1000000))
    >>> charged_amount("epsilon", 0.1 + 0.2) >= Fraction(0.1 + 0.2)
    True
    """
    return _amount(name, value, up=True)


def charged_price(amount: Fraction) -> float:
    """The smallest double near an exact price that is charged no less: the way back from `charged_amount`.

    Three tests at 0.2 cost 0.6, while the doubles nearest to 0.2, exact, add up to the double above 0.6, which a
    budget of 0.6 would refuse.

    >>> charged_price(3 * charged_amount("epsilon", 0.2)), charged_price(Fraction(1, 3)) >= Fraction(1, 3)
    (0.6, True)
    """
    nearest = float(amount)
    return nearest if charged_amount("price", nearest) >= amount else math.nextafter(nearest, math.inf)


def noise_epsilon(value: float | Fraction) -> Fraction:
    """Return the epsilon to calibrate noise to if `value` is charged: less by one part in 2**50.

    That covers the difference between a double and its decimal, and the rounding of a `charged_price`.
    """
    return rational("epsilon", value) * (1 - Fraction(1, 2**50))


@lru_cache(maxsize=256)  # of values that are equal it is the same, regardless of their type
def epsilon_used(value: float | Fraction) -> Fraction:
    """The exact epsilon to run at, where a double that is not below `value` is charged: never above the charge.

    A double stands for its shortest decimal in a budget, which may be below it.

    >>> epsilon_used(0.1) == Fraction(1, 10) < Fraction(0.1), epsilon_used(Fraction(1, 3)), epsilon_used(0.5)
    (True, Fraction(1, 3), Fraction(1, 2))
    """
    exact = rational("epsilon", value)
    return min(exact, charged_amount("epsilon", fraction_up(exact)))


def granted_amount(name: str, value: Exact) -> Fraction:
    """A budget, never rounded up. Floats are read as by `charged_amount`.

    >>> granted_amount("epsilon", 0.3)
    Fraction(3, 10)
    """
    return _amount(name, value, up=False)


def _amount(name: str, value: Exact, *, up: bool) -> Fraction:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        # NumPy's doubles are floats whose repr is not a number
        if isinstance(value, float):
            exact = Fraction(repr(float(value)))
        else:
            exact = fraction_of(value, what=name) if isinstance(value, str) else Fraction(value)
    except LimitError:
        raise
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ArgumentError(f"{name} must be a finite number, got {value!r}") from None
    if exact < 0:
        raise ArgumentError(f"{name} must be at least 0, got {value!r}")
    if isinstance(value, float):
        typed = len(Decimal(repr(float(value))).normalize().as_tuple().digits) <= _TYPED_DIGITS
        return exact if typed else (max if up else min)(exact, Fraction(value))
    return exact if _is_decimal(exact) else _rounded(exact, up=up)


def _is_decimal(value: Fraction) -> bool:
    rest = value.denominator
    rest //= rest & -rest
    while rest % 5 == 0:
        rest //= 5
    return rest == 1


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    scale = Fraction(10) ** (_KEPT_DIGITS + len(str(value.denominator)) - len(str(value.numerator)))
    return (math.ceil if up else math.floor)(value * scale) / scale
