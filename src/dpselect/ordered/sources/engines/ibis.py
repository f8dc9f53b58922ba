"""Columns of Ibis tables: DuckDB, PostgreSQL, Spark, BigQuery, Snowflake, Trino and others that Ibis compiles for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpselect.ordered.sources.counted_ranks import Range
from dpselect.ordered.sources.engine_column import READERS, EngineColumn, bisected, one_of, type_refused

__all__ = ["IbisColumn"]


@READERS.register("ibis")
def read(values: Any) -> IbisColumn | None:
    """Reads a column, or a table with one column. Raises `ArgumentError` for a type that is not read."""
    import ibis.expr.types as ir

    if isinstance(values, ir.Column):
        values = values.as_table()
    if not isinstance(values, ir.Table):
        return None
    return IbisColumn(values, one_of(values.columns))


class IbisColumn(EngineColumn):
    """A column of an Ibis table. A decimal must have a precision, so that a double holds it."""

    def __init__(self, table: Any, name: str) -> None:
        column = table[name]
        kind = column.type()
        if (kind.is_integer() and not kind.is_uint64()) or kind.is_boolean():
            self.kind, column = "i", column.cast("int64")
        elif kind.is_floating() or (kind.is_decimal() and kind.precision is not None):
            self.kind, column = "f", column.cast("float64")
        elif kind.is_string():
            self.kind = "text"
        else:
            raise type_refused(str(kind))
        self._table = table.select(x=column)
        self._has_nan = self.kind == "f" and _has_nan(table)

    def grouped(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `EngineColumn`."""
        found = self.query(edges, ranges).to_pyarrow().to_pydict()
        return list(zip(found["key"], found["rows"], strict=True))

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


def _has_nan(table: Any) -> bool:
    """Whether the engine can tell NaN. One that cannot, such as SQLite, has none."""
    import ibis.expr.operations as ops
    from ibis.common.exceptions import IbisError

    try:
        return bool(table.get_backend().has_operation(ops.IsNan))
    except IbisError:  # of a table without rows, whose query is only shown
        return True
