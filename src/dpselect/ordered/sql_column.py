"""A column of a database table whose ranks come from the engine: counts and a window of values, never the column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered.domains import Domain
from dpselect.ordered.intervals import Window, window_of

__all__ = ["Query", "SqlColumn", "duckdb_query", "quoted"]

_SUMS = 100
Query = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Runs a statement with :p0, :p1, ... bound to the parameters, and returns its rows."""


def quoted(name: str) -> str:
    """An identifier, dots between its parts, in double quotes."""
    if not name or "\0" in name:
        raise ArgumentError("table and column must be names that are not empty")
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


@dataclass(repr=False)
class SqlColumn:
    """`column` of `table` in an engine that can ORDER BY, LIMIT and OFFSET. NULL and NaN are missing.

    `table` and `column` are SQL, quoted already. All statements must see the same rows: one transaction that reads
    repeatably, or a table that nobody writes to (owed). `kind` is "f" for floating-point domains, "i" for whole
    numbers, which are compared without rounding.
    """

    query: Query
    table: str
    column: str
    domain: Domain
    kind: str = "f"
    _total: int | None = field(default=None)

    @property
    def total(self) -> int:
        if self._total is None:
            present = self._count(f"{self.column} IS NOT NULL")
            # where an engine has NaN it sorts above infinity, and a window from below does not reach it
            missing = self._count(f"{self.column} > :p0", float("inf")) if self.kind == "f" else 0
            self._total = present - missing
        return self._total

    def _count(self, condition: str, *parameters: Any) -> int:
        rows = self.query(f"SELECT count(*) FROM {self.table} WHERE {condition}", parameters)
        return int(rows[0][0])

    def _below(self, code: int) -> int:
        """How many rows have a smaller code."""
        if code <= 0:
            return 0
        if code >= self.domain.size:
            return self.total
        return self._count(f"{self.column} < :p0", self.domain.threshold(code))

    def rows_below(self, size: int) -> NDArray[np.int64]:
        """How many rows have a code below 0, 1, ..., size: sums by the engine, a hundred to a statement."""
        found = [0]
        for start in range(1, size, _SUMS):
            codes = range(start, min(start + _SUMS, size))
            sums = ", ".join(f"sum(CASE WHEN {self.column} < :p{n} THEN 1 ELSE 0 END)" for n in range(len(codes)))
            rows = self.query(f"SELECT {sums} FROM {self.table}", [self.domain.threshold(code) for code in codes])
            found += [int(value or 0) for value in rows[0]]
        return np.array([*found, self.total], dtype=np.int64)

    def window(self, first: int, last: int) -> Window:
        """See `RankedColumn`. Three statements: the window in order, and a count at each of its ends."""
        if not self.total:
            return window_of(np.empty(0, dtype=np.uint64), 0, 0)
        first, last = min(max(first, 1), self.total), min(max(last, 1), self.total)
        rows = self.query(
            f"SELECT {self.column} FROM {self.table} WHERE {self.column} IS NOT NULL "
            f"ORDER BY {self.column} LIMIT {last - first + 1} OFFSET {first - 1}",
            (),
        )
        try:
            values = np.array([row[0] for row in rows], dtype=np.float64 if self.kind == "f" else np.int64)
        except (TypeError, ValueError, OverflowError):
            raise ContentError(f"column {self.column} does not hold numbers of its declared kind") from None
        codes = self.domain.encode(values)
        found = window_of(codes, 0, 0)
        counts = found.counts.copy()
        before = self._below(int(found.codes[0]))
        up_to = self._below(int(found.codes[-1]) + 1)
        # the codes at the ends may occur outside the window too
        counts[0] += first - 1 - before
        counts[-1] += up_to - last
        return Window(found.codes, counts, before, self.total - up_to)


def duckdb_query(relation: Any) -> Query:
    """Statements on a DuckDB relation, which stands for the table `rows` in them."""

    def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
        for place, value in reversed(list(enumerate(parameters))):  # :p12 before :p1
            statement = statement.replace(f":p{place}", _literal(value))
        return relation.query("rows", statement).fetchall()

    return query


def _literal(value: Any) -> str:
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value))
