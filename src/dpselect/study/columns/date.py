"""Dates and times, as seconds since 1970 in UTC; those without a time zone are taken to be in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.moments import seconds_of
from dpselect.study.columns.kind import KINDS, ColumnKind, each_cell


def _read(cells: Any, form: str | None) -> NDArray[np.float64]:
    cells = np.asarray(cells)
    if cells.dtype.kind == "M":
        return seconds_of(cells)
    if cells.dtype.kind in "biufcmV":
        raise TypeError("holds numbers or durations, and is declared a date")
    return each_cell(cells, partial(_seconds, form=form))


def _seconds(cell: Any, form: str | None) -> float:
    if isinstance(cell, np.datetime64):
        return float(seconds_of(np.array([cell]))[0])
    if isinstance(cell, str):
        cell = datetime.fromisoformat(cell) if form is None else datetime.strptime(cell, form)
    if not isinstance(cell, datetime) and isinstance(cell, date):
        cell = datetime.combine(cell, time())
    return float((cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp())


def _written(seconds: float, form: str | None) -> str:
    moment = datetime.fromtimestamp(round(seconds), UTC)
    return moment.isoformat() if form is None else moment.strftime(form)


_WIDEST: Final = tuple(datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1900, 2100))

KINDS.register("date")(ColumnKind(_read, takes_format=True, written=_written, widest=(_WIDEST[0], _WIDEST[1])))
