"""Time stamps and durations as integers of a unit, exactly: the only place that converts between their units.

NumPy's own conversions between units wrap around if the new unit does not reach: the year 9999 becomes 1816 in
nanoseconds. Here single moments are Python integers of any size, counted in attoseconds since 1970, and arrays are
clipped to what their new unit holds, so that their order stays. `python -m lints` refuses NumPy's
conversions elsewhere in the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import PandasMoment, PandasSpan

__all__ = [
    "FIRST",
    "LAST",
    "UNITS",
    "instant_of",
    "seconds_of",
    "span",
    "span_in",
    "stamp",
    "stamp_type",
    "stamps_in",
    "start_of",
    "tick_at",
    "tick_of",
    "ticks_in",
]

LAST: Final = (1 << 63) - 1
FIRST: Final = -LAST
"""The first and the last tick of every unit; the integer below is NaT."""

_SECOND: Final = 10**18
_DAY: Final = 86_400 * _SECOND
_LENGTHS: Final = {
    "W": 7 * _DAY,
    "D": _DAY,
    "h": 3600 * _SECOND,
    "m": 60 * _SECOND,
    **{unit: _SECOND // 1000**power for power, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))},
}
_MONTHS: Final = {"Y": 12, "M": 1}
UNITS: Final = (*_MONTHS, *_LENGTHS)
"""From coarse to fine, by NumPy's names."""

_EPOCH: Final = datetime(1970, 1, 1)
_TEXT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<year>\d{4,19})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:[T ](?P<hour>\d\d)(?::(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:[.,](?P<part>\d+))?)?)?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII,
)


def stamp_type(unit: str) -> np.dtype[Any]:
    """NumPy's type of time stamps in a unit.

    >>> stamp_type("ms")
    dtype('<M8[ms]')
    """
    return np.dtype(f"datetime64[{unit}]")


def stamp(tick: int, unit: str) -> np.datetime64:
    """The time stamp at a tick of a unit, from `FIRST` to `LAST`.

    >>> stamp(20_000, "D")
    np.datetime64('2024-10-04')
    """
    return np.datetime64(tick, unit)  # type: ignore[call-overload]


def start_of(tick: int, unit: str, count: int = 1) -> int:
    """Attoseconds from 1970 to the begin of a tick of `count` units.

    >>> start_of(-1, "M") == -31 * 86_400 * 10**18
    True
    """
    ticks = tick * count
    return ticks * _LENGTHS[unit] if unit in _LENGTHS else _first_day(ticks * _MONTHS[unit]) * _DAY


