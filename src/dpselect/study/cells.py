"""How one cell is read as the name of a category; the same wherever the cell comes from."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.storage import cells_of, text_type

__all__ = ["arrow_cells", "category", "positions"]

_TRUTH: Final = {"true": Decimal(1), "false": Decimal(0)}


def category(value: Any) -> str | Decimal:
    """What a cell that names a category or a class is compared by: a number, or a text without its outer blanks.

    Numbers are equal however they are written or stored; true is 1 and false is 0, in any case; a missing cell is the
    empty text.

    >>> category("1.0") == category(1) == category(True) == category("TRUE")
    True
    >>> category(float("nan")), category(" 1_0 ")
    ('', '1_0')
    """
    if _missing(value):
        return ""
    if isinstance(value, (int, np.integer, np.bool_)):
        return Decimal(int(value))
    text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip()
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    try:
        number = Decimal("x" if "_" in text else text)  # decodes: a private cell, of which none may fail
    except InvalidOperation:
        return text
    return number if number.is_finite() else text


def positions(values: Any, options: tuple[Any, ...]) -> NDArray[np.int64]:
    """The place of each cell among the options, -1 where it is none of them; shape (cells,)."""
    index = {category(option): i for i, option in enumerate(options)}
    known: dict[Any, int] = {}  # equal cells are one category, and columns of categories repeat theirs

    def place(value: Any) -> int:
        try:
            if value not in known:
                known[value] = index.get(category(value), -1)
            return known[value]
        except TypeError:  # a cell that has no hash
            return index.get(category(value), -1)

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))


def arrow_cells(column: Any) -> NDArray[Any]:
    """The cells of an Arrow array or chunked array.

    A dictionary is decoded first: converted as it is, NumPy would see the last category where a cell is missing. Text
    may hold bytes that are none, at which a conversion would fail.
    """
    if text_type(column.type):
        return _text_cells(column)
    if hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _text_cells(column: Any) -> NDArray[Any]:
    """One Python text for equal cells."""
    found = []
    for part in column.iterchunks() if hasattr(column, "iterchunks") else [column]:
        encoded = part if hasattr(part, "dictionary") else part.dictionary_encode()
        texts = np.array([*cells_of(encoded.dictionary), None], dtype=object)
        found.append(texts[np.asarray(encoded.indices.cast("int64").fill_null(len(texts) - 1))])
    return np.concatenate(found) if found else np.empty(0, dtype=object)


def _missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (str, bytes)):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
