"""Text that is a number: one reading for every source of text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np

from dpselect.numerics.search import Array

__all__ = ["TRUTH", "double_of", "number_in", "numbers_in", "otherwise_written", "restated"]

TRUTH: Final = {"true": 1, "false": 0}
"""Booleans as R, pandas, spreadsheets and JSON write them, in lower case."""
_NO_NUMBERS: Final = (complex, np.ndarray)
"""What `float` takes, with a warning, or some of."""
_BLANKS: Final = "\u00a0\u2009\u202f"
"""Blanks that do not break, or are thin, between groups of three digits."""


def number_in(text: str, decimal: str = ".", thousands: str = "") -> float:
    """The number that a text is, NaN where it is none; outer blanks do not count, and true is 1, false 0, in any case.

    `decimal` and `thousands` are the separators of the decimal places and of groups of three digits. Anything that is
    not written with them is not a number: with a decimal comma "1.234" may have been meant as 1234.

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
            kept = "".join(letter for letter in whole if letter in "+-" or letter.isdecimal())
            return float(f"{kept}.{places or 0}{exponent or ''}")
        if any(letter.isdigit() for letter in text):
            return math.nan
    if text.lower() in TRUTH:
        return float(TRUTH[text.lower()])
    try:
        return math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
    except ValueError:
        return math.nan


def double_of(cell: Any) -> float:
    """The number that a Python object is, NaN where it is none: what `float` takes, and text as `number_in` reads it.

    What is beyond all doubles is an infinity. No content makes it raise.

    >>> double_of(True), double_of(Fraction(5, 2)), double_of("1e3"), double_of(b" 7"), double_of(10**400)
    (1.0, 2.5, 1000.0, 7.0, inf)
    >>> double_of(None), double_of([1]), double_of(1j)
    (nan, nan, nan)
    """
    if type(cell) is float:
        return cell
    if isinstance(cell, str):
        return number_in(cell)
    if isinstance(cell, bytes):
        return number_in(cell.decode("utf-8", "replace"))
    if cell is None or isinstance(cell, _NO_NUMBERS) or (isinstance(cell, np.generic) and not _is_number(cell)):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return (math.inf if cell > 0 else -math.inf) if isinstance(cell, (int, Fraction)) else math.nan
    except Exception:  # a cell's own code may raise anything
        return math.nan


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (np.floating, np.integer, np.bool_)) and not isinstance(cell, np.timedelta64)


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
    """How many cells are not numbers as declared, and would be with other separators.

    >>> otherwise_written(["1,994", "697", "12,5", "x", "1.5"])
    2
    """
    others = {(",", "."), (".", ","), (",", ""), (",", " "), (".", "'")} - {(decimal, thousands)}
    lost = [cell for cell in cells if math.isnan(number_in(cell, decimal, thousands))]
    return sum(any(not math.isnan(number_in(cell, *form)) for form in others) for cell in lost)


def restated(cells: Sequence[str], decimal: str, thousands: str, *, strict: bool) -> list[str]:
    """The same cells with a decimal point and without separators of thousands.

    With `strict`, for a column of numbers, a cell that is not a number as it was declared is none afterwards, either.
    """

    def restate(cell: str) -> str:
        number = number_in(cell, decimal, thousands)
        if math.isnan(number):
            return f"no number: {cell}" if strict and not math.isnan(number_in(cell)) else cell
        return cell if number == number_in(cell) else repr(number)

    return [restate(cell) for cell in cells]
