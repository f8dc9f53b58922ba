"""Values of a column with a type that are declared to stand for none, such as -99."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.numerics.moments import tick_of
from dpselect.ordered.sources.adapters import SqlTable
from dpselect.tables import Declared
from dpselect.tables.number_blocks import Block

__all__ = ["missing_in", "refuse_for_typed", "sql_without", "without"]


def refuse_for_typed(declared: Declared | None, named: str, *, zone: bool = False) -> None:
    """Raise `ArgumentError` for keys that need a column without a type. With `zone`, the column has a time zone."""
    taken = {"missing_values"}
    if zone and declared is not None and declared.kind in ("date", "timestamp"):
        taken |= {"kind", "time_zone"}  # answers may be shown in another one
    keys = [] if declared is None else [key for key in declared.keys if key not in taken]
    if keys:
        raise ArgumentError(f"{', '.join(keys)}: only for a column without a type; {named}")


def missing_in(declared: Declared, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The declared missing values as values of a column's type, without those that the type does not have."""
    values = declared.missing_values or ()
    if dtype.kind == "M":
        unit = np.datetime_data(dtype)[0]
        ticks = [tick for value in values if (tick := _tick(value, unit)) is not None]
        return np.array(ticks, dtype=np.int64).view(dtype)
    if dtype.kind == "f":
        numbers = Declared().read(values)
        with np.errstate(over="ignore"):
            return np.asarray(numbers[~np.isnan(numbers)].astype(dtype))
    found, present = Declared(kind="integer").block(values)
    whole = [int(value) for value in found[present]]
    if dtype.kind == "O":
        return np.array(whole, dtype=object)
    info = np.iinfo(dtype)
    return np.array([value for value in whole if info.min <= value <= info.max], dtype=dtype)


def _tick(value: Any, unit: str) -> int | None:
    try:
        return tick_of(value, unit)
    except (TypeError, ValueError):
        return None


def without(block: Block, absent: NDArray[Any]) -> Block:
    """A block in which the cells with these values are missing."""
    if not len(absent):
        return block
    values, present = block
    if values.dtype.kind == "O":
        known = set(absent.tolist())
        kept = np.array([value not in known for value in values], dtype=bool)
    else:
        kept = ~np.isin(values, absent)
    return values, kept if present is None else kept & present


def sql_without(source: SqlTable, declared: Declared | None) -> SqlTable:
    """A column of a database in which these values are missing."""
    if declared is None or source.number_of is None:
        return source
    expression = source.number_of
    for value in missing_in(declared, source.dtype).tolist() if source.unit is None else _ticks(source, declared):
        whole = isinstance(value, int)
        if whole or np.isfinite(value):
            literal = str(value) if whole else f"CAST('{value!r}' AS DOUBLE PRECISION)"
            expression = f"NULLIF({expression}, {literal})"
    return replace(source, number_of=expression)


def _ticks(source: SqlTable, declared: Declared) -> list[int]:
    return [int(tick) for tick in missing_in(declared, source.dtype).view(np.int64)]
