"""Numbers: whole, decimal, boolean, stored or written in any way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.study.columns.kind import KINDS, ColumnKind, each_cell
from dpselect.tables import double_of


def _read(cells: Any, form: str | None) -> NDArray[np.float64]:  # noqa: ARG001
    cells = np.asarray(cells)
    if cells.dtype.kind in "biuf":
        return np.asarray(cells, dtype=np.float64)
    if cells.dtype.kind in "mM":
        raise TypeError('holds dates or durations: say kind = "date" or kind = "duration"')
    if cells.dtype.kind in "cV":
        raise TypeError("holds complex numbers or records: turn them into numbers first")
    return each_cell(cells, double_of)


KINDS.register("number")(ColumnKind(_read, hint="; a decimal comma is declared by data.decimal or --decimal"))
