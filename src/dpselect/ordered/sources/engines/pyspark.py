"""Columns of Spark: data frames with one column. Rows stay on the cluster, only counts come back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from dpselect.ordered.sources.counted_ranks import Range
from dpselect.ordered.sources.engine_column import READERS, EngineColumn, bisected, one_of, refuse_groups, type_refused

__all__ = ["SparkColumn"]

_WHOLE = ("boolean", "tinyint", "smallint", "int", "bigint")


@READERS.register("pyspark")
def read(values: Any, by: str | None = None) -> SparkColumn | None:
    """Reads a data frame with one column. Raises `ArgumentError` for a type that is not read."""
    from pyspark.sql.dataframe import DataFrame

    refuse_groups(by, "Spark")

    return SparkColumn(values) if isinstance(values, DataFrame) else None


class SparkColumn(EngineColumn):
    """The column of a Spark data frame."""

    def __init__(self, frame: Any) -> None:
        from pyspark.sql import functions as f

        ((_, kind),) = [one for one in frame.dtypes if one[0] == one_of(frame.columns)]
        column = frame[frame.columns[0]]
        if kind in _WHOLE:
            self.kind, column = "i", column.cast("bigint")
        elif kind in ("float", "double") or kind.startswith("decimal"):
            self.kind, column = "f", column.cast("double")
        elif kind == "string":
            self.kind = "text"
        else:
            raise type_refused(kind)
        self._frame = frame.select(column.alias("x"))
        self._functions = f

    def grouped(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `EngineColumn`."""
        f = self._functions
        x, present = f.col("x"), self._present()
        parts = []
        for low, high in ranges:
            part = f.lit(True)
            part = part if low is None else part & (x >= f.lit(low))
            parts.append(part if high is None else part & (x < f.lit(high)))
        if parts:
            present &= reduce(lambda one, other: one | other, parts)

        def choose(condition: Any, then: Any, other: Any) -> Any:
            return f.when(condition, then).otherwise(other)

        key = x if edges is None else bisected(edges, lambda edge: x < f.lit(edge), choose)
        found = self._frame.where(present).groupBy(key.alias("key")).count()
        return [(row["key"], row["count"]) for row in found.collect()]

    def _present(self) -> Any:
        f = self._functions
        x = f.col("x")
        return x.isNotNull() & ~f.isnan(x) if self.kind == "f" else x.isNotNull()

    def head(self, rows: int) -> list[Any]:
        """See `EngineColumn`."""
        return [row["x"] for row in self._frame.where(self._present()).limit(rows).collect()]

    def rows(self) -> int:
        """See `EngineColumn`."""
        return int(self._frame.count())
