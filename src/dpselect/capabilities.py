"""The abilities of other libraries' objects, as types: no such library is imported, and a check reads no cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

__all__ = [
    "ArrowDictionary",
    "ArrowInPandas",
    "ArrowNumbers",
    "ArrowStream",
    "ArrowTable",
    "ArrowValues",
    "Chunked",
    "Columnar",
    "DataClass",
    "DuckRelation",
    "Indexable",
    "Linear",
    "MaskedType",
    "NamedColumns",
    "NumPyArray",
    "PandasCells",
    "PandasColumn",
    "PandasMoment",
    "PandasRows",
    "PandasSpan",
    "Query",
    "Shaped",
    "Sparse",
    "ToArrow",
    "Trainable",
    "Typed",
    "Weighted",
    "WithSchema",
    "Zoned",
    "array_of",
    "dtype_of",
    "field_values",
]


@runtime_checkable
class NumPyArray(Protocol):
    """An object that NumPy can convert: an array, a column, a data frame, a tensor."""

    def __array__(self) -> Any: ...


@runtime_checkable
class Typed(Protocol):
    """An array or a column with one type for all cells."""

    dtype: Any


@runtime_checkable
class Shaped(Protocol):
    """An array, a frame or a scalar of NumPy."""

    shape: Any


@runtime_checkable
class Indexable(Protocol):
    """An object with `object[key]`."""

    def __getitem__(self, key: Any, /) -> Any: ...


@runtime_checkable
class Columnar(Protocol):
    """A frame of pandas or polars, or an Arrow table."""

    columns: Any


@runtime_checkable
class WithSchema(Protocol):
    """A frame of polars, with the type of each column."""

    columns: Any
    schema: Any


@runtime_checkable
class ArrowInPandas(Protocol):
    """A type of Arrow that a column of pandas has."""

    pyarrow_dtype: Any


@runtime_checkable
class NamedColumns(Protocol):
    """An Arrow table, or a data set of Hugging Face."""

    column_names: Any


@runtime_checkable
class ArrowTable(Protocol):
    """An Arrow table, whose columns are not NumPy's."""

    column_names: Any

    def column(self, name: Any, /) -> Any: ...


@runtime_checkable
class Sparse(Protocol):
    """A sparse container of SciPy."""

    def toarray(self) -> Any: ...


@runtime_checkable
class PandasRows(Protocol):
    """A frame or a column of pandas, with rows by position."""

    iloc: Any


@runtime_checkable
class PandasCells(Protocol):
    """An array, a column or a frame of pandas."""

    def isna(self) -> Any: ...


@runtime_checkable
class PandasColumn(Protocol):
    """A column or an index of pandas, which wraps an array."""

    array: Any


@runtime_checkable
class Zoned(Protocol):
    """A type of moments, with the time zone of a column if it has one."""

    tz: Any


@runtime_checkable
class MaskedType(Protocol):
    """A type of pandas whose cells are NumPy's, with a mask for those that are missing."""

    numpy_dtype: Any


@runtime_checkable
class PandasMoment(Protocol):
    """A moment of pandas, which may have nanoseconds."""

    def to_datetime64(self) -> Any: ...


@runtime_checkable
class PandasSpan(Protocol):
    """A duration of pandas, which may have nanoseconds."""

    def to_timedelta64(self) -> Any: ...


@runtime_checkable
class ToArrow(Protocol):
    """A column of polars."""

    dtype: Any

    def to_arrow(self) -> Any: ...


@runtime_checkable
class ArrowDictionary(Protocol):
    """An Arrow array of categories."""

    dictionary: Any
    indices: Any


@runtime_checkable
class Chunked(Protocol):
    """An Arrow array in chunks, or scores that come in parts."""

    def iterchunks(self) -> Iterator[Any]: ...


@runtime_checkable
class ArrowValues(Protocol):
    """An Arrow array, in chunks or not."""

    type: Any

    def drop_null(self) -> Any: ...


@runtime_checkable
class ArrowNumbers(Protocol):
    """An Arrow array with a count of its missing cells."""

    type: Any
    null_count: int

    def fill_null(self, value: Any, /) -> Any: ...


@runtime_checkable
class ArrowStream(Protocol):
    """A table or a column that Arrow can read."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


@runtime_checkable
class Trainable(Protocol):
    """An estimator of scikit-learn."""

    fit: Any
    get_params: Any


@runtime_checkable
class Weighted(Protocol):
    """A fitted model of this library, with all of its weights."""

    weights_: Any


@runtime_checkable
class Linear(Protocol):
    """A fitted linear model of scikit-learn."""

    coef_: Any


@runtime_checkable
class Query(Protocol):
    """A query that has not run, such as a lazy frame of polars."""

    def collect(self) -> Any: ...


@runtime_checkable
class DuckRelation(Protocol):
    """A relation of DuckDB."""

    def fetchall(self) -> Any: ...

    def query(self, name: str, sql: str) -> Any: ...


class DataClass(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def array_of(values: Any) -> Any:
    """Return the array that a column or an index of pandas wraps, or other values as they are."""
    return values.array if isinstance(values, PandasColumn) else values


def dtype_of(values: Any) -> Any:
    """Return the type of an array or a column, or None for values without one.

    >>> import numpy as np
    >>> dtype_of(np.zeros(2)), dtype_of([0.0])
    (dtype('float64'), None)
    """
    return values.dtype if isinstance(values, Typed) else None


def field_values(value: DataClass, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the fields of a dataclass by name: all of them, or those that are named."""
    wanted = (field.name for field in fields(value)) if names is None else names
    return {name: getattr(value, name) for name in wanted}
