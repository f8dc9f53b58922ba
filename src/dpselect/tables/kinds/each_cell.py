"""Reading the cells of a column one by one; no cell makes it fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics import Array

__all__ = ["column_of", "each_cell", "text_of"]

_REMEMBERED: Final = 1 << 16
"""Texts whose numbers are kept, because columns repeat theirs; more would take too much memory."""


def each_cell(cells: Any, one: Callable[[Any], float]) -> Array:
    """Return the number of each cell by `one`, NaN if that raises, shape (cells,).

    `one` gets bytes as text, and text without its outer blanks. Equal texts must have equal numbers.
    """
    known: dict[str, float] = {}

    def read(cell: Any) -> float:
        try:
            text = text_of(cell)
            if not isinstance(text, str):
                return float(one(text))
            found = known.get(text)
            if found is None:
                found = float(one(text))
                if len(known) < _REMEMBERED:
                    known[text] = found
            return found
        except Exception:  # the cell's own code may raise anything
            return np.nan

    return np.fromiter((read(cell) for cell in cells), dtype=np.float64, count=len(cells))


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
