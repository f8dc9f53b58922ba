"""What people declare of the cells of a column, and the registry of the kinds that read them.

It is public, and the same for every package. Each kind is in its own file, and registers itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import Any, Final, TypedDict
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import field_values
from dpselect.errors import ArgumentError
from dpselect.numerics.moments import stamp_type
from dpselect.numerics.search import Array
from dpselect.registry import Registry
from dpselect.tables.categories import category
from dpselect.tables.fates import is_missing_text
from dpselect.tables.kinds.each_cell import column_of

__all__ = ["KINDS", "ColumnKind", "Declared", "DeclaredKeys", "Scalar", "TickReader", "other_dates"]

Scalar = str | bool | int | float
_SAMPLE: Final = datetime(2024, 11, 25, 13, 14, 15, tzinfo=UTC)
_TWO_DIGITS: Final = re.compile(r"(?:%[^yx]|[^%])*%[yx]")
_ZONE_NAME: Final = re.compile(r"(?:%[^Z]|[^%])*%Z")
_OFFSET: Final = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)")
_OTHER_DATE: Final = re.compile(r"\d{1,4}([./ -])\d{1,2}\1\d{1,4}\b.*", re.DOTALL)


def _as_it_is(number: float, declared: Declared) -> float:  # noqa: ARG001
    return number


@dataclass(frozen=True)
class TickReader:
    """Cells as integers, for order statistics that no float64 holds.

    `read(cells, declared)` returns int64 values of shape (cells,) and which of the cells are there. `unit` is that of
    time stamps, counted since 1970 in UTC, and None for integers.
    """

    read: Callable[[Any, Declared], tuple[NDArray[np.int64], NDArray[np.bool_]]]
    unit: str | None = None


@dataclass(frozen=True)
class ColumnKind:
    """How the cells of a column are read as numbers.

    Bounds and fills that a study declares are read in the same way.

    Args:
        read: `read(cells, declared)` returns float64 values of shape (cells,), NaN for a cell that is missing or cannot
            be read. You must ensure that each value comes from its own cell, and that no content makes it raise. It
            raises `TypeError` for a column whose type is another kind's, and the text says which.
        keys: the keys of `Declared` that this kind takes; none unless given.
        numeric: whether its cells are numbers, in which separators count. False unless given.
        written: `written(number, declared)` returns a bound as a study would declare it; the number itself unless
            given.
        widest: the bounds of any column of this kind, for bounds that are estimated privately; -1e15 and 1e15 unless
            given.
        hint: the end of the errors about cells that cannot be read; empty unless given.
        ticks: reads the cells as integers. None, the default, is for a kind whose order statistics are float64.
    """

    read: Callable[[Any, Declared], Array]
    keys: frozenset[str] = frozenset()
    numeric: bool = False
    written: Callable[[float, Declared], str | float] = _as_it_is
    widest: tuple[float, float] = (-1e15, 1e15)
    hint: str = ""
    ticks: TickReader | None = None


KINDS: Final = Registry[ColumnKind]("kind", room="dpselect.tables.kinds")
"""The kinds by the name that a study gives them: `KINDS.register("name")(ColumnKind(...))`."""


class DeclaredKeys(TypedDict, total=False):
    """The fields of `Declared` as keyword arguments."""

    kind: str
    format: str | None
    two_digit_years_from: int | None
    time_zone: str | None
    true_values: Sequence[Scalar] | None
    false_values: Sequence[Scalar] | None
    missing_values: Sequence[Scalar] | None
    unicode: str | None


@dataclass(frozen=True, kw_only=True)
class Declared:
    """How the cells of a column are read.

    Attributes:
        kind: a name in `KINDS`: "number", "integer", "boolean", "date", "timestamp", "duration" or "category".
        format: how dates are written, as in Python's `strptime`. None for ISO 8601.
        two_digit_years_from: the first year of the hundred that two digits (`%y`) mean: 1920 for 1920 to 2019.
        time_zone: an IANA name such as "Europe/Berlin", or an offset such as "+01:00". Dates and times without an
            offset are in it, None for UTC. The hour that occurs twice at the end of summer time is its first
            occurrence, and a time that the clocks skip has the offset of the time before.
        true_values: the cells of a boolean that mean true, in addition to `true` in any case and 1.
        false_values: the cells that mean false, in addition to `false` in any case and 0. If a number is among the two
            lists, other numbers have no meaning.
        missing_values: numbers or texts that mean that there is no value, such as -99 or "NA". Empty cells, None, NaN,
            NaT and NA always do.
        unicode: "NFC" (the default) or "exact". Categories that differ only in their Unicode form are one under NFC.

    Raises `ArgumentError` that names the attribute.

    >>> Declared(kind="boolean", true_values=["J"], false_values=["N"]).read(["J", "N", "?", True])
    array([ 1.,  0., nan,  1.])
    >>> Declared(kind="date", format="%d.%m.%y", two_digit_years_from=1920).read(["01.01.70", "01.01.21"]).tolist()
    [0.0, -1546300800.0]
    """

    kind: str = "number"
    format: str | None = None
    two_digit_years_from: int | None = None
    time_zone: str | None = None
    true_values: Sequence[Scalar] | None = None
    false_values: Sequence[Scalar] | None = None
    missing_values: Sequence[Scalar] | None = None
    unicode: str | None = None

    def __post_init__(self) -> None:
        for key, value in field_values(self, ("kind", "format", "time_zone", "unicode")).items():
            if not isinstance(value, (str, type(None))):
                raise ArgumentError(f"{key}: must be a text, got {value!r:.60}")
        self._refuse_other_keys()
        self._refuse_format()
        for key in ("true_values", "false_values", "missing_values"):
            self._refuse_values(key)
        if (self.true_values is None) != (self.false_values is None):
            raise ArgumentError("true_values and false_values: give both")
        lists = [{category(value) for value in self.true_values or ()}, {category(v) for v in self.false_values or ()}]
        lists.append({category(value) for value in self.missing_values or ()})
        if sum(map(len, lists)) > len(set[Any]().union(*lists)):
            raise ArgumentError("true_values, false_values and missing_values: a value is in two of them")
        if self.unicode not in (None, "NFC", "exact"):
            raise ArgumentError(f'unicode: must be "NFC" or "exact", got {self.unicode!r:.60}')
        if self.time_zone is not None:
            _ = self.zone

    def _refuse_other_keys(self) -> None:
        taken = self.column_kind.keys | {"kind", "missing_values"}
        for key, value in field_values(self).items():
            if key not in taken and value is not None:
                kinds = " or ".join(f'"{name}"' for name in KINDS if key in KINDS[name].keys)
                raise ArgumentError(f'{key}: goes with kind = {kinds}, not with kind = "{self.kind}"')

    def _refuse_format(self) -> None:
        century = self.two_digit_years_from
        if century is not None and not (type(century) is int and 1 <= century <= 9900):
            raise ArgumentError(f"two_digit_years_from: must be a year from 1 to 9900, got {century!r:.60}")
        if century is not None and not self._two_digits:
            raise ArgumentError("two_digit_years_from: goes with a format that has %y")
        if self.format is None:
            return
        if _ZONE_NAME.match(self.format):
            raise ArgumentError(
                "format: %Z is read otherwise on each machine: take %z for offsets, or declare time_zone"
            )
        try:
            datetime.strptime(_SAMPLE.strftime(self.format), self.format)
        except (ValueError, re.error):
            raise ArgumentError(
                f'format: {self.format!r:.60} is none of Python\'s strptime, such as "%d.%m.%Y"'
            ) from None

    def _refuse_values(self, key: str) -> None:
        values = field_values(self)[key]
        if values is None:
            return
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ArgumentError(f"{key}: must be a list of texts or numbers that is not empty")
        if not all(isinstance(value, (str, bool, int, float)) for value in values):
            raise ArgumentError(f"{key}: must be a list of texts or numbers")
        object.__setattr__(self, key, tuple(values))

    @property
    def column_kind(self) -> ColumnKind:
        """What reads the cells."""
        return KINDS[self.kind]

    @property
    def keys(self) -> list[str]:
        """Which of its attributes are declared."""
        values = field_values(self)
        return [key.name for key in fields(self) if values[key.name] != key.default]

    @property
    def unclear(self) -> str | None:
        """What else must be declared before cells are read; None if nothing is missing.

        >>> print(Declared(kind="date", format="%d.%m.%y").unclear)
        two_digit_years_from: a format with %y needs the first of its hundred years, such as two_digit_years_from = 1920
        """
        if self._two_digits and self.two_digit_years_from is None:
            return (
                "two_digit_years_from: a format with %y needs the first of its hundred years, such as "
                "two_digit_years_from = 1920"
            )
        return None

    @property
    def _two_digits(self) -> bool:
        return self.format is not None and _TWO_DIGITS.match(self.format) is not None

    @cached_property
    def zone(self) -> tzinfo | None:
        """The time zone of cells without an offset; None for UTC."""
        if self.time_zone is None:
            return None
        offset = _OFFSET.fullmatch(self.time_zone)
        if offset is not None:
            return timezone(timedelta(minutes=int(offset[1] + "1") * (60 * int(offset[2]) + int(offset[3]))))
        try:
            return ZoneInfo(self.time_zone)
        except (LookupError, ValueError, OSError):
            raise ArgumentError(
                f'time_zone: {self.time_zone!r:.60} is no name of the IANA database, such as "Europe/Berlin", nor '
                'an offset such as "+01:00"; a machine without that database needs the package tzdata'
            ) from None

    def read(self, cells: Any) -> Array:
        """The cells as numbers, NaN for one that is missing or cannot be read, shape (cells,).

        Each value comes from its own cell, and no content makes it raise. Dates are seconds since 1970 in UTC and
        durations are seconds. Raises `TypeError` for a column whose type is another kind's.
        """
        cells = column_of(cells)
        values = self.column_kind.read(cells, self)
        if not self.missing_values:
            return values
        absent = self._missing_numbers
        if cells.dtype.kind == "f":  # a float32 is none of the float64 that was declared
            with np.errstate(over="ignore"):
                absent = absent.astype(cells.dtype)
        return np.where(np.isin(values, absent), np.nan, values)

    @cached_property
    def _missing_cells(self) -> NDArray[Any]:
        return column_of([form for value in self.missing_values or () for form in (value, str(value))])

    @cached_property
    def _missing_numbers(self) -> Array:
        """What stands for no value, as the kind reads it: -99 however it is written."""
        return self.column_kind.read(self._missing_cells, self)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values of `block`."""
        ticks = self.column_kind.ticks
        if ticks is None:
            return np.dtype(np.float64)
        return np.dtype(np.int64) if ticks.unit is None else stamp_type(ticks.unit)

    def block(self, cells: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The cells for order statistics, and which of them are there; None if NaN says so.

        Dates are time stamps in microseconds in UTC, integers and booleans are int64, other kinds float64.
        """
        cells, ticks = column_of(cells), self.column_kind.ticks
        if ticks is None:
            return self.read(cells), None
        values, present = ticks.read(cells, self)
        if self.missing_values:
            absent, known = ticks.read(self._missing_cells, self)
            present = present & ~np.isin(values, absent[known])
        return values.view(self.dtype), present

    @property
    def widest(self) -> tuple[float, float]:
        """The bounds of any such column; of dates with two digits of the year, the days of their hundred years."""
        first = self.two_digit_years_from
        if first is None:
            return self.column_kind.widest
        ends = (datetime(first, 1, 1), datetime(first + 99, 12, 31))
        low, high = (end.replace(tzinfo=self.zone or UTC).timestamp() for end in ends)
        return low, high

    def category(self, cell: Any) -> Any:
        """`tables.categories.category` of a cell as it is declared: the empty text for a missing one."""
        named = category(cell, exact=self.unicode == "exact")
        return "" if named in self._missing_names else named

    def is_missing(self, cell: Any) -> bool:
        """Whether a cell has no value: it is empty, says so by itself ("NA", "null"), or is declared to."""
        return is_missing_text(cell) or self.category(cell) == ""

    @cached_property
    def _missing_names(self) -> frozenset[Any]:
        return frozenset(category(value, exact=self.unicode == "exact") for value in self.missing_values or ())


def other_dates(cells: Iterable[Any], values: Array) -> int:
    """How many texts look like a date and were read as none: "01/02/2024" is not in ISO 8601.

    >>> cells = ["01/02/2024", "2024-01-02", "1.2.24 13:00", "x", "12"]
    >>> other_dates(cells, Declared(kind="date").read(cells))
    2
    """
    lost = (cell for cell, value in zip(cells, values, strict=True) if np.isnan(value) and isinstance(cell, str))
    return sum(_OTHER_DATE.fullmatch(cell.strip()) is not None for cell in lost)
