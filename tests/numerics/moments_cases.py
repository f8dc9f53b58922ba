"""Moments of every unit, computed with integers."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
LENGTHS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60} | {u: Fraction(1, 1000**k) for k, u in enumerate(UNITS[6:])}
NAT = -(1 << 63)
LAST = (1 << 63) - 1
EPOCH = datetime.date(1970, 1, 1).toordinal()


def days_to(months):
    """From 1970 to a month counted from January 1970, by Python's calendar, which repeats after 400 years."""
    cycles, rest = divmod(months + 23_628, 4800)  # from the year 1
    day = datetime.date(rest // 12 + 1, rest % 12 + 1, 1).toordinal()
    return cycles * 146_097 + day - EPOCH


def begin(tick, unit):
    """Seconds from 1970, exactly."""
    if unit in ("Y", "M"):
        return Fraction(days_to(tick * (12 if unit == "Y" else 1)) * 86_400)
    return tick * Fraction(LENGTHS[unit])


def stamps(ticks, unit):
    return np.array(ticks, dtype=np.int64).view(f"M8[{unit}]")


def of_arrow(ticks, unit, zone=None):
    pa = pytest.importorskip("pyarrow")
    plain = pa.array([None if tick == NAT else tick for tick in ticks], pa.int64())
    return plain.view(pa.timestamp(unit, tz=zone))


def spark_file(path, days):
    """Time stamps of 96 bits."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    column = pa.array([None if day is None else day * 86_400 * 10**6 for day in days], pa.int64()).view(
        pa.timestamp("us")
    )
    table = pa.table({"x": column})
    pyarrow.parquet.write_table(table, path, use_deprecated_int96_timestamps=True)
    return path
