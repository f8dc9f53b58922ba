"""Cells as Python values, for categories. No content makes it fail, and an unsupported type is refused at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpselect.capabilities import ArrowInPandas, ArrowValues, Chunked, array_of, dtype_of
from dpselect.errors import ArgumentError

__all__ = ["arrow_of", "arrow_texts", "cells_of", "is_arrow", "is_chunked", "text_type"]


def text_type(kind: Any, *, whole: bool = False) -> bool:
    """Whether a type of Arrow is one of text, or with `whole` one of integers or booleans."""
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


def is_chunked(values: Any) -> bool:
    """Whether values are an Arrow array in chunks."""
    return isinstance(values, Chunked)


def is_arrow(values: Any) -> bool:
    """Whether values are an Arrow array, in chunks or not."""
    return is_chunked(values) or isinstance(values, ArrowValues)


def arrow_of(values: Any) -> Any:
    """The Arrow array of a pandas column with a type of Arrow; other values as they are."""
    if not isinstance(dtype_of(values), ArrowInPandas):
        return values
    return array_of(values).__arrow_array__()


def cells_of(values: Any) -> list[Any]:
    """Return the cells of a chunk of any type, with None for those that have no Python value."""
    values = arrow_of(values)
    if is_chunked(values):
        return [cell for part in values.iterchunks() for cell in cells_of(part)]
    if is_arrow(values):
        return arrow_texts(values) if text_type(values.type, whole=True) else [None] * len(values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ArgumentError("values must be one-dimensional")
    return list(values)
