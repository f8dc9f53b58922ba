"""How one cell is read as the name of a category; the same wherever the cell comes from."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.tables.numbers import TRUTH

__all__ = ["category", "positions"]


def category(value: Any) -> str | Decimal:
    """What a cell that names a category or a class is compared by: a number, or a text without its outer blanks.

    Numbers are equal however they are written or stored; true is 1 and false is 0, in any case; a missing cell, and an
    object that has no text, is the empty text. Text is compared in Unicode's form NFC: a letter with its accent is one,
    however it was typed. No cell makes it raise.

    >>> category("1.0") == category(1) == category(True) == category("TRUE")
    True
    >>> category(float("nan")), category(" 1_0 "), len(category("e\u0301"))
    ('', '1_0', 1)
    """
    if _missing(value):
        return ""
    if isinstance(value, (int, np.integer, np.bool_)) and not isinstance(value, np.timedelta64):
        return Decimal(int(value))
    try:
        text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip()
    except Exception:  # a cell's own code may raise anything
        return ""
    if text.lower() in TRUTH:
        return Decimal(TRUTH[text.lower()])  # decodes: nothing, a whole number of ours
    try:
        number = Decimal("x" if "_" in text else text)  # decodes: a private cell, of which none may fail
    except InvalidOperation:
        return text if text.isascii() else unicodedata.normalize("NFC", text)
    return number if number.is_finite() else text


def positions(values: Any, options: tuple[Any, ...]) -> NDArray[np.int64]:
    """The place of each cell among the options, -1 where it is none of them; shape (cells,). No cell makes it raise."""
    index = {category(option): i for i, option in enumerate(options)}
    known: dict[Any, int] = {}  # equal cells are one category, and columns of categories repeat theirs

    def place(value: Any) -> int:
        with suppress(Exception):
            if value not in known:
                known[value] = index.get(category(value), -1)
            return known[value]
        with suppress(Exception):  # a list has no hash, and a cell's own code may be anything
            return index.get(category(value), -1)
        return -1

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))


def _missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (str, bytes)):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
    except Exception:  # a signalling NaN; a cell's own code
        return True