def tick_at(instant: int, unit: str, *, up: bool = False) -> int:
    """The last tick of a unit that is not after an instant, or with `up` the first that is not before it.

    >>> tick_at(-1, "D"), tick_at(-1, "D", up=True)
    (-1, 0)
    """
    if unit in _LENGTHS:
        return -(-instant // _LENGTHS[unit]) if up else instant // _LENGTHS[unit]
    tick = _month_of(instant // _DAY) // _MONTHS[unit]
    return tick + 1 if up and start_of(tick, unit) < instant else tick


def instant_of(value: Any) -> int | None:
    """Attoseconds from 1970 to a moment: a `datetime64`, a date or datetime of Python or pandas, a text in ISO 8601.

    In UTC, also where there is no time zone. None for NaT. Raises `TypeError` for other types and `ValueError` for
    a text that is not a moment. An unsigned year of more than four digits needs its month.

    >>> instant_of("9999-12-31T23:30-01:00") == instant_of("10000-01-01T00:30")
    True
    """
    if isinstance(value, PandasMoment):  # pandas, whose datetimes have nanoseconds
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        unit, count = np.datetime_data(value.dtype)
        return None if np.isnat(value) or unit == "generic" else start_of(int(value.view(np.int64)), unit, count)
    if isinstance(value, datetime):
        since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or timedelta())
        return since // timedelta(microseconds=1) * 10**12
    if isinstance(value, date):
        return (value.toordinal() - _EPOCH.toordinal()) * _DAY
    if isinstance(value, str):
        return _read(value)
    raise TypeError(f"a time stamp is expected, not {type(value).__name__}")


def tick_of(value: Any, unit: str) -> int | None:
    """The tick of one moment, which is private: clipped to those that the unit holds. Raises as `instant_of` does.

    >>> stamp(tick_of("9999-12-31", "ns"), "ns")
    np.datetime64('2262-04-11T23:47:16.854775807')
    """
    instant = instant_of(value)
    return None if instant is None else min(max(tick_at(instant, unit), FIRST), LAST)


def ticks_in(values: NDArray[Any], unit: str) -> NDArray[np.int64]:
    """Time stamps of any unit as ticks of another, each the last that is not after it, clipped to `FIRST` and `LAST`.

    NaT stays NaT, as the smallest integer. The order of two time stamps never reverses.

    >>> ticks_in(np.array(["1969-12-31", "9999-12-31", "NaT"], dtype="M8[D]"), "ns").tolist()
    [-86400000000000, 9223372036854775807, -9223372036854775808]
    """
    source, count = np.datetime_data(values.dtype)
    ticks = _plain(values)
    if source == "generic":  # NaT alone has no unit
        return np.full(values.shape, FIRST - 1, dtype=np.int64)
    if (source, count) == (unit, 1):
        return ticks
    if count == 1 and source in _LENGTHS and unit in _LENGTHS:
        found = _scaled(ticks, _LENGTHS[source], _LENGTHS[unit])
    else:
        cut = lambda tick: min(max(tick_at(start_of(tick, source, count), unit), FIRST), LAST)  # noqa: E731
        found = _each(ticks, cut, np.int64)
    found[ticks < FIRST] = FIRST - 1
    return found


def stamps_in(values: NDArray[Any], unit: str) -> NDArray[Any]:
    """`ticks_in` as time stamps."""
    return ticks_in(values, unit).view(stamp_type(unit))


def seconds_of(values: NDArray[Any]) -> NDArray[np.float64]:
    """Seconds since 1970 of time stamps, or of durations, with NaN for NaT. An instant is one double in all units.

    Raises `TypeError` for durations in months or years, which have no length.

    >>> seconds_of(np.array(["1970-01-01T00:00:00.5", "NaT"], dtype="M8[ns]"))
    array([0.5, nan])
    """
    unit, count = np.datetime_data(values.dtype)
    if values.dtype.kind == "m" and unit in _MONTHS:
        raise TypeError("holds durations in months or years, which have no fixed length")
    ticks = _plain(values)
    if unit == "generic":
        return np.full(values.shape, np.nan)
    if count != 1 or unit in _MONTHS:
        found = _each(ticks, lambda tick: float(Fraction(start_of(tick, unit, count), _SECOND)), np.float64)
    elif _LENGTHS[unit] >= _SECOND:
        found = ticks.astype(np.float64) * float(_LENGTHS[unit] // _SECOND)
    else:
        parts = min(_SECOND // _LENGTHS[unit], 10**15)  # of which a double holds each number
        size = np.abs(ticks)  # of both signs alike: just before 1970 no digits cancel
        whole, rest = np.divmod(size // 1000 if unit == "as" else size, parts)
        found = np.copysign(whole.astype(np.float64) + rest.astype(np.float64) / parts, ticks)
    found[ticks < FIRST] = np.nan
    return found


def span(count: int, unit: str) -> np.timedelta64:
    """A duration. Raises `ValueError` for a unit that there is not, and for a count that NumPy cannot hold.

    >>> span(36, "h")
    np.timedelta64(36,'h')
    """
    if unit not in UNITS or not FIRST <= count <= LAST:
        raise ValueError(f"a duration is at most 2**63 - 1 of a unit of {', '.join(UNITS)}")
    return np.timedelta64(count, unit)  # type: ignore[call-overload]


def span_in(value: Any, unit: str) -> int:
    """A duration as ticks of a unit: a `timedelta64`, a timedelta of Python or pandas, or an integer of ticks.

    Raises `ValueError` where it is no integer of them, and `TypeError` for other types.

    >>> span_in(timedelta(hours=36), "m"), span_in(np.timedelta64(2, "Y"), "M")
    (2160, 24)
    """
    if isinstance(value, PandasSpan):
        value = value.to_timedelta64()
    if isinstance(value, timedelta):
        length, own, steps = value // timedelta(microseconds=1), "us", 1
    elif isinstance(value, np.timedelta64):
        own, steps = np.datetime_data(value.dtype)
        if np.isnat(value):
            raise ValueError("NaT is no duration")
        length = int(value.view(np.int64))
        if own == "generic":
            return length
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    else:
        raise TypeError(f"a duration is expected, not {type(value).__name__}")
    sizes = _MONTHS if own in _MONTHS else _LENGTHS
    whole = length * steps * sizes[own]
    if unit not in sizes or whole % sizes[unit]:
        raise ValueError(f"{value} is no integer of {unit}")
    return whole // sizes[unit]


def _scaled(ticks: NDArray[np.int64], source: int, target: int) -> NDArray[np.int64]:
    """Ticks of one length as ticks of another, rounded down and clipped."""
    if source < target:
        ratio = target // source
        return ticks // np.int64(ratio) if ratio <= LAST else np.where(ticks < 0, np.int64(-1), np.int64(0))
    ratio = source // target
    reach = LAST // ratio  # the products of what is clipped to it are in the range; at least one tick beyond is not
    found = np.clip(ticks, -reach, reach) * np.int64(ratio if reach else 1)
    found[ticks > reach], found[ticks < -reach] = LAST, FIRST
    return found


def _each(ticks: NDArray[np.int64], one: Callable[[int], Any], dtype: Any) -> NDArray[Any]:
    """By Python's integers, once for equal ticks."""
    distinct, places = np.unique(ticks, return_inverse=True)
    return np.array([one(tick) for tick in distinct.tolist()], dtype=dtype)[places].reshape(ticks.shape)


def _plain(values: NDArray[Any]) -> NDArray[np.int64]:
    native = values if values.dtype.isnative else values.byteswap().view(values.dtype.newbyteorder("="))
    return native.view(np.int64)


def _first_day(months: int) -> int:
    """Days from 1970 to the first day of a month, counted from January 1970, in the Gregorian calendar of all years."""
    year, month = divmod(months + 10, 12)  # of years that begin in March: 1969-03 is the first
    year += 1969
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 - 719468


def _month_of(day: int) -> int:
    """The month of a day, both counted from 1970."""
    months = (day * 4800) // 146_097  # 400 years have 4800 months; at most one off
    while _first_day(months) > day:
        months -= 1
    while _first_day(months + 1) <= day:
        months += 1
    return months


def _read(text: str) -> int:
    found = _TEXT.fullmatch(text)
    if found is None or (len(found["year"]) > 4 and not found["sign"] and found["month"] is None):
        raise ValueError("no moment in ISO 8601")
    year, month, day = int(found["sign"] + found["year"]), int(found["month"] or 1), int(found["day"] or 1)
    clock = [int(found[name] or 0) for name in ("hour", "minute", "second")]
    zone = found["zone"] or "Z"
    hours, minutes = (0, 0) if zone == "Z" else (int(zone[1:3]), int(zone[3:].lstrip(":") or 0))
    months = (year - 1970) * 12 + month - 1
    begin = _first_day(months)
    last = _first_day(months + 1) - begin
    if not (1 <= month <= 12 and 1 <= day <= last and clock[0] < 24 and max(*clock[1:], minutes) < 60 and hours < 24):
        raise ValueError("no moment in ISO 8601")
    offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
    seconds = (begin + day - 1) * 86_400 + clock[0] * 3600 + (clock[1] - offset) * 60 + clock[2]
    return seconds * _SECOND + int((found["part"] or "0")[:18].ljust(18, "0"))
