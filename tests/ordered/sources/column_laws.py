"""What one row may do to a column: nothing but be there. The same check for every engine and container."""

from __future__ import annotations

import csv
import datetime
import math
import sqlite3
import uuid
from decimal import Decimal

import numpy as np

from dpselect.ordered import open_column
from dpselect.ordered.sources.declared import Column

ORDINARY = 1000

TEXTS = [
    "", " ", "x", "NaN", "nan", "inf", "-inf", "1e400", "1_0", "٣", "null", "None", "now", "infinity", "9" * 5000,
    "2024-01-01", "a\0b", '"', "'", ";--", ",", "\n", "\r", "\ud800", "\U0001f600", "a" * 140_000, "low", "LOW", "low ",
]  # fmt: skip
WHOLE = [0, -1, 1, 2**7, 2**15, 2**31, 2**52 + 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]
REAL = [0.0, -0.0, 0.1, 1e-320, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan]
HUGE = [10**40, 10**400, -(10**400)]


class Hostile:
    """A cell whose every method fails."""

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __ne__(self, other):
        raise RuntimeError("secret")

    __hash__ = __index__ = __float__ = __str__ = __eq__


OBJECTS = [
    None, *TEXTS, *WHOLE, *REAL, *HUGE, b"\xff", True, Decimal("1e999999"), Decimal("sNaN"), Decimal("NaN"), 1 + 2j,
    [1, 2], {}, {1}, object, Hostile(), uuid.UUID(int=1), datetime.date.min, datetime.datetime.max,
    datetime.timedelta.max,
    np.datetime64("NaT"), np.timedelta64(1, "s"), np.float128(1) if hasattr(np, "float128") else 1, np.array([1, 2]),
]  # fmt: skip


def ranks(values, **public):
    """Rows of each code, and the domain they are codes of: all that the law of an answer depends on; then of each fate.

    The rows that have a code are those with a value, clipped or not.
    """
    declared = Column(values, **public)
    column = declared.ranked()
    counted = not declared.assume_sorted and declared.weights is None
    fates = tuple(declared.fates().tolist()) if counted else None
    assert fates is None or sum(fates[:3]) == column.total
    window = column.window(1, max(column.total, 1))
    assert window.before == window.after == 0
    assert int(np.sum(window.counts)) == column.total
    return declared.domain, dict(zip(map(int, window.codes), map(int, window.counts), strict=True)), fates


def at_most_one_more(before, after):
    """The same domain, and every row as it was: one row more at some code, or none where the new one is missing."""
    assert before[0] == after[0]
    changed = {code: after[1].get(code, 0) - before[1].get(code, 0) for code in {*before[1], *after[1]}}
    assert sorted(filter(None, changed.values())) in ([], [1]), changed
    if before[2] is not None:
        moved = [more - less for less, more in zip(before[2], after[2], strict=True)]
        assert sorted(moved) == [0, 0, 0, 0, 1], moved


NUMBERS = ({"lower": 0, "upper": 5000}, {"lower": -1e300, "upper": 1e300, "granularity": "float64"})
WHOLE_NUMBERS = (
    {"lower": 0, "upper": 2**70},
    {"lower": -(2**70), "upper": 90},
    {"lower": 0, "upper": 9000, "granularity": 0.5},
)
MOMENTS = ({"lower": "2024-01-01", "upper": "2026-01-01", "granularity": np.timedelta64(1, "D")},)
GRADES = ({"lower": None, "upper": None, "categories": ["low", "middle", "high"]},)


def bounds_for(kind):
    return {"f": NUMBERS, "i": WHOLE_NUMBERS, "u": WHOLE_NUMBERS, "O": WHOLE_NUMBERS, "M": MOMENTS, "T": GRADES}[kind]


def csv_file(path, cells):
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        writer = csv.writer(file)
        writer.writerow(["other", "x"])
        writer.writerows([1, cell] for cell in cells)
    return path


def sqlite_table(path, kind, cells):
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", ([cell] for cell in cells))
    connection.close()
    return f"sqlite:///{path}"


def ranks_of_table(url, public, table="t"):
    with open_column(url, "x", table=table) as source:
        return ranks(source, **public)
