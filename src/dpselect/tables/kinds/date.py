"""Dates and times, as seconds since 1970 in UTC. Without an offset they are in the declared time zone, or in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.moments import FIRST, instant_of, seconds_of, tick_of
from dpselect.numerics.search import Array
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared, TickReader
from dpselect.tables.kinds.each_cell import column_of, each_cell, reading

__all__: list[str] = []

_EPOCH: Final = datetime(1970, 1, 1)
_UNIT: Final = "us"


def _read(cells: Any, declared: Declared) -> Array:
    cells = column_of(cells)
    if cells.dtype.kind == "M":
        if declared.time_zone is not None:
            raise TypeError(
                "holds time stamps without a time zone of their own, or in UTC: give text, or leave time_zone out"
            )
        return seconds_of(cells)
    if cells.dtype.kind in "biufcmV":
        raise TypeError("holds numbers or durations, and is declared a date")
    return each_cell(cells, partial(_seconds, declared=declared))


def _seconds(cell: Any, declared: Declared) -> float:
    if isinstance(cell, np.datetime64) and declared.zone is None:
        return float(seconds_of(np.array([cell]))[0])
    return float(_moment(cell, declared).timestamp())


def _moment(cell: Any, declared: Declared) -> Any:
    """The cell as a datetime with its offset. Raises anything for a cell that is none."""
    if isinstance(cell, str):
        cell = _parsed(cell, declared)
    elif isinstance(cell, np.datetime64):
        instant = instant_of(cell)
        cell = None if instant is None else _EPOCH + timedelta(microseconds=instant // 10**12)
    if not isinstance(cell, datetime) and isinstance(cell, date):
        cell = datetime.combine(cell, time())
    return cell if cell.tzinfo else cell.replace(tzinfo=declared.zone or UTC)


def _parsed(text: str, declared: Declared) -> datetime:
    if declared.format is None:
        return datetime.fromisoformat(text)
    found = datetime.strptime(text, declared.format)
    first = declared.two_digit_years_from
    return found if first is None else found.replace(year=first + (found.year - first) % 100)


def _ticks(cells: Any, declared: Declared) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Microseconds since 1970."""

    def tick(cell: Any) -> int:
        found = tick_of(_moment(cell, declared), _UNIT)
        return FIRST - 1 if found is None else found

    found = np.fromiter(map(reading(tick, FIRST - 1), cells), dtype=np.int64, count=len(cells))
    return found, found >= FIRST


def _written(seconds: float, declared: Declared) -> str:
    moment = datetime.fromtimestamp(round(seconds), declared.zone or UTC)
    return moment.isoformat() if declared.format is None else moment.strftime(declared.format)


_start: Callable[[int], float] = lambda year: datetime(year, 1, 1, tzinfo=UTC).timestamp()  # noqa: E731
_KEYS: Final = frozenset({"format", "two_digit_years_from", "time_zone"})
_HINT: Final = '; dates in another form than ISO 8601 need format, such as "%d.%m.%Y"'

for _name in ("date", "timestamp"):
    KINDS.register(_name)(
        ColumnKind(
            _read,
            keys=_KEYS,
            written=_written,
            widest=(_start(1900), _start(2100)),
            hint=_HINT,
            ticks=TickReader(_ticks, _UNIT),
        )
    )
