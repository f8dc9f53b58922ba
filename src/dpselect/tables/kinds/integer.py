"""Integers, however they are stored or written: "2.0" is 2, and 2.5 is none."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared, TickReader
from dpselect.tables.kinds.number import HINT, read_numbers
from dpselect.tables.numbers import number_in

__all__: list[str] = []

_LAST: Final = (1 << 63) - 1
_EXACT: Final = 1 << 53
"""Up to here every integer is a float64."""


def _read(cells: Any, declared: Declared) -> Array:
    values = read_numbers(cells, declared)
    return np.where(np.isfinite(values) & (np.floor(values) == values), values, np.nan)


def _ticks(cells: Any, declared: Declared) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Values beyond int64 are clipped to its ends."""
    values = _read(cells, declared)
    present = ~np.isnan(values)
    kept = np.where(present, values, 0.0)
    found = np.where(np.abs(kept) < _EXACT, kept, 0.0).astype(np.int64)
    for place in np.flatnonzero(np.abs(kept) >= _EXACT):
        found[place] = min(max(_whole(cells[place], float(kept[place])), -_LAST), _LAST)
    return found, present


def _whole(cell: Any, near: float) -> int:
    """The integer of a cell that is one, of more digits than a float64 has."""
    try:
        text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
        if isinstance(text, str) and not math.isnan(number_in(text)):
            text = Decimal(text.strip())  # decodes: a finite number: at most 309 digits
        return int(text) if isinstance(text, (int, np.integer, Decimal, Fraction)) else int(near)
    except Exception:  # the cell's own code may raise anything
        return int(near)


KINDS.register("integer")(ColumnKind(_read, numeric=True, hint=HINT, ticks=TickReader(_ticks)))
