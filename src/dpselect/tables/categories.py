"""How one cell is read as the name of a category; the same wherever the cell comes from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.tables.numbers import TRUTH

__all__ = ["category", "composed", "is_missing", "positions"]

_RUN: Final = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,256}")
_EXACT: Final = 1 << 53
_TELLING: Final = (str, bytes, int, float, np.generic)
_OTHERWISE: Final = (np.datetime64, np.timedelta64, np.complexfloating)
"""Values of the first types, but of these, are one category if they are equal. Others may be equal and written in two
ways, as moments are in two time zones: kept by value, one row would decide how another is read."""


def category(value: Any, *, exact: bool = False) -> str | Decimal:
    """What a cell that names a category or a class is compared by: a number, or a text without its outer blanks.

    Numbers are equal however they are written or stored; true is 1 and false is 0, in any case; a missing cell, and an
    object that has no text, is the empty text. Text is compared in Unicode's form NFC, so a letter with its accent is
    one, however it was typed. With `exact` it is compared as it was typed. No cell makes this fail.

    >>> category("1.0") == category(1) == category(True) == category("TRUE")
    True
    >>> category(float("nan")), category(" 1_0 "), len(category("e\u0301"))
    ('', '1_0', 1)
    """
    if is_missing(value):
        return ""
    if isinstance(value, (int, np.integer, np.bool_)) and not isinstance(value, np.timedelta64):
        return Decimal(int(value))
    if isinstance(value, (np.float16, np.float32)) and value.is_integer() and abs(float(value)) < _EXACT:
        return Decimal(int(value))  # whose text has too few digits: 6.55e+04 for 65504
    try:
        text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip()
    except Exception:  # the cell's own code may raise anything
        return ""
    if text.lower() in TRUTH:
        return Decimal(TRUTH[text.lower()])  # decodes: nothing, an integer of ours
    try:
        number = Decimal("x" if "_" in text else text)  # decodes: a private cell, of which none may fail
    except InvalidOperation:
        return text if exact else composed(text)
    return number if number.is_finite() else text


def composed(text: str) -> str:
    """A text in Unicode's form NFC.

    Python's own function takes minutes for a megabyte of accents on one letter, which a row of others may hold. So a
    run of more than 256 characters that are not ASCII is composed in parts. No ASCII character joins the one before.

    >>> composed("cafe\u0301") == "caf\u00e9"
    True
    """
    if text.isascii():
        return text
    return _RUN.sub(lambda run: unicodedata.normalize("NFC", run[0]), text)


def positions(
    values: Any, options: tuple[Any, ...], named: Callable[[Any], str | Decimal] = category
) -> NDArray[np.int64]:
    """The index of each cell among the options, -1 for one that is none of them; shape (cells,). It never fails."""
    index = {named(option): i for i, option in enumerate(options)}
    known: dict[type, dict[Any, int]] = {}  # columns of categories repeat theirs

    def place(value: Any) -> int:
        try:
            return known[type(value)][value]
        except Exception:  # a list has no hash, and a cell's own code may be anything
            return find(value)

    def find(value: Any) -> int:
        with suppress(Exception):
            found = index.get(named(value), -1)
            if isinstance(value, _TELLING) and not isinstance(value, _OTHERWISE):
                known.setdefault(type(value), {})[value] = found
            return found
        return -1

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT, or the missing value of pandas. Text is not missing."""
    if isinstance(cell, (str, bytes)):
        return False
    try:
        return cell is None or bool(cell != cell)
    except Exception:  # the cell's own code may raise anything
        return type(cell).__name__ == "NAType" or (isinstance(cell, Decimal) and cell.is_nan())
