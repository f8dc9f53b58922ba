"""Reading the cells of a column one by one; no cell makes it fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dpselect.numerics import Array

__all__ = ["each_cell"]

_REMEMBERED: Final = 1 << 16
"""Texts whose numbers are kept, because columns repeat theirs; more would take too much memory."""


def each_cell(cells: Any, one: Callable[[Any], float]) -> Array:
    """Return the number of each cell by `one`, NaN if that raises, shape (cells,).

    `one` gets bytes as text, and text without its outer blanks. Equal texts must have equal numbers.
    """
    known: dict[str, float] = {}

    def read(cell: Any) -> float:
        try:
            text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
            if not isinstance(text, str):
                return float(one(text))
            found = known.get(text)
            if found is None:
                found = float(one(text.strip()))
                if len(known) < _REMEMBERED:
                    known[text] = found
            return found
        except Exception:  # the cell's own code may raise anything
            return np.nan

    return np.fromiter((read(cell) for cell in cells), dtype=np.float64, count=len(cells))
