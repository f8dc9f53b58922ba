"""Dates: formats, time zones, offsets, and years of two digits."""

import datetime
import math
import random
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.tables import Declared
from tests.tables.object_columns import objects


def test_formats_with_an_offset_are_read_and_with_a_name_of_a_zone_refused():
    offsets = Declared(kind="date", format="%Y-%m-%d %H:%M %z").read(["2024-01-02 03:04 +0200", "2024-01-02 01:04 Z"])
    assert offsets[0] == offsets[1]
    with pytest.raises(ArgumentError, match="%Z is read otherwise on each machine"):
        Declared(kind="date", format="%Y-%m-%d %Z")


BERLIN = "Europe/Berlin"
MOMENTS = [
    datetime.datetime(1900, 1, 1) + datetime.timedelta(seconds=random.Random(7).randrange(0, 199 * 31_556_952) + step)
    for step in range(0, 10**8, 50_000)
]


@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M%S", "%d-%b-%Y %H:%M:%S"])
def test_dates_of_a_format_are_those_of_pandas(form):
    pd = pytest.importorskip("pandas")
    texts = [moment.strftime(form) for moment in MOMENTS]
    expected = pd.to_datetime(pd.Series(texts), format=form).to_numpy().astype("M8[s]").astype(np.int64)
    assert Declared(kind="date", format=form).read(texts).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "zone", [BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca"]
)
def test_times_of_a_zone_are_those_of_zoneinfo(zone):
    declared = Declared(kind="timestamp", time_zone=zone)
    hours = [
        datetime.datetime(2024, month, 1) + datetime.timedelta(minutes=30 * k) for month in (3, 10) for k in range(1500)
    ]
    moments = [*MOMENTS[:500], *hours]
    expected = [moment.replace(tzinfo=ZoneInfo(zone)).timestamp() for moment in moments]
    assert declared.read([moment.isoformat() for moment in moments]).tolist() == expected
    assert declared.read(objects(moments)).tolist() == expected
    stamps, present = declared.block([moment.isoformat(" ") for moment in moments])
    assert stamps.dtype == "M8[us]"
    assert present.all()
    assert (stamps.astype(np.int64) / 1e6).tolist() == expected
    with_offset = [moment.isoformat() + "+05:30" for moment in moments]
    assert declared.read(with_offset).tolist() == Declared(kind="date").read(with_offset).tolist()


def test_an_offset_is_a_zone_too():
    assert Declared(kind="date", time_zone="-03:30").read(["2024-01-02", "2024-01-02T00:00Z"]).tolist() == [
        1704166200.0,
        1704153600.0,
    ]


def test_the_hour_that_occurs_twice_is_its_first():
    summer_ends, summer_begins = "2024-10-27T02:30", "2024-03-31T02:30"
    found = Declared(kind="date", time_zone=BERLIN).read([summer_ends, summer_begins])
    utc = Declared(kind="date").read(["2024-10-27T00:30", "2024-03-31T01:30"])
    assert found.tolist() == utc.tolist()


@pytest.mark.parametrize("first", [1, 1900, 1920, 1969, 1999, 2000, 2001, 2024])
def test_two_digits_are_a_year_of_the_declared_hundred(first):
    declared = Declared(kind="date", format="%d.%m.%y", two_digit_years_from=first)
    for day in ("01.03", "29.02"):
        for digits in range(100):
            year = next(year for year in range(first, first + 100) if year % 100 == digits)
            found = declared.read([f"{day}.{digits:02}"])[0]
            try:
                expected = datetime.datetime(year, int(day[3:]), int(day[:2]), tzinfo=datetime.UTC).timestamp()
            except ValueError:  # no leap year
                expected = math.nan
            np.testing.assert_equal(found, expected)
