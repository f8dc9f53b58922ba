"""Durations, in seconds: numbers are seconds, text is as Python, pandas and databases write it."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any, Final

import numpy as np

from dpselect.numerics.moments import seconds_of
from dpselect.numerics.search import Array
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared
from dpselect.tables.kinds.each_cell import column_of, each_cell
from dpselect.tables.kinds.number import read_numbers

__all__: list[str] = []

_TEXT: Final = re.compile(
    r"(?:(?P<days>[+-]?\d{1,9}) ?(?:d|days?)[, ]*)?"
    r"(?:(?P<sign>[+-]?)(?P<hours>\d{1,12}):(?P<minutes>\d{1,2})(?::(?P<seconds>\d{1,2}(?:\.\d+)?))?)?"
)


def _read(cells: Any, declared: Declared) -> Array:
    cells = column_of(cells)
    if cells.dtype.kind == "m":
        return seconds_of(cells)
    if cells.dtype.kind in "iuf":
        return read_numbers(cells, declared)
    if cells.dtype.kind in "bcMV":
        raise TypeError("holds booleans or dates, and is declared a duration")
    return each_cell(cells, _seconds)


def _seconds(cell: Any) -> float:
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, time):  # of the clock, as spreadsheets show a duration below a day
        return (datetime.combine(date.min, cell) - datetime.min).total_seconds()
    if isinstance(cell, np.timedelta64):
        return float(seconds_of(np.array([cell]))[0])
    found = _TEXT.fullmatch(cell) if isinstance(cell, str) and cell else None
    if found is None:
        return np.nan if isinstance(cell, np.datetime64) else float("x" if "_" in str(cell) else cell)
    part = {name: float(value) for name, value in found.groupdict().items() if name != "sign" and value}
    clock = part.get("hours", 0.0) * 3600 + part.get("minutes", 0.0) * 60 + part.get("seconds", 0.0)
    return part.get("days", 0.0) * 86400 + (-clock if found["sign"] == "-" else clock)


KINDS.register("duration")(ColumnKind(_read, numeric=True))
