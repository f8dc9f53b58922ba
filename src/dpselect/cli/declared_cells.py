"""Bounds and answers of a column, read and printed as its cells are declared."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from dpselect.cli.options import number_in
from dpselect.errors import ArgumentError
from dpselect.numerics.moments import instant_of
from dpselect.tables import Declared, Written

__all__ = ["bound_in", "in_zone", "refuse_grouped", "shown"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = 10**12
_WRITTEN: Final = len("2020-01-01T00:00:00.000000")
_LIKE: Final = {
    "M": "a timestamp",
    "duration": "a duration such as 1:30:00, or a number of seconds",
    "boolean": "true or false",
}


def bound_in(flag: str, text: str | None, code: str, declared: Declared) -> Any:
    """The bound that someone typed, for a column whose values have a type of this code.

    A date may be written in the declared format or in ISO 8601. Without an offset it is in the declared time zone.
    Raises `ArgumentError`.
    """
    if text is None:
        return None
    kind = declared.kind
    if code == "M" and declared.time_zone is None and declared.format is None:
        value: Any = None if _or_none(instant_of, text) is None else text
    elif code == "M":
        forms = (declared, replace(declared, format=None, two_digit_years_from=None))
        blocks = (replace(form, missing_values=None).block([text]) for form in forms)
        value = next((values[0] for values, present in blocks if present is not None and present[0]), None)
    elif kind in ("duration", "boolean"):
        found = replace(declared, missing_values=None).read([text])[0]
        value = None if np.isnan(found) else found if kind == "duration" else int(found)
    else:
        value = _or_none(number_in, text)
    if value is None:
        wanted = _LIKE.get("M" if code == "M" else kind, "a number")
        raise ArgumentError(f"{flag} must be {wanted}, got {text!r}")
    return value


def in_zone(declared: Declared, zone: str | None) -> Declared:
    """The declaration of a column, with the time zone of its type if none is declared.

    A zone that this machine does not know is shown in UTC.
    """
    if zone is None or declared.time_zone is not None:
        return declared
    for name in (zone, "UTC"):
        with suppress(ArgumentError):
            return replace(declared, kind="timestamp", time_zone=name)
    return declared


def refuse_grouped(flag: str, text: str | None, form: Written) -> None:
    """Raise `ArgumentError` for a bound such as 20.000 (which is 20) if 20.000 is 20000 in the cells."""
    grouped = text is not None and re.fullmatch(r"\s*-?\d{1,3}(\.\d{3})+\s*", text)
    if text is not None and grouped and (form.decimal == "," or form.thousands == "."):
        whole = text.strip().replace(".", "")
        raise ArgumentError(
            f"{flag}: {text!r} may be {whole} or a decimal: write {whole}, or another number of decimals"
        )


def _or_none(read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValueError:
        return None


def shown(value: Any, declared: Declared, like: str | None) -> Any:
    """An answer as it is printed: in the declared time zone, and a duration as the bound `like` was written."""
    if isinstance(value, np.datetime64):
        return str(value) if declared.zone is None else _local(value, declared)
    if value is None or isinstance(value, str):
        return value
    if declared.kind == "boolean":
        return bool(value)
    if declared.kind == "duration" and like is not None and not re.fullmatch(r"[\d.eE+-]+", like.strip()):
        return str(timedelta(seconds=float(value)))
    return value


def _local(value: np.datetime64, declared: Declared) -> str:
    instant = instant_of(value)
    try:
        moment = _EPOCH + timedelta(microseconds=(instant or 0) // _MICROSECOND)
        local = moment.astimezone(declared.zone)
        part = (instant or 0) % _MICROSECOND // 10**9
        if not part:
            return local.isoformat()
        written = local.isoformat(timespec="microseconds")
        return f"{written[:_WRITTEN]}{part:03}{written[_WRITTEN:]}"
    except OverflowError:  # a year that Python's calendar does not have
        return f"{value}Z"
