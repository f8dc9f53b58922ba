"""A column in memory, of any library: the same cells, and the same missing ones, for every door."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import (
    ArrowDictionary,
    MaskedType,
    NumPyArray,
    PandasCells,
    ToArrow,
    Typed,
    array_of,
    dtype_of,
)
from dpselect.errors import ArgumentError
from dpselect.tables.text_cells import arrow_of, cells_of, is_arrow, is_chunked, text_type

__all__ = ["TypedCells", "cells_in", "column_parts", "filled", "is_untyped", "text_chunks", "unmasked"]

Kind = Literal["typed", "decimal", "text", "categories", "objects", "other"]


@dataclass(frozen=True, eq=False, repr=False)
class TypedCells:
    """The cells of a column, or of a part of it.

    `values` are of a type of NumPy in native order where `kind` is "typed", else objects: decimals, text or bytes,
    objects whose column says nothing of them, or "other": what is neither a number nor a moment nor text. The
    "categories" of pandas are of any type, which pandas took from the rows. `present` is where there is a cell, None
    for everywhere; None, NaN and NaT are missing as well. `name` is the type as its library calls it.
    """

    values: NDArray[Any]
    kind: Kind
    name: str
    present: NDArray[np.bool_] | None = None


def is_untyped(values: Any) -> bool:
    """Whether a column has no type of its own, so that one could only be guessed from its rows: a list is such a one.

    >>> is_untyped([1, 2]), is_untyped(range(2)), is_untyped(np.array([1, 2]))
    (True, False, False)
    """
    if isinstance(values, (list, tuple)):
        return True
    if isinstance(values, (range, memoryview, str, bytes, Mapping, AbstractSet)):
        return False
    if isinstance(values, (Typed, NumPyArray)):
        return False
    with suppress(TypeError):
        memoryview(values)
        return False
    return isinstance(values, Iterable) and not is_arrow(values)


def column_parts(values: Any, what: str = "values") -> list[TypedCells]:
    """The cells of a column: one part, or those in which an Arrow column is held. At least one, with its type.

    `what` is what the column is called in errors. Raises `TypeError` for what is no column or has a type that its
    library does not hand over, and `ArgumentError` for a column of more dimensions. No content of a cell makes it
    raise.
    """
    if isinstance(values, (str, bytes, Mapping, AbstractSet)):
        raise TypeError(f"{what} must be a column, not {type(values).__name__}")
    values = _as_arrow(values, what)
    if is_chunked(values):
        return [_arrow(chunk) for chunk in values.iterchunks()] or [_arrow(values.combine_chunks())]
    if is_arrow(values):
        return [_arrow(values)]
    dtype = dtype_of(values)
    if isinstance(values, PandasCells) and not isinstance(dtype, np.dtype):
        return [_pandas(values, dtype)]
    if isinstance(values, np.ma.MaskedArray):
        (cells,) = column_parts(values.data, what)
        return [TypedCells(cells.values, cells.kind, cells.name, ~np.ma.getmaskarray(values))]
    array = _objects(values) if is_untyped(values) else _as_array(values, what)
    if array.ndim != 1:
        raise ArgumentError(f"{what} must be one-dimensional. Give one column, such as X[:, 0]")
    return [_array(array)]


def cells_in(values: Any, what: str = "values", *, doubles: bool = False) -> NDArray[Any]:
    """The cells of a column as one array in which those that are missing are NaN, NaT or None.

    Integers stay whole if some are missing. As doubles, one missing cell would change the text of all others, and
    the digests of rows that are made of it. With `doubles`, for a column of numbers, they are float64 then.
    """
    parts = [filled(part, doubles=doubles) for part in column_parts(values, what)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def filled(cells: TypedCells, *, doubles: bool = False) -> NDArray[Any]:
    """The values of cells, with NaN, NaT or None for those that are missing; see `cells_in`."""
    values, present = cells.values, cells.present
    if present is None or present.all():
        return values
    if doubles and values.dtype.kind in "biu":
        values = values.astype(np.float64)
    if values.dtype.kind in "fmM":
        return np.where(present, values, values.dtype.type("NaN" if values.dtype.kind == "f" else "NaT"))
    found = values.astype(object)
    found[~present] = None
    return found


def text_chunks(values: Any) -> Callable[[], Iterator[list[Any]]]:
    """The cells of a column for categories; where there is none they are None or NaN.

    Raises `TypeError` and `ArgumentError` for types and shapes that have no categories.
    """
    parts = column_parts(values)
    if parts[0].kind == "other" or parts[0].values.dtype.kind in "mM":
        raise TypeError(f"values must be text or numbers for categories, got {parts[0].name[:60]}")
    return lambda: (_python(filled(part)) for part in parts)


def _python(cells: NDArray[Any]) -> list[Any]:
    """The cells as Python's, but for numbers of less than 64 bits: 0.1 would be 0.10000000149011612."""
    return list(cells) if cells.dtype in (np.float16, np.float32) else cells.tolist()


