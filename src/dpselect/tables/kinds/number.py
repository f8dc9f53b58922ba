"""Numbers: integers, decimals, booleans as 1 and 0, stored or written in any way."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dpselect.numerics.search import Array
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared
from dpselect.tables.kinds.each_cell import column_of, each_cell
from dpselect.tables.numbers import double_of

__all__ = ["HINT", "read_numbers"]


def read_numbers(cells: Any, declared: Declared) -> Array:  # noqa: ARG001
    """The cells as float64, NaN for a cell that is not a number. Raises `TypeError` for a column of another type."""
    cells = column_of(cells)
    if cells.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # of a longer type; a warning would tell of a cell
            return np.asarray(cells, dtype=np.float64)
    if cells.dtype.kind in "mM":
        raise TypeError('holds dates or durations: say kind = "date" or kind = "duration"')
    if cells.dtype.kind in "cV":
        raise TypeError("holds complex numbers or records: turn them into numbers first")
    return each_cell(cells, double_of)


HINT: Final = (
    "; a decimal comma is declared by data.decimal or --decimal, and words such as yes and no by kind = "
    '"boolean", true_values and false_values'
)
KINDS.register("number")(ColumnKind(read_numbers, numeric=True, hint=HINT))
