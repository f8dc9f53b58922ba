"""Rows in memory as arrays of the types that the domains read.

A type is looked at before anything is paid. After that no content makes reading fail: what does not fit the type of the
column is cut off or missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.numerics.moments import stamps_in
from dpselect.tables.plain_lists import LARGEST, cells_as, floor, typed, whole_as, whole_cells
from dpselect.tables.text_cells import cells_of

__all__ = ["LARGEST", "Block", "arrays_of", "block_of", "chunk_of", "number_type", "present_in"]

Block = tuple[NDArray[Any], NDArray[np.bool_] | None]
"""Values, and where there is one; None for everywhere. NaN and NaT are missing as well."""


def arrays_of(values: Any) -> list[Any]:
    """The parts of a column in memory, without a copy where there is one already."""
    values = _arrow(values)
    if hasattr(values, "iterchunks"):  # an Arrow chunked array
        return list(values.iterchunks()) or [values.combine_chunks()]
    return [values]


def _arrow(values: Any) -> Any:
    """The Arrow array that a column of polars is, or a column of pandas with a type of Arrow."""
    if hasattr(values, "to_arrow"):
        kind = str(values.dtype)
        known = ("Int", "UInt", "Float", "Boolean", "Date", "Datetime", "String", "Categorical", "Enum", "Decimal")
        if not kind.startswith(known) or kind.startswith(("Int128", "UInt128")):
            raise _no_numbers(kind)  # not all others can be handed over
        return values.to_arrow()
    if hasattr(getattr(values, "dtype", None), "pyarrow_dtype"):
        return values.array.__arrow_array__()
    return values


def block_of(values: Any) -> Block:
    """One array of a type that the domains read. Raises `TypeError` and `ArgumentError` for its type or its shape."""
    values = _arrow(values)
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values)
    if hasattr(values, "iterchunks"):
        values = values.combine_chunks()
    if hasattr(values, "drop_null"):  # an Arrow array
        return _arrow_block(values)
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "tz", None) is not None:  # pandas: timestamps in UTC
        values = getattr(values, "dt", values).tz_convert(None).to_numpy()
    elif hasattr(values, "isna") and not isinstance(dtype, np.dtype):
        return _pandas_block(values)
    array = np.asarray(typed(values))
    if array.ndim != 1:
        raise ArgumentError("values must be one-dimensional")
    if array.dtype.kind == "O":
        return whole_cells(array)
    return _plain(array), None


def _unmasked(values: Any) -> Block:
    """A cell that is masked is missing."""
    cells, present = block_of(values.data)
    shown = ~np.ma.getmaskarray(values)
    return cells, shown if present is None else shown & present


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    if array.dtype.kind not in "iufM":
        raise _no_numbers(array.dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _no_numbers(kind: Any) -> TypeError:
    return TypeError(f"values must be numbers or timestamps, or text with categories, got {str(kind)[:60]}")


def _pandas_block(values: Any) -> Block:
    """An extension type of pandas that stands for one of NumPy: Int64, Float64, boolean."""
    kind = getattr(values.dtype, "numpy_dtype", None)
    if not isinstance(kind, np.dtype) or kind.kind not in "iufb":
        raise _no_numbers(values.dtype)
    present = np.asarray(~values.isna(), dtype=bool)
    return _plain(np.asarray(values.to_numpy(dtype=kind, na_value=kind.type(0)))), present


def number_type(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers or timestamps that are read."""
    import pyarrow.types as of

    numbers = (of.is_integer, of.is_floating, of.is_boolean, of.is_date, of.is_timestamp, of.is_decimal)
    return any(check(kind) for check in numbers)


def _arrow_block(values: Any) -> Block:
    if not number_type(values.type):
        raise _no_numbers(values.type)
    if str(values.type).startswith("decimal"):  # Arrow's own conversion does not always give the nearest double
        cells = values.to_pylist()
        return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64), None
    present = None
    if values.null_count:
        present = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        values = values.fill_null(str(values.type) != "bool" and 0)  # else NumPy has doubles for whole numbers
    return _plain(np.asarray(values.to_numpy(zero_copy_only=False))), present


def present_in(block: Block) -> NDArray[Any]:
    """The values that are there; NaN and NaT may be among them."""
    values, present = block
    return values if present is None else values[present]


def chunk_of(values: Any, dtype: np.dtype[Any]) -> Block:
    """One more chunk of a column whose type another chunk has declared; no content makes it fail.

    Numbers are cut off to those of the type, and rounded down to whole ones; numbers among timestamps, timestamps among
    numbers, and cells that are neither, are missing. One cell may change the type that another library gives to a
    chunk, so none is refused. Raises `ArgumentError` for a chunk that is not one-dimensional.
    """
    untyped = str(getattr(values, "dtype", "")) == "object" or isinstance(values, (list, tuple))
    if not untyped:
        try:
            return _as_type(block_of(values), dtype)
        except TypeError:
            pass
    return cells_as(cells_of(values), dtype)


def _as_type(block: Block, dtype: np.dtype[Any]) -> Block:
    values, present = block
    kind = values.dtype.kind
    if values.dtype == dtype:
        return block
    if (kind == "M") != (dtype.kind == "M"):
        return np.zeros(len(values), dtype=dtype), np.zeros(len(values), dtype=bool)
    if dtype.kind == "M":
        return stamps_in(values, np.datetime_data(dtype)[0]), present
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype), present
    if kind == "f":
        there = values == values
        present = there if present is None else there & present
        return whole_as([floor(value) for value in values.tolist()], dtype), present
    if dtype.kind == "O":
        return values.astype(object), present
    info = np.iinfo(dtype)
    low, high = (max(info.min, np.iinfo(values.dtype).min), min(info.max, np.iinfo(values.dtype).max))
    return np.clip(values, low, high).astype(dtype), present