def unmasked(values: Any) -> Any:
    """A masked array of any shape with NaN, NaT or None for the cells that are masked; all else as it is.

    >>> unmasked(np.ma.array([1.5, 2.5], mask=[True, False])).tolist()
    [nan, 2.5]
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    cells = values.data if values.dtype.kind in "fmM" else values.data.astype(object)
    return filled(TypedCells(cells, "typed", str(values.dtype), ~np.ma.getmaskarray(values)))


def _as_arrow(values: Any, what: str) -> Any:
    """The Arrow array that a column of polars is, or a column of pandas with a type of Arrow."""
    if isinstance(values, ToArrow):
        name = str(values.dtype)
        if name.startswith(("Int128", "UInt128", "Object", "Unknown")):  # not all can be handed over
            raise _unread(name, what)
        return values.to_arrow()
    return arrow_of(values)


def _arrow(values: Any) -> TypedCells:
    import pyarrow as pa
    import pyarrow.compute as compute
    import pyarrow.types as of

    name = str(values.type)
    extension = values.type.extension_name if isinstance(values.type, pa.BaseExtensionType) else ""
    if extension == "arrow.bool8":
        values = values.cast(pa.bool_())
    elif extension == "arrow.json":
        values = values.storage
    if of.is_run_end_encoded(values.type):
        values = compute.run_end_decode(values)
    if of.is_dictionary(values.type) and not text_type(values.type):
        # converted as it is, NumPy would see the last category where a cell is missing
        values = values.dictionary_decode()
    kind = values.type
    if of.is_string_view(kind):
        values = values.cast(pa.large_string())
    if text_type(values.type):
        return TypedCells(_texts(values), "text", name)
    if of.is_binary(kind) or of.is_large_binary(kind) or of.is_binary_view(kind) or of.is_fixed_size_binary(kind):
        return TypedCells(_objects(values.to_pylist()), "text", name)
    if of.is_decimal(kind):
        return TypedCells(_objects(values.to_pylist()), "decimal", name)
    if of.is_null(kind):
        return TypedCells(np.full(len(values), np.nan), "typed", name)
    numbers = (of.is_integer, of.is_floating, of.is_boolean, of.is_date, of.is_timestamp, of.is_duration)
    if not any(check(kind) for check in numbers):
        return TypedCells(_objects(values.to_pylist()), "other", name)
    present = None
    if values.null_count:
        present = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        values = values.fill_null(not of.is_boolean(kind) and 0)  # else NumPy has doubles for integers
    return TypedCells(_native(np.asarray(values.to_numpy(zero_copy_only=False))), "typed", name, present)


def _texts(values: Any) -> NDArray[Any]:
    """One Python text for equal cells. Text may hold bytes that are none, at which a conversion would fail."""
    encoded = values if isinstance(values, ArrowDictionary) else values.dictionary_encode()
    texts = _objects([*cells_of(encoded.dictionary), None])
    found: NDArray[Any] = texts[np.asarray(encoded.indices.cast("int64").fill_null(len(texts) - 1))]
    return found


def _pandas(values: Any, dtype: Any) -> TypedCells:
    """An extension type of pandas."""
    name, array = str(dtype), array_of(values)
    kind_of_type = type(dtype).__name__
    if kind_of_type == "DatetimeTZDtype":  # moments in UTC
        return _array(np.asarray(array.tz_convert(None).to_numpy()))
    if kind_of_type == "CategoricalDtype":
        (named,), codes = column_parts(dtype.categories), np.asarray(array.codes)
        if not len(named.values):
            return TypedCells(np.full(len(codes), None, dtype=object), "categories", name)
        present = codes >= 0
        if named.present is not None:
            present &= named.present[codes]
        # of two zeros, pandas keeps the sign of the first one in the column
        values = named.values + 0.0 if named.values.dtype.kind == "f" else named.values
        return TypedCells(values[codes], "categories", name, present)
    if kind_of_type == "SparseDtype":
        return _array(np.asarray(array.to_dense()))
    held = dtype.numpy_dtype if isinstance(dtype, MaskedType) else None
    if isinstance(held, np.dtype) and held.kind in "iufb":
        present = np.asarray(~values.isna(), dtype=bool)
        return TypedCells(
            _native(np.asarray(values.to_numpy(dtype=held, na_value=held.type(0)))), "typed", name, present
        )
    kind: Kind = "text" if dtype is not None and dtype.type is str else "other"
    return TypedCells(np.asarray(values.to_numpy(dtype=object)), kind, name)


def _array(array: NDArray[Any]) -> TypedCells:
    name, kind = str(array.dtype), array.dtype.kind
    if kind in "biufmM":
        return TypedCells(_native(array), "typed", name)
    if kind in "UST":
        return TypedCells(array.astype(object), "text", name)
    return TypedCells(array, "objects" if kind == "O" else "other", name)


def _native(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _as_array(values: Any, what: str) -> NDArray[Any]:
    """What a library says of a column that it has no array for is not passed on."""
    with suppress(Exception):
        return np.asarray(values)
    raise _unread(values.dtype if isinstance(values, Typed) else type(values).__name__, what)


def _unread(name: Any, what: str) -> TypeError:
    return TypeError(f"{what}: the type {str(name)[:60]} is not read; cast it to numbers or text")


def _objects(cells: Any) -> NDArray[Any]:
    """Not np.asarray: the text of one cell would turn all the others into text."""
    held = cells if isinstance(cells, Collection) else list(cells)
    found = np.empty(len(held), dtype=object)
    for place, cell in enumerate(held):
        found[place] = cell
    return found
