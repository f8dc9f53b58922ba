"""Read the cells of a column one by one. No cell makes it fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array

__all__ = ["column_of", "each_cell", "reading", "text_of"]

_REMEMBERED: Final = 1 << 16
"""Texts whose numbers are kept, because columns repeat theirs; more would take too much memory."""


Value = TypeVar("Value")


def each_cell(cells: Any, one: Callable[[Any], float]) -> Array:
    """Return the number of each cell by `one`, NaN if that raises, shape (cells,).

    `one` gets bytes as text, and text without its outer blanks. Equal texts must have equal numbers.
    """
    read = reading(lambda cell: float(one(cell)), np.nan)
    return np.fromiter(map(read, cells), dtype=np.float64, count=len(cells))


def reading(one: Callable[[Any], Value], lost: Value) -> Callable[[Any], Value]:
    """A function that returns the value of a cell by `one`, as `each_cell` does, and `lost` if that raises."""
    known: dict[str, Value] = {}

    def read(cell: Any) -> Value:
        try:
            text = text_of(cell)
            if not isinstance(text, str):
                return one(text)
            found = known.get(text)
            if found is None:
                found = one(text)
                if len(known) < _REMEMBERED:
                    known[text] = found
            return found
        except Exception:  # the cell's own code may raise anything
            return lost

    return read


def text_of(cell: Any) -> Any:
    """Bytes as text, and text without its outer blanks; other cells as they are."""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
    return text.strip() if isinstance(text, str) else text


def column_of(cells: Any) -> NDArray[Any]:
    """The cells as an array. Those of a list stay as they are: NumPy would find one type for all of them."""
    if not isinstance(cells, (list, tuple)):
        return np.asarray(cells)
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found
