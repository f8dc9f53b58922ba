"""Rows of a column counted by an engine: how many are between given numbers, and which values occur there.

A statement compares and counts. It does not sort, and it does no arithmetic that content could make fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered.sources.counted_ranks import Range
from dpselect.tables.statements import with_parameters

__all__ = ["Query", "SqlCounts", "ask", "duckdb_query", "quoted"]

Query = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Runs a statement with :p0, :p1, ... bound to the parameters, and returns its rows."""
_PRESENT: Final = {"f": "x <= :p0", "i": "x IS NOT NULL"}


def ask(query: Query, statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The rows of a statement. A driver's report of a failure may quote the data, and is not passed on."""
    with suppress(Exception):  # and raised outside, so that no traceback shows the driver's error either
        return query(statement, parameters)
    raise ContentError("the database did not answer. Its message is not shown, as it may quote the data")


def quoted(name: str) -> str:
    """An identifier, dots between its parts, in double quotes."""
    if not name or "\0" in name:
        raise ArgumentError("table and column must be names that are not empty")
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


@dataclass(frozen=True, repr=False)
class SqlCounts:
    """`cell`, an expression, of a table in an engine that speaks SQL. `kind` is that of `CountedRanks`.

    NaN is above infinity, where an engine has it.
    """

    query: Query
    cell: str
    table: str
    kind: str = "f"

    def counts(self, edges: Sequence[Any], ranges: Sequence[Range] = ()) -> NDArray[np.int64]:
        """See `CountingEngine`."""
        asked = _Statement(self)
        slot, rows = asked.slot(edges, 0, len(edges)), asked.rows(ranges)
        found = np.zeros(len(edges) + 1, dtype=np.int64)
        statement = f"SELECT slot, count(*) FROM (SELECT {slot} AS slot FROM {rows}) AS slots GROUP BY slot"
        for place, count in ask(self.query, statement, asked.parameters):
            found[int(place)] = int(count)
        return found

    def values(self, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `CountingEngine`."""
        asked = _Statement(self)
        found = ask(self.query, f"SELECT x, count(*) FROM {asked.rows(ranges)} GROUP BY x", asked.parameters)
        with suppress(TypeError, ValueError):  # whose messages may show a cell
            return sorted((value, int(rows)) for value, rows in found)
        raise ContentError("the column does not hold numbers of its declared kind")

    def some(self, rows: int) -> list[Any]:
        """See `CountingEngine`."""
        asked = _Statement(self)
        found = ask(self.query, f"SELECT x FROM {asked.rows([])} LIMIT {rows}", asked.parameters)
        return [value for (value,) in found]


class _Statement:
    """A statement as it is put together, with the numbers bound to its parameters."""

    def __init__(self, column: SqlCounts) -> None:
        self._column = column
        self.parameters: list[Any] = [float("inf")] if column.kind == "f" else []

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
        """The rows to count: the text after FROM."""
        parts = []
        for low, high in ranges:
            ends = [f"x >= {self._bound(low)}"] if low is not None else []
            ends += [f"x < {self._bound(high)}"] if high is not None else []
            parts.append(" AND ".join(ends))
        within = f" AND ({' OR '.join(parts)})" if all(parts) and parts else ""
        cells = f"(SELECT {self._column.cell} AS x FROM {self._column.table}) AS cells"
        return f"{cells} WHERE {_PRESENT[self._column.kind]}{within}"


def duckdb_query(relation: Any) -> Query:
    """Statements on a DuckDB relation, which stands for the table `rows` in them."""

    def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return relation.query("rows", with_parameters(statement, lambda place: _literal(parameters[place]))).fetchall()

    return query


def _literal(value: Any) -> str:
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value))
