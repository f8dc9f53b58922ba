"""Lazy frames of polars, which may be larger than the memory: queries run in its streaming engine."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from dpselect.ordered.sources.counted_ranks import Range
from dpselect.ordered.sources.engine_column import READERS, GroupingColumn, bisected, no_groups, one_of, type_refused

__all__ = ["PolarsColumn"]


@READERS.register("polars")
def read(values: Any, by: str | None = None) -> PolarsColumn | None:
    """Reads a lazy frame with one column beside that of groups. Raises `ArgumentError` for a type that is not read."""
    import polars as pl

    return PolarsColumn(values, by) if isinstance(values, pl.LazyFrame) else None


class PolarsColumn(GroupingColumn):
    """The column of a lazy frame."""

    def __init__(self, frame: Any, by: str | None = None) -> None:
        import polars as pl

        schema = frame.collect_schema()
        name = one_of(schema.names(), by)
        kind, column = schema[name], pl.col(name)
        if (kind.is_integer() and kind not in (pl.UInt64, pl.Int128)) or kind == pl.Boolean:
            self.kind, column = "i", column.cast(pl.Int64)
        elif kind in (pl.Float32, pl.Float64, pl.Decimal):
            self.kind, column = "f", column.cast(pl.Float64)
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            self.kind, column = "text", column.cast(pl.String)
        else:
            raise type_refused(str(kind))
        self.grouping = by is not None
        if by is not None and not (schema[by].is_integer() or schema[by] in (pl.String, pl.Categorical, pl.Enum)):
            raise no_groups(by)
        groups = [] if by is None else [pl.col(by) if schema[by].is_integer() else pl.col(by).cast(pl.String)]
        self._frame = frame.select(column.alias("x"), *(each.alias("g") for each in groups))

    def grouped(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `EngineColumn`."""
        import polars as pl

        x, present = pl.col("x"), self._present()
        parts = []
        for low, high in ranges:
            ends = [] if low is None else [x >= low]
            ends += [] if high is None else [x < high]
            parts.append(pl.all_horizontal(ends or [pl.lit(True)]))
        if parts:
            present &= pl.any_horizontal(parts)

        def choose(condition: Any, then: Any, other: Any) -> Any:
            return pl.when(condition).then(then).otherwise(other)

        key = x if edges is None else bisected(edges, lambda edge: x < edge, choose)
        found = self._frame.filter(present).group_by(key.alias("key")).len()
        return found.collect(engine="streaming").rows()

    def group_cells(self) -> list[Any]:
        """See `EngineColumn`."""
        import polars as pl

        return self._frame.select(pl.col("g").drop_nulls().unique()).collect(engine="streaming").to_series().to_list()

    def among(self, cells: list[Any]) -> PolarsColumn:
        """See `EngineColumn`."""
        import polars as pl

        part = copy(self)
        known = self._frame.filter(pl.col("g").is_in(cells) if cells else pl.lit(value=False))
        part._frame, part.grouping = known.select("x"), False
        return part

    def _present(self) -> Any:
        import polars as pl

        x = pl.col("x")
        return x.is_not_nan() & x.is_not_null() if self.kind == "f" else x.is_not_null()

    def head(self, rows: int) -> list[Any]:
        """See `EngineColumn`."""
        found = self._frame.filter(self._present()).head(rows).collect(engine="streaming")
        return found.to_series().to_list()

    def rows(self) -> int:
        """See `EngineColumn`."""
        import polars as pl

        return int(self._frame.select(pl.len()).collect(engine="streaming").item())
