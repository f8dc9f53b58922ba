"""Columns of Ibis tables: DuckDB, PostgreSQL, Spark, BigQuery, Snowflake, Trino and others that Ibis compiles for."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Final

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.counted_ranks import Range
from dpselect.ordered.sources.engine_column import READERS, GroupingColumn, bisected, no_groups, one_of, type_refused

__all__ = ["IbisColumn"]

_LOOSE: Final = ("mysql", "mssql", "singlestoredb")
"""Engines whose text is compared without case unless a collation says otherwise."""


@READERS.register("ibis")
def read(values: Any, by: str | None = None) -> IbisColumn | None:
    """Reads a column, or a table with one beside that of groups. Raises `ArgumentError` for a type that is not read."""
    import ibis.expr.types as ir

    if isinstance(values, ir.Column):
        values = values.as_table()
    if not isinstance(values, ir.Table):
        return None
    return IbisColumn(values, one_of(values.columns, by), by)


class IbisColumn(GroupingColumn):
    """A column of an Ibis table. A decimal must have a precision, so that a double holds it."""

    def __init__(self, table: Any, name: str, by: str | None = None) -> None:
        column = table[name]
        kind = column.type()
        if (kind.is_integer() and not kind.is_uint64()) or kind.is_boolean():
            self.kind, column = "i", column.cast("int64")
        elif kind.is_floating() or (kind.is_decimal() and kind.precision is not None):
            self.kind, column = "f", column.cast("float64")
        elif kind.is_string():
            self.kind, column = "text", _exact(table, column)
        else:
            raise type_refused(str(kind))
        self.grouping = by is not None
        self._table = table.select(x=column, **({} if by is None else {"g": _groups(table, by)}))
        self._has_nan = self.kind == "f" and _has_nan(table)

    def grouped(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `EngineColumn`."""
        found = self.query(edges, ranges).to_pyarrow().to_pydict()
        return list(zip(found["key"], found["rows"], strict=True))

    def group_cells(self) -> list[Any]:
        """See `EngineColumn`."""
        groups = self._table.filter(self._table.g.notnull()).select("g").distinct()
        return list(groups.to_pyarrow().to_pydict()["g"])

    def among(self, cells: list[Any]) -> IbisColumn:
        """See `EngineColumn`."""
        import ibis

        part = copy(self)
        condition = self._table.g.isin(cells) if cells else ibis.literal(value=False)
        part._table, part.grouping = self._table.filter(condition).select("x"), False
        return part

    def query(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> Any:
        """The expression of Ibis that `grouped` runs."""
        import ibis

        table = self._table
        present = self._present()
        parts = []
        for low, high in ranges:
            ends = [] if low is None else [table.x >= low]
            ends += [] if high is None else [table.x < high]
            parts.append(ibis.and_(*ends))
        if parts:
            present &= ibis.or_(*parts)
        key = table.x if edges is None else bisected(edges, lambda edge: table.x < edge, ibis.ifelse)
        return table.filter(present).group_by(key=key).agg(rows=lambda part: part.count())

    def _present(self) -> Any:
        x = self._table.x
        return x.notnull() & ~x.isnan() if self._has_nan else x.notnull()

    def head(self, rows: int) -> list[Any]:
        """See `EngineColumn`."""
        found = self._table.filter(self._present()).limit(rows)
        return list(found.to_pyarrow().to_pydict()["x"])

    def rows(self) -> int:
        """See `EngineColumn`."""
        return int(self._table.count().to_pyarrow().as_py())


def _groups(table: Any, by: str) -> Any:
    column = table[by]
    if column.type().is_string():
        return _exact(table, column)
    if not column.type().is_integer():
        raise no_groups(by)
    return column


def _exact(table: Any, text: Any) -> Any:
    """A text that the engine compares byte by byte, regardless of the collation of the column.

    Equal cells must be one cell: of "North" and "north" an engine would show one, and one row could decide which.
    """
    import ibis

    engine = _engine(table)
    if engine in _LOOSE:
        raise ArgumentError(f"values: text of {engine} may be compared without case. Use numbers for its categories")
    if engine == "sqlite":
        return text.concat("")  # an expression has no collation there
    if engine != "duckdb":
        return text

    def encode(text: str) -> bytes:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(encode)(text)


def _engine(table: Any) -> str:
    from ibis.common.exceptions import IbisError

    try:
        return str(table.get_backend().name)
    except IbisError:  # of a table without rows, whose query is only shown
        return ""


def _has_nan(table: Any) -> bool:
    """Whether the engine can tell NaN. One that cannot, such as SQLite, has none."""
    import ibis.expr.operations as ops
    from ibis.common.exceptions import IbisError

    try:
        return bool(table.get_backend().has_operation(ops.IsNan))
    except IbisError:  # of a table without rows, whose query is only shown
        return True
