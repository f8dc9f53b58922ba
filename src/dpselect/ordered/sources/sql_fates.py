"""How the cells of a column are handled of a table (`tables.fates.FATES`), counted by its engine in one statement.

A CASE gives each row one fate, and the rows are counted by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.sources.sql_counts import Query, ask
from dpselect.tables.fates import FATES, NO_VALUE

__all__ = ["number_counts", "number_fate"]

_MOST: Final = (1 << 63) - 1


def number_counts(
    query: Query, table: str, *, cell: str, number: str, ends: tuple[Any, Any], whole: bool
) -> NDArray[np.int64]:
    """The counts of numbers or ticks under bounds. `cell` and `number` are SQL. A cell without a number may hold one.

    If an engine has NaN, it is above infinity, and missing.
    """
    parameters: list[Any] = []

    def bound(value: Any) -> str:
        parameters.append(value)
        return f":p{len(parameters) - 1}"

    fate = number_fate(bound, cell=cell, number=number, ends=ends, whole=whole)
    counts = np.zeros(len(FATES), dtype=np.int64)
    statement = f"SELECT fate, count(*) FROM (SELECT {fate} AS fate FROM {table}) AS cells GROUP BY fate"
    for kind, rows in ask(query, statement, parameters):
        counts[int(kind)] += int(rows)
    return counts


def number_fate(
    bound: Callable[[Any], str], *, cell: str, number: str, ends: tuple[Any, Any], whole: bool = False
) -> str:
    """The fate of a cell as SQL, its index in `FATES`. `bound` makes a parameter of a value."""
    low, high = ends
    if whole:
        low, high = (min(max(end, -_MOST - 1), _MOST) for end in (math.ceil(low), math.floor(high)))
    else:
        low, high = float(low), float(high)
    nan = "" if whole else f"WHEN {number} > {bound(float('inf'))} THEN 3 "
    return (
        f"CASE WHEN {number} IS NULL THEN {_lost(cell)} {nan}"
        f"WHEN {number} < {bound(low)} THEN 1 WHEN {number} > {bound(high)} THEN 2 ELSE 0 END"
    )


def _lost(cell: str) -> str:
    """Missing or unreadable, of a cell without a value."""
    nothing = ", ".join(f"'{word}'" for word in sorted(NO_VALUE))
    return f"CASE WHEN {cell} IS NULL OR lower(trim(CAST({cell} AS VARCHAR))) IN ({nothing}) THEN 3 ELSE 4 END"
