"""A column of a database table whose ranks come from the engine: counts and a window of values, never the column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered.domains import Domain
from dpselect.ordered.order_statistics.intervals import Window, window_of

__all__ = ["Query", "SqlColumn", "ask", "counts_where", "duckdb_query", "quoted", "with_parameters"]

_SUMS = 100
_MOST = (1 << 63) - 1
Query = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Runs a statement with :p0, :p1, ... bound to the parameters, and returns its rows."""


def quoted(name: str) -> str:
    """An identifier, dots between its parts, in double quotes."""
    if not name or "\0" in name:
        raise ArgumentError("table and column must be names that are not empty")
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def with_parameters(statement: str, marker: Callable[[int], str], name: Callable[[str], str] = str) -> str:
    """The statement with another marker for each parameter :p0, :p1, ..., and another form of the quoted names.

    >>> with_parameters('SELECT ":p0" < :p0', lambda place: f"${place + 1}")
    'SELECT ":p0" < $1'
    """
    return re.sub(
        r'("(?:[^"]|"")*")|:p(\d+)', lambda found: name(found[1]) if found[1] else marker(int(found[2])), statement
    )


def ask(query: Query, statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The rows of a statement. A driver's report of a failure may quote the data, and is not passed on."""
    with suppress(Exception):  # and raised outside, so that no traceback shows the driver's error either
        return query(statement, parameters)
    raise ContentError("the database did not answer; what it said is not shown, as it may quote the data")


def counts_where(query: Query, table: str, condition: Callable[[str], str], parameters: Sequence[Any]) -> list[int]:
    """How many rows meet a condition, made of a parameter's marker, with each parameter, a hundred to a statement.

    Each row is counted at most once for a parameter, by the engine.
    """
    found: list[int] = []
    for start in range(0, len(parameters), _SUMS):
        part = parameters[start : start + _SUMS]
        sums = ", ".join(f"sum(CASE WHEN {condition(f':p{n}')} THEN 1 ELSE 0 END)" for n in range(len(part)))
        found += [int(value or 0) for value in ask(query, f"SELECT {sums} FROM {table}", list(part))[0]]
    return found


@dataclass(repr=False)
class SqlColumn:
    """`column` of `table` in an engine that can ORDER BY, LIMIT and OFFSET. NULL and NaN are missing.

    `table` and `column` are SQL, quoted already. All statements must see the same rows: one transaction that reads
    repeatably, or a table that no one writes to (you must ensure this). `kind` is "f" for floating-point domains,
    "i" for integers of 64 bits, which are compared without rounding.
    """

    query: Query
    table: str
    column: str
    domain: Domain
    kind: str = "f"

    @cached_property
    def total(self) -> int:
        present = self._count(f"{self.column} IS NOT NULL")
        # where an engine has NaN it sorts above infinity, and a window from below does not reach it
        missing = self._count(f"{self.column} > :p0", float("inf")) if self.kind == "f" else 0
        return present - missing

    def _count(self, condition: str, *parameters: Any) -> int:
        rows = ask(self.query, f"SELECT count(*) FROM {self.table} WHERE {condition}", parameters)
        return int(rows[0][0])

    def _edge(self, code: int) -> float | int | None:
        """A number such that the rows below it are those with a smaller code, or None for all that are not missing.

        Integers are clipped to those that an engine binds, before which and after which there are no rows.
        """
        edge = self.domain.threshold(code)
        if self.kind == "f":
            return float(edge)
        whole = math.ceil(edge)
        return None if whole > _MOST else max(whole, -_MOST - 1)

    def _below(self, code: int) -> int:
        """How many rows have a smaller code."""
        if code <= 0:
            return 0
        edge = None if code >= self.domain.size else self._edge(code)
        return self.total if edge is None else self._count(f"{self.column} < :p0", edge)

    def rows_below(self, size: int) -> NDArray[np.int64]:
        """How many rows have a code below 0, 1, ..., size."""
        edges = [edge for edge in map(self._edge, range(1, size)) if edge is not None]
        found = [0, *counts_where(self.query, self.table, lambda marker: f"{self.column} < {marker}", edges)]
        return np.array(found + [self.total] * (size + 1 - len(found)), dtype=np.int64)

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`. Three statements: the window in order, and a count at each of its ends."""
        if not self.total:
            return window_of(np.empty(0, dtype=np.uint64), 0, 0)
        first, last = min(max(first, 1), self.total), min(max(last, 1), self.total)
        rows = ask(
            self.query,
            f"SELECT {self.column} FROM {self.table} WHERE {self.column} IS NOT NULL "
            f"ORDER BY {self.column} LIMIT {last - first + 1} OFFSET {first - 1}",
            (),
        )
        codes = self.domain.encode(self._values([row[0] for row in rows]))
        found = window_of(codes, 0, 0)
        counts = found.counts.copy()
        before = self._below(int(found.codes[0]))
        up_to = self._below(int(found.codes[-1]) + 1)
        # the codes at the ends may occur outside the window too
        counts[0] += first - 1 - before
        counts[-1] += up_to - last
        return Window(found.codes, counts, before, self.total - up_to)

    def _values(self, cells: list[Any]) -> NDArray[Any]:
        with suppress(TypeError, ValueError, OverflowError):  # whose messages may show a cell
            return np.array(cells, dtype=np.float64 if self.kind == "f" else np.int64)
        raise ContentError("the column does not hold numbers of its declared kind")


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
