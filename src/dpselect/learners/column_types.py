"""Refusing tables with columns whose type says that they hold no numbers: dates, durations, categories, lists.

Only the types decide, never a cell. Text and objects are not refused: readers guess these types from the cells, so one
odd cell makes text of a column of numbers. A refusal would then tell that there is such a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from dpselect.capabilities import ArrowInPandas, WithSchema
from dpselect.errors import ArgumentError
from dpselect.learners.containers import is_arrow_table, is_pandas, numpy_kind
from dpselect.tables.frames import refuse_engine

__all__ = ["of_any_type", "refuse_other_types"]

_ANY_TYPE: Final[ContextVar[bool]] = ContextVar("_ANY_TYPE", default=False)

_MOMENTS: Final = (
    "which are not numbers: turn them into numbers of a unit first, such as days: "
    "(X[name] - np.datetime64('2020-01-01')) / np.timedelta64(1, 'D')"
)
_DURATIONS: Final = (
    "which are not numbers: turn them into numbers of a unit first, such as hours: X[name] / np.timedelta64(1, 'h')"
)
_CATEGORIES: Final = (
    "which are not numbers: encode them first by categories that are public, such as ColumnTransformer([('words', "
    "OneHotEncoder(categories=[['a', 'b']], handle_unknown='ignore'), [name])], remainder='passthrough'). If the "
    "categories are numbers, turn them into numbers first: X.astype({name: float})"
)
_OTHERS: Final = "which are not numbers: turn them into columns of numbers first, or leave them out"
_COMPLEX: Final = "which have no order. Complex data not supported: take their real part or their size first"
_ADVICE: Final = {
    "moments": _MOMENTS,
    "durations": _DURATIONS,
    "categories": _CATEGORIES,
    "complex numbers": _COMPLEX,
}


@contextmanager
def of_any_type() -> Iterator[None]:
    """Within it nothing is refused for its type.

    For runs of a search. A step in front may give its table a type that depends on the rows. A run that fails for that
    type would tell of them.
    """
    token = _ANY_TYPE.set(True)
    try:
        yield
    finally:
        _ANY_TYPE.reset(token)


def refuse_other_types(X: Any, places: Set[int] | None = None) -> None:
    """Raise `ArgumentError` for the first column of X, or of these places, whose type shows that it holds no numbers.

    >>> refuse_other_types(np.array([["2020-01-02"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    ...
    dpselect.errors.ArgumentError: X: the type datetime64[D] holds moments, which are not numbers: turn them into ...
    """
    refuse_engine(X, "X")
    if _ANY_TYPE.get():
        return
    for place, (name, kind) in enumerate(_types(X)):
        asked = places is None or (place in places if name is not None else bool(places))
        held = _held(kind) if asked else None
        if held is not None:
            where = "X" if name is None else f"column {str(name)[:100]!r} of X"
            name = str(kind).partition("(")[0][:60]  # without the words of an Enum
            raise ArgumentError(f"{where}: the type {name} holds {held}, {_ADVICE.get(held, _OTHERS)}")


def _types(X: Any) -> Iterator[tuple[Any, Any]]:
    """The names and types of the columns of a frame or an Arrow table. An array has one type and no name."""
    if is_pandas(X):
        yield from zip(X.columns, X.dtypes, strict=True)
    elif is_arrow_table(X):
        yield from zip(X.schema.names, X.schema.types, strict=True)
    elif isinstance(X, WithSchema):
        yield from X.schema.items()
    elif numpy_kind(X) is not None:
        yield None, X.dtype


def _held(kind: Any) -> str | None:
    """The contents of a column of this type, if they are neither numbers nor text nor any objects."""
    kind = kind.pyarrow_dtype if isinstance(kind, ArrowInPandas) else kind
    module = type(kind).__module__.partition(".")[0]
    if isinstance(kind, np.dtype):
        return {"M": "moments", "m": "durations", "c": "complex numbers", "V": "records"}.get(kind.kind)
    if module == "pandas":
        return _PANDAS.get(type(kind).__name__)
    if module == "pyarrow":
        return _held_by_arrow(kind)
    return _held_by_polars(kind) if module == "polars" else None


_PANDAS: Final = {
    "CategoricalDtype": "categories",
    "DatetimeTZDtype": "moments",
    "IntervalDtype": "intervals",
    "PeriodDtype": "periods",
}


def _held_by_arrow(kind: Any) -> str | None:
    import pyarrow.types as of

    if of.is_run_end_encoded(kind):
        return _held_by_arrow(kind.value_type)
    if of.is_dictionary(kind):
        return "categories"
    if of.is_duration(kind) or of.is_interval(kind):
        return "durations"
    if of.is_temporal(kind):
        return "moments"
    return "several values a cell" if of.is_nested(kind) else None


def _held_by_polars(kind: Any) -> str | None:
    name = type(kind).__name__ if not isinstance(kind, type) else kind.__name__
    if name in ("Categorical", "Enum"):
        return "categories"
    if name == "Duration":
        return "durations"
    if kind.is_temporal():
        return "moments"
    return "several values a cell" if kind.is_nested() else None
