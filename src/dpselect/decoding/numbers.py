"""Exact numbers in text, whose size is known before they are made: a hundred bytes can stand for gigabytes."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from dpselect.decoding.limits import DOCUMENT, DecodingLimits, LimitError
from dpselect.errors import ArgumentError

__all__ = ["fraction_of"]

_NUMBER: Final = re.compile(
    r"[-+]?(?=\d|\.\d)(\d*)(?:/(\d+)|(?:\.(\d*))?(?:[eE]([-+]?\d+))?)", re.ASCII
)  # what `Fraction` reads, without underscores
_SHOWN: Final = 40


def fraction_of(text: str, *, what: str = "the number", limits: DecodingLimits = DOCUMENT) -> Fraction:
    """The exact number that a text says: 3, 0.1, 1e-6 or 1/3.

    Raises `LimitError` for more digits, as it stands or as a fraction, or a larger exponent than the limits take, and
    `ArgumentError` for what is not a number.

    >>> fraction_of("0.1"), fraction_of(" 1/3 "), fraction_of("1e-3")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000))
    >>> fraction_of("1e999999999999")
    Traceback (most recent call last):
    dpselect.decoding.limits.LimitError: the number has an exponent beyond 4300
    """
    text = text.strip() if len(text) <= 4 * limits.digits else text
    if len(text) > 2 * limits.digits + 40:
        raise LimitError(f"{what} has more than {limits.digits} digits")
    found = _NUMBER.fullmatch(text)
    if found is None or (found[2] is not None and not found[2].strip("0")):
        raise ArgumentError(f"{what} must be a number such as 0.1 or 1/3, got {text[:_SHOWN]!r}")
    whole, below, decimals, exponent = found.groups()
    if any(len(part or "") > limits.digits for part in (whole + (decimals or ""), below)):
        raise LimitError(f"{what} has more than {limits.digits} digits")
    if exponent is not None and (len(exponent) > 12 or abs(int(exponent)) > limits.exponent):
        raise LimitError(f"{what} has an exponent beyond {limits.exponent}")
    shift = int(exponent or 0) - len(decimals or "")  # so many zeros above the line, or below it
    if len(whole + (decimals or "")) + max(shift, 0) > limits.digits or -shift >= limits.digits:
        raise LimitError(f"{what} has more than {limits.digits} digits when it is written out")
    return Fraction(text)  # decodes: its digits and its exponent are bounded above
