"""Amounts of privacy as text: what is spent never looks smaller than it is, what is left never larger."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

__all__ = ["rounded_down", "rounded_up"]


def rounded_up(value: float) -> str:
    """Six digits, never below the value.

    >>> rounded_up(1.00000001), rounded_up(3.0), rounded_up(float("inf"))
    ('1.00001', '3', 'inf')
    """
    return _rounded(value, ROUND_CEILING)


def rounded_down(value: float) -> str:
    """Six digits, never above the value.

    >>> rounded_down(1.99999999)
    '1.99999'
    """
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, rounding: str) -> str:
    if value in (0.0, float("inf")):
        return f"{value:g}"
    exact = Decimal(repr(float(value)))
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 5), rounding=rounding)):.6g}"
