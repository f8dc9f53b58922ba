"""Rows of a column counted by an engine: how many lie between given numbers, and which values occur there.

A statement compares and counts. It does not sort, and it does no arithmetic that content could make fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError

__all__ = ["Query", "Range", "ask", "counts_between", "values_within"]

Query = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Runs a statement with :p0, :p1, ... bound to the parameters, and returns its rows."""
Range = tuple[float | int | None, float | int | None]
"""From a number on, up to another; None is no end."""
_PRESENT: Final = {"f": "x <= :p0", "i": "x IS NOT NULL"}
"""NaN is above infinity, where an engine has it."""


def ask(query: Query, statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The rows of a statement. A driver's report of a failure may quote the data, and is not passed on."""
    with suppress(Exception):  # and raised outside, so that no traceback shows the driver's error either
        return query(statement, parameters)
    raise ContentError("the database did not answer; what it said is not shown, as it may quote the data")


def counts_between(
    query: Query, column: tuple[str, str, str], edges: Sequence[Any], ranges: Sequence[Range] = ()
) -> NDArray[np.int64]:
    """How many rows are below the first edge, from it up to the second, ..., from the last one on.

    `column` is an expression, its table and its kind ("f" or "i"). `edges` increase. Rows outside of `ranges` are not
    counted.
    """
    asked = _Statement(column)
    slot = asked.slot(edges, 0, len(edges))
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    statement = f"SELECT slot, count(*) FROM (SELECT {slot} AS slot FROM {asked.rows(ranges)}) AS slots GROUP BY slot"
    for place, rows in ask(query, statement, asked.parameters):
        counts[int(place)] = int(rows)
    return counts


def values_within(query: Query, column: tuple[str, str, str], ranges: Sequence[Range]) -> list[tuple[Any, int]]:
    """The values in these ranges in order, each with its number of rows."""
    asked = _Statement(column)
    found = ask(query, f"SELECT x, count(*) FROM {asked.rows(ranges)} GROUP BY x", asked.parameters)
    with suppress(TypeError, ValueError):  # whose messages may show a cell
        return sorted((value, int(rows)) for value, rows in found)
    raise ContentError("the column does not hold numbers of its declared kind")


class _Statement:
    """A statement as it is put together, with the numbers bound to its parameters."""

    def __init__(self, column: tuple[str, str, str]) -> None:
        self._cell, self._table, self._kind = column
        self.parameters: list[Any] = [float("inf")] if self._kind == "f" else []

    def _bound(self, number: Any) -> str:
        self.parameters.append(number)
        return f":p{len(self.parameters) - 1}"

    def slot(self, edges: Sequence[Any], low: int, high: int) -> str:
        """How many edges are at most x, between `low` and `high` of them, by bisection."""
        if low == high:
            return str(low)
        middle = (low + high + 1) // 2
        edge = self._bound(edges[middle - 1])
        return (
            f"CASE WHEN x < {edge} THEN {self.slot(edges, low, middle - 1)} ELSE {self.slot(edges, middle, high)} END"
        )

    def rows(self, ranges: Sequence[Range]) -> str:
        """What is counted, after FROM."""
        parts = []
        for low, high in ranges:
            ends = [f"x >= {self._bound(low)}"] if low is not None else []
            ends += [f"x < {self._bound(high)}"] if high is not None else []
            parts.append(" AND ".join(ends))
        within = f" AND ({' OR '.join(parts)})" if all(parts) and parts else ""
        return f"(SELECT {self._cell} AS x FROM {self._table}) AS cells WHERE {_PRESENT[self._kind]}{within}"
