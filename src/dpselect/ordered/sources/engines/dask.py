"""Columns of Dask: series, and data frames with one column. Each partition is counted where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.sources.counted_ranks import Range
from dpselect.ordered.sources.engine_column import READERS, EngineColumn, one_of, refuse_groups, type_refused

__all__ = ["DaskColumn"]

_ROWS: Final = 1 << 20
_TYPES: Final = {"f": np.float64, "i": np.int64}


@READERS.register("dask")
def read(values: Any, by: str | None = None) -> DaskColumn | None:
    """Reads a series or a data frame with one column. Raises `ArgumentError` for a type that is not read."""
    import dask.dataframe as dd

    refuse_groups(by, "Dask")

    if isinstance(values, dd.DataFrame):
        values = values[one_of(list(values.columns))]
    return DaskColumn(values) if isinstance(values, dd.Series) else None


READERS.register("dask_expr")(read)


class DaskColumn(EngineColumn):
    """A Dask series."""

    def __init__(self, series: Any) -> None:
        name = str(series.dtype).lower()
        if name in ("bool", "boolean") or (name.removeprefix("u").startswith("int") and name != "uint64"):
            self.kind = "i"
        elif name in ("float32", "float64"):
            self.kind = "f"
        elif name.startswith("string"):
            self.kind = "text"
        else:
            raise type_refused(name)
        self._series = series

    def grouped(self, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> list[tuple[Any, int]]:
        """See `EngineColumn`."""
        import dask

        counted = dask.delayed(_counted, pure=False)
        total: Counter[Any] = Counter()
        for found in dask.compute(*(counted(part, self.kind, edges, ranges) for part in self._series.to_delayed())):
            total.update(found)
        return list(total.items())

    def head(self, rows: int) -> list[Any]:
        """See `EngineColumn`."""
        first = self._series.head(rows, npartitions=-1, compute=True).dropna()
        return first.to_numpy(dtype=_TYPES[self.kind]).tolist()

    def rows(self) -> int:
        """See `EngineColumn`."""
        return len(self._series)


def _counted(part: Any, kind: str, edges: Sequence[Any] | None, ranges: Sequence[Range]) -> dict[Any, int]:
    """The counts of one partition, a pandas series."""
    present = part.dropna()
    if kind == "text":
        return {str(cell): int(rows) for cell, rows in present.value_counts().items()}
    total: Counter[Any] = Counter()
    for start in range(0, len(present), _ROWS):
        total.update(_numbers(present.iloc[start : start + _ROWS].to_numpy(dtype=_TYPES[kind]), edges, ranges))
    return total


def _numbers(values: NDArray[Any], edges: Sequence[Any] | None, ranges: Sequence[Range]) -> dict[Any, int]:
    values = values[values == values]
    if ranges:
        within = np.zeros(len(values), dtype=bool)
        for low, high in ranges:
            within |= (True if low is None else values >= low) & (True if high is None else values < high)
        values = values[within]
    if edges is not None:
        rows = np.bincount(np.searchsorted(np.array(edges), values, side="right"), minlength=len(edges) + 1)
        return dict(enumerate(rows.tolist()))
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
