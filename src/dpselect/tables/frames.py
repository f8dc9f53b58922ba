"""Data frames: the only column of one, and those of engines, which are named and refused where rows must be in memory.

An engine may return its rows in another order with each query. Two readings of it, such as of X and of y, then put
together rows of different people, and one row could move all others. So nothing here collects them.
"""

from __future__ import annotations

from typing import Any, Final

from dpselect.capabilities import ArrowTable, Columnar, NamedColumns, PandasColumn, PandasRows
from dpselect.errors import ArgumentError

__all__ = ["only_column", "refuse_engine"]

_COLLECT: Final = {
    "polars": ("LazyFrame", ".collect()"),
    "pyspark": ("", ".toPandas()"),
    "ray": ("", ".to_pandas()"),
    "dask": ("", ".compute()"),
    "ibis": ("", ".to_pandas()"),
    "duckdb": ("", ".df()"),
    "_duckdb": ("", ".df()"),
}
"""By package: the begin of the class's name, and what reads such an object into memory."""


def refuse_engine(values: Any, argument: str) -> None:
    """Raise `ArgumentError` for a frame or column whose rows are in an engine or on a cluster.

    >>> refuse_engine([[1.0]], "X")
    """
    kind = type(values)
    package = kind.__module__.partition(".")[0]
    begin, collect = _COLLECT.get(package, (None, ""))
    if begin is not None and kind.__name__.startswith(begin):
        raise ArgumentError(
            f"{argument}: this {package.strip('_')} {kind.__name__} is not in memory. Read it first: frame = "
            f"frame{collect}. Take every argument from that one reading, because an engine may return its rows in "
            "another order each time"
        )


def only_column(values: Any, argument: str) -> Any:
    """The column of a frame in memory that has one, anything else as it is.

    Raises `ArgumentError` for a frame of more columns, or of none.
    """
    if isinstance(values, NamedColumns):
        columns = values.column_names
    elif isinstance(values, Columnar) and not isinstance(values, PandasColumn):
        columns = values.columns
    else:
        return values
    if callable(columns):
        return values
    if len(columns) != 1:
        cure = f". Write frame[{str(columns[0])!r}] for the first" if len(columns) else ""
        raise ArgumentError(f"{argument}: a frame must have one column here, got {len(columns)}{cure}")
    if isinstance(values, PandasRows):  # names of pandas may be anything
        return values.iloc[:, 0]
    return values.column(0) if isinstance(values, ArrowTable) else values.to_series(0)
