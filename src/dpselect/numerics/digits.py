"""Numbers as text, rounded to their own side: what is spent never looks smaller, what is left never larger."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

__all__ = ["rounded", "rounded_down", "rounded_up"]


def rounded_up(value: float, *, digits: int = 6) -> str:
    """So many significant digits, never below the value.

    >>> rounded_up(1.00000001), rounded_up(3.0), rounded_up(float("inf")), rounded_up(1.23451, digits=5)
    ('1.00001', '3', 'inf', '1.2346')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, *, digits: int = 6) -> str:
    """So many significant digits, never above the value.

    >>> rounded_down(1.99999999)
    '1.99999'
    """
    return _rounded(value, digits, ROUND_FLOOR)


def rounded(value: float, *, digits: int = 4) -> str:
    """So many significant digits, to nearest: for what is neither spent nor left.

    >>> rounded(0.73532941), rounded(12345.0)
    ('0.7353', '1.234e+04')
    """
    return _rounded(value, digits, ROUND_HALF_EVEN)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if value in (0.0, float("inf")):
        return f"{value:g}"
    exact = Decimal(repr(float(value)))
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)):.{digits}g}"
