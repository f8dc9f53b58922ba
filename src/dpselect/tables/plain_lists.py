"""Lists, tuples and arrays of objects have no type of their own, and NumPy's guess at one is made from the rows.

`[0]` would be a column of integers and `[]` or `[0, 0.5]` one of doubles. The type of a column declares the domain
that is drawn from, so that one row more would tell itself by the kind of number that comes out. So a list holds doubles
and an array of objects integers, and a cell that is neither is missing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.moments import FIRST, tick_of
from dpselect.tables.categories import category, is_missing
from dpselect.tables.column_cells import is_untyped
from dpselect.tables.numbers import double_of

__all__ = [
    "LARGEST",
    "cells_as",
    "doubles_in",
    "floor",
    "hardly_any",
    "typed",
    "whole_as",
    "whole_cells",
    "whole_or_zero",
    "with_presence",
]

_PLAIN = (int, float, np.integer, np.floating, np.bool_, type(None))
LARGEST = 1 << 1000
"""Among Python integers, for an infinity."""


def hardly_any(fitting: int, foreign: int) -> bool:
    """Whether a column is not of the kind that it was said to be: less than a tenth of its cells are.

    That a column is of its kind is a public fact and the caller's promise; no row of a column that keeps it, with a
    row to spare, makes a difference here.
    """
    return foreign > 9 * fitting


def typed(values: Any, *, name: str = "values") -> Any:
    """Numbers in a list, or in what else has no type, become doubles; all else stays.

    Text that is a number counts as one, as in a CSV file; None and anything else that is not a number is missing.
    Raises `TypeError` for a list that holds something else (see `hardly_any`): timestamps, text.

    >>> typed([0]).dtype, typed([]).dtype, typed(np.array([0])).dtype
    (dtype('float64'), dtype('float64'), dtype('int64'))
    >>> typed([1, None, 10**400, "1"])
    array([ 1., nan, inf,  1.])
    """
    if not is_untyped(values):
        return values
    cells = _cells(values if isinstance(values, (list, tuple)) else list(values))
    if all(issubclass(kind, _PLAIN) and not issubclass(kind, np.timedelta64) for kind in set(map(type, cells.flat))):
        with suppress(OverflowError):
            return cells.astype(np.float64)
    return doubles_in(list(cells.flat), name=name, what="a list must hold numbers").reshape(cells.shape)


def doubles_in(cells: Sequence[Any], *, name: str, what: str) -> NDArray[np.float64]:
    """The number that each cell is, NaN where it is none; raises `TypeError` where hardly any is one.

    >>> doubles_in(["1.5", None, "x"], name="values", what="")
    array([1.5, nan, nan])
    """
    found = np.array([double_of(cell) for cell in cells], dtype=np.float64)
    present = sum(not is_missing(cell) for cell in cells)
    numbers = int(np.count_nonzero(found == found))
    if hardly_any(numbers, present - numbers):
        raise TypeError(
            f"{name}: {what}; for ordered categories of text give categories=[...], in order; give timestamps as an "
            "array of their type"
        )
    return found


def whole_cells(cells: Iterable[Any], *, name: str = "values") -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Python integers of an array of objects, 0 where there is none, and where there is one.

    Raises `TypeError` when there is none (see `hardly_any`), or when a tenth are numbers with decimal places,
    and more than one is; values of other types are missing.
    """
    kept = list(cells)
    whole, present = whole_or_zero(kept)
    numbers = int(present.sum())
    parts = sum(double_of(cell) % 1.0 > 0.0 for cell, there in zip(kept, present, strict=True) if not there)
    if hardly_any(numbers, sum(not is_missing(cell) for cell in kept) - numbers) or (parts > 1 and 9 * parts > numbers):
        raise TypeError(f"{name} that are Python objects must be integers; give doubles: values.astype(float)")
    return whole, present


def whole_or_zero(cells: Iterable[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Python integers, 0 for a cell that is no integer, and which cells are."""
    found = [_whole(cell) for cell in cells]
    whole = np.empty(len(found), dtype=object)
    whole[:] = [value or 0 for value in found]
    return whole, np.array([value is not None for value in found], dtype=bool)


def with_presence(values: NDArray[Any], *, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """An array of any shape, and which of its cells are not missing; of objects, those that are integers."""
    if values.dtype.kind != "O":
        return values, np.asarray(values == values, dtype=bool)
    cells, present = whole_cells(values.flat, name=name)
    return cells.reshape(values.shape), present.reshape(values.shape)


def cells_as(cells: Sequence[Any] | NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Cells of any kind as values of a column's type, and which of them are; text that is a number counts as one."""
    if dtype.kind == "M":
        unit = np.datetime_data(dtype)[0]
        ticks = np.array([_tick(cell, unit) for cell in cells], dtype=np.int64)
        return ticks.view(dtype), ticks >= FIRST
    if dtype == np.float64 and set(map(type, cells)) <= {int, float, bool, type(None)}:
        with suppress(OverflowError):
            plain = np.array(cells, dtype=object).astype(dtype)
            return plain, plain == plain
    doubles = [double_of(cell) for cell in cells]
    present = np.array([value == value for value in doubles], dtype=bool)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array(doubles, dtype=np.float64).astype(dtype), present
    exact = (_whole(cell) for cell in cells)
    return whole_as([floor(d) if w is None else w for w, d in zip(exact, doubles, strict=True)], dtype), present


def whole_as(values: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Python integers as a type of integers, clipped to what it holds."""
    if dtype.kind == "O":
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found
    info = np.iinfo(dtype)
    return np.array([min(max(value, int(info.min)), int(info.max)) for value in values], dtype=dtype)


def floor(value: float) -> int:
    """The integer below; 0 for NaN."""
    if math.isfinite(value):
        return math.floor(value)
    return 0 if math.isnan(value) else int(math.copysign(1, value)) * LARGEST


def _tick(cell: Any, unit: str) -> int:
    """That of NaT for a cell that is no time stamp."""
    with suppress(Exception):  # the cell's own code may be anything
        found = tick_of(cell, unit)
        return FIRST - 1 if found is None else int(found)
    return FIRST - 1


def _cells(values: Any) -> NDArray[Any]:
    try:
        return np.array(values, dtype=object)
    except ValueError:
        cells = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            cells[place] = value
        return cells


def _whole(cell: Any) -> int | None:
    if isinstance(cell, (np.timedelta64, np.ndarray)):
        return None
    if isinstance(cell, (str, bytes)):
        cell = category(cell)  # of a text that is a number, exactly
    try:
        if isinstance(cell, np.bool_):
            return int(cell)
        if isinstance(cell, (float, np.floating, Decimal, Fraction)):
            number: Any = cell
            return int(number) if abs(number) < LARGEST and number == int(number) else None
        return operator.index(cell)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # the cell's own code may fail
        return None
