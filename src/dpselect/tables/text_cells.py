"""Cells as Python values, for categories: no content makes it fail, and a type that is not read is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError

__all__ = ["arrow_cells", "arrow_texts", "cells_of", "text_chunks", "text_type"]


def text_chunks(values: Any) -> Callable[[], Iterator[list[Any]]]:
    """The cells of a column in memory; where there is none they are None or NaN, which is no category.

    Raises `TypeError` and `ArgumentError` for types and shapes that have no categories.
    """
    if getattr(values, "ndim", 1) != 1:
        raise ArgumentError("values must be one-dimensional")
    if hasattr(values, "to_arrow"):  # polars
        if not str(values.dtype).startswith(("String", "Categorical", "Enum", "Int", "UInt", "Boolean")):
            raise _no_text(values.dtype)
        values = values.to_arrow()
    if hasattr(getattr(values, "dtype", None), "pyarrow_dtype"):  # pandas
        values = values.array.__arrow_array__()
    if hasattr(values, "iterchunks") or hasattr(values, "drop_null"):
        if not text_type(values.type, whole=True):
            raise _no_text(values.type)
        parts = list(values.iterchunks()) if hasattr(values, "iterchunks") else [values]
        return lambda: map(arrow_texts, parts)
    dtype = getattr(values, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "O") not in "OUSTiufb":
        raise _no_text(dtype)
    try:
        cells = list(values)
    except TypeError:
        raise TypeError("values must be a column") from None
    return lambda: iter([cells])


def _no_text(kind: Any) -> TypeError:
    return TypeError(f"values must be text or whole numbers for categories, got {str(kind)[:60]}")


def text_type(kind: Any, *, whole: bool = False) -> bool:
    """Whether a type of Arrow is one of text, or with `whole` one of whole numbers or truth values."""
    import pyarrow.types as of

    if of.is_dictionary(kind):
        kind = kind.value_type
    numbers = whole and (of.is_integer(kind) or of.is_boolean(kind))
    return bool(numbers or of.is_string(kind) or of.is_large_string(kind))


def arrow_texts(values: Any) -> list[Any]:
    """The cells of an Arrow array of such a type. Text may hold bytes that are none."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not text_type(values.type):
        return list(values.to_pylist())
    cells = values.cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]


def cells_of(values: Any) -> list[Any]:
    """The cells of a chunk of any type; None for what Python has no value for."""
    if hasattr(getattr(values, "dtype", None), "pyarrow_dtype"):
        values = values.array.__arrow_array__()
    if hasattr(values, "iterchunks"):
        return [cell for part in values.iterchunks() for cell in cells_of(part)]
    if hasattr(values, "drop_null"):
        return arrow_texts(values) if text_type(values.type, whole=True) else [None] * len(values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ArgumentError("values must be one-dimensional")
    return list(values)


def arrow_cells(column: Any, *, doubles: bool = False) -> NDArray[Any]:
    """The cells of an Arrow array or chunked array.

    Whole numbers stay whole if some are missing. As doubles, which NumPy would make of them then, one row would change
    the text of all others, and what of them is beyond 2**53. With `doubles`, for a column of numbers, they are doubles.
    A dictionary is decoded first: converted as it is, NumPy would see the last category where a cell is missing. Text
    may hold bytes that are none, at which a conversion would fail.
    """
    if text_type(column.type):
        return _text_cells(column)
    if hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    if column.null_count and str(column.type).lstrip("u").startswith("int") and not doubles:
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _text_cells(column: Any) -> NDArray[Any]:
    """One Python text for equal cells."""
    found = []
    for part in column.iterchunks() if hasattr(column, "iterchunks") else [column]:
        encoded = part if hasattr(part, "dictionary") else part.dictionary_encode()
        texts = np.array([*cells_of(encoded.dictionary), None], dtype=object)
        found.append(texts[np.asarray(encoded.indices.cast("int64").fill_null(len(texts) - 1))])
    return np.concatenate(found) if found else np.empty(0, dtype=object)
