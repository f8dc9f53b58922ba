"""The columns of a table: a data frame, a dictionary, or an array whose columns are in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import ArrowStream, NumPyArray, Query
from dpselect.errors import ArgumentError, missing_extra
from dpselect.learners.containers import is_arrow_table, is_frame, is_sparse
from dpselect.tables.column_cells import cells_in, unmasked

__all__ = ["table_columns"]

Cells = NDArray[Any]
_NAMED = 8


def table_columns(X: Any, names: Sequence[str]) -> dict[str, Cells]:
    """The columns with these names, one array of shape (rows,) each.

    X: a pandas or polars data frame, an Arrow table, another object with columns, or a mapping from names to sequences.
    It has these columns in any order, with or without others. X may also be an array (a list of rows) of exactly these
    columns, in the order of `names`. Raises `ArgumentError` that says what is wrong with anything else.
    """
    named = _named(X)
    if named is None:
        return _from_rows(X, names)
    found, column = named
    absent = [name for name in names if name not in found]
    if absent:
        raise ArgumentError(f"X lacks {_listed(absent)}; columns are found by name, in any order")
    twice = [name for name in names if found.count(name) > 1]
    if twice:
        raise ArgumentError(f"X has more than one {_listed(twice)}")
    cells = {name: _cells(name, column(name)) for name in names}
    if len({len(column) for column in cells.values()}) > 1:
        raise ArgumentError("X has columns of different lengths")
    return cells


def _named(X: Any) -> tuple[list[Any], Callable[[str], Any]] | None:
    """The names of the columns and how to get one. None if X has no names."""
    if isinstance(X, type):
        raise ArgumentError(f"X must be a table, got the class {X.__name__}")
    if isinstance(X, Mapping):
        return list(X), X.__getitem__
    if isinstance(X, Query):
        raise ArgumentError(f"X is a query of type {type(X).__name__} that has not run: call its collect() first")
    if is_arrow_table(X):
        return list(X.column_names), X.column
    streams = isinstance(X, ArrowStream)
    if is_frame(X) and (isinstance(X, NumPyArray) or not streams):
        return list(X.columns), X.__getitem__
    if streams:
        try:
            import pyarrow
        except ImportError:
            raise missing_extra("parquet", "reading an Arrow stream") from None
        try:
            return _named(pyarrow.table(X))
        except (ValueError, TypeError):  # a stream of one column, such as a Series
            return None
    return None


def _cells(name: str, values: Any) -> Cells:
    if isinstance(values, (str, bytes, Mapping)) or not (isinstance(values, Sized) and isinstance(values, Iterable)):
        raise ArgumentError(f"X: column {name!r} must hold a sequence of cells, got {type(values).__name__}")
    try:
        return cells_in(values, f"X: column {name!r}")
    except TypeError as error:
        problem = str(error)
    raise ArgumentError(problem)


def _from_rows(X: Any, names: Sequence[str]) -> dict[str, Cells]:
    if is_sparse(X):
        raise ArgumentError("X is a sparse container: pass a dense array, X.toarray()")
    X = unmasked(X)
    if isinstance(X, NumPyArray):
        rows = np.asarray(X)
    elif isinstance(X, Sequence) and not isinstance(X, (str, bytes)):
        rows = np.array(X, dtype=object)
    else:
        cure = ". Write pd.read_csv(...) for a file, with pandas as pd" if isinstance(X, str) else ""
        raise ArgumentError(
            f"X must be a data frame, a dictionary of columns or an array, got {type(X).__name__}{cure}"
        )
    if rows.ndim != 2:
        raise ArgumentError(
            f"X must have rows and columns, got an array of {rows.ndim} dimension(s); one row is a table of one row"
        )
    if rows.shape[1] != len(names):
        raise ArgumentError(
            f"X has {rows.shape[1]} columns where the model has {len(names)}; an array must hold exactly the columns "
            "of model.columns, in that order, or pass a data frame with their names"
        )
    return {name: rows[:, i] for i, name in enumerate(names)}


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"
