"""The container of a table, known by its methods alone: none of these libraries is imported, and no cell is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpselect.capabilities import ArrowTable, Columnar, PandasRows, Sparse, dtype_of

__all__ = ["is_arrow_table", "is_frame", "is_pandas", "is_sparse", "numpy_kind", "without_sparsity"]


def is_frame(X: Any) -> bool:
    """Whether the table has columns: a frame of pandas or polars, or an Arrow table."""
    return isinstance(X, Columnar)


def is_pandas(X: Any) -> bool:
    """Whether it is a frame of pandas, or one that is indexed alike."""
    return isinstance(X, PandasRows)


def is_arrow_table(X: Any) -> bool:
    """Whether it is an Arrow table, whose columns are not NumPy's."""
    return isinstance(X, ArrowTable)


def is_sparse(X: Any) -> bool:
    """Whether it is a sparse container of SciPy."""
    return isinstance(X, Sparse)


def without_sparsity(X: Any) -> Any:
    """The table, as a dense array if it is sparse."""
    return X.toarray() if is_sparse(X) else X


def numpy_kind(values: Any) -> str | None:
    """The letter of the NumPy type of an array or a column, or None if it has no such type.

    >>> numpy_kind(np.zeros(2)), numpy_kind([0.0])
    ('f', None)
    """
    dtype = dtype_of(values)
    return dtype.kind if isinstance(dtype, np.dtype) else None
