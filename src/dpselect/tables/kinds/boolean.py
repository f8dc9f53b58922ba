"""Booleans as 1 and 0: `true` and `false` in any case, 1 and 0, and the words that are declared."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array
from dpselect.tables.categories import category
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared, TickReader
from dpselect.tables.kinds.each_cell import column_of, each_cell
from dpselect.tables.numbers import TRUTH

__all__: list[str] = []


def _read(cells: Any, declared: Declared) -> Array:
    cells = column_of(cells)
    if cells.dtype.kind == "b":
        return np.asarray(cells, dtype=np.float64)
    if cells.dtype.kind in "mMcV":
        raise TypeError("holds dates, durations or records, and is declared a boolean")
    known: dict[Any, float] = {category(value): 1.0 for value in declared.true_values or ()}
    known |= {category(value): 0.0 for value in declared.false_values or ()}
    if not any(isinstance(name, Decimal) for name in known):
        known |= {Decimal(1): 1.0, Decimal(0): 0.0}

    def one(cell: Any) -> float:
        if isinstance(cell, (bool, np.bool_)):
            return float(cell)
        text = cell.lower() if isinstance(cell, str) else ""
        return float(TRUTH[text]) if text in TRUTH else known[category(cell)]

    return each_cell(cells, one)


def _ticks(cells: Any, declared: Declared) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    values = _read(cells, declared)
    return np.nan_to_num(values).astype(np.int64), ~np.isnan(values)


_KEYS: Final = frozenset({"true_values", "false_values"})
_HINT: Final = "; other words are declared by true_values and false_values"

KINDS.register("boolean")(ColumnKind(_read, keys=_KEYS, widest=(0.0, 1.0), hint=_HINT, ticks=TickReader(_ticks)))
