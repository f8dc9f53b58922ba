"""Text that is a number: one reading for every source of text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from dpselect.numerics import Array

__all__ = ["TRUTH", "number_in", "numbers_in", "otherwise_written", "restated"]

TRUTH: Final = {"true": 1, "false": 0}
"""Truth values as R, pandas, spreadsheets and JSON write them, in lower case."""
_BLANKS: Final = "\u00a0\u2009\u202f"
"""Blanks that do not break, or are thin, between groups of three digits."""


def number_in(text: str, decimal: str = ".", thousands: str = "") -> float:
    """The number that a text is, NaN where it is none; outer blanks do not count, and true is 1, false 0, in any case.

    `decimal` and `thousands` are the separators of the decimal places and of groups of three digits. Whatever is not
    written with them is no number: with a decimal comma "1.234" may have been meant as 1234.

    >>> number_in(" 7.35"), number_in("TRUE"), number_in("1_000"), number_in("1,994")
    (7.35, 1.0, nan, nan)
    >>> number_in("1.994,5", ",", "."), number_in("1,994", thousands=","), number_in("1,99", thousands=",")
    (1994.5, 1994.0, nan)
    """
    text = text.strip()
    if decimal != "." or thousands:
        found = _written(decimal, thousands).fullmatch(text)
        if found is not None:
            whole, places, exponent = found.groups()
            kept = "".join(letter for letter in whole if letter in "+-0123456789")
            return float(f"{kept}.{places or 0}{exponent or ''}")
        if any(letter.isdigit() for letter in text):
            return math.nan
    if text.lower() in TRUTH:
        return float(TRUTH[text.lower()])
    try:
        return math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
    except ValueError:
        return math.nan


@cache
def _written(decimal: str, thousands: str) -> re.Pattern[str]:
    """A number with these separators: its sign and digits, its places, its exponent."""
    between = f"[{re.escape(thousands)}{_BLANKS if thousands == ' ' else ''}]"
    grouped = rf"\d{{1,3}}(?:{between}\d{{3}})+|" if thousands else ""
    return re.compile(
        rf"([+-]?(?:{grouped}\d+|(?={re.escape(decimal)}\d)))(?:{re.escape(decimal)}(\d*))?([eE][+-]?\d+)?"
    )


def numbers_in(cells: Sequence[str], decimal: str = ".", thousands: str = "") -> Array:
    """`number_in` of each cell, shape (cells,)."""
    if decimal == "." and not thousands and not any("_" in cell for cell in cells):
        try:
            return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:
            pass
    return np.fromiter((number_in(cell, decimal, thousands) for cell in cells), dtype=np.float64, count=len(cells))


def otherwise_written(cells: Sequence[str], decimal: str = ".", thousands: str = "") -> int:
    """How many cells are no numbers as declared, and would be with other separators.

    >>> otherwise_written(["1,994", "697", "12,5", "x", "1.5"])
    2
    """
    others = {(",", "."), (".", ","), (",", ""), (",", " "), (".", "'")} - {(decimal, thousands)}
    lost = [cell for cell in cells if math.isnan(number_in(cell, decimal, thousands))]
    return sum(any(not math.isnan(number_in(cell, *form)) for form in others) for cell in lost)


def restated(cells: Sequence[str], decimal: str, thousands: str, *, strict: bool) -> list[str]:
    """The same cells with a decimal point and without separators of thousands.

    With `strict`, for a column of numbers, a cell that is no number as it was declared is none afterwards, either.
    """

    def restate(cell: str) -> str:
        number = number_in(cell, decimal, thousands)
        if math.isnan(number):
            return f"no number: {cell}" if strict and not math.isnan(number_in(cell)) else cell
        return cell if number == number_in(cell) else repr(number)

    return [restate(cell) for cell in cells]
