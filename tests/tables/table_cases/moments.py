"""Dates, time stamps and durations: in text, in memory, with and without a time zone, near the ends of a type."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from tests.tables.table_cases.case import NAN, Case, seconds

NAT = np.datetime64("NaT")
OTHER = "|dates in another form"
NO_DATES = {"study": "no cell that can be read as a date" + OTHER, "quantile": "does not look like dates" + OTHER}


def text(name: str, thread: str, cells: list[str], want: Any, format: str | None = None, **more: Any) -> Case:
    rows = "".join(f'r{place},"{cell}"\n' for place, cell in enumerate(cells))
    return Case(name=name, thread=thread, make=f"id,x\n{rows}", want=want, kind="date", format=format, **more)


def held(name: str, thread: str, make: Any, want: Any, **more: Any) -> Case:
    return Case(name=name, thread=thread, make=make, want=want, kind=more.pop("kind", "date"), in_memory=True, **more)


def days(*texts: str) -> tuple[float, ...]:
    return tuple(NAN if text == "" else seconds(text) for text in texts)


def pandas_stamps(unit: str, zone: str | None = None) -> Any:
    import pandas as pd

    stamps = pd.Series(np.array(["2024-03-31T00:30", "NaT"], dtype=f"M8[{unit}]"))
    return stamps if zone is None else stamps.dt.tz_localize(zone)


def arrow(cells: list[Any], kind: str, *options: Any) -> Any:
    import pyarrow as pa

    return pa.array(cells, getattr(pa, kind)(*options))


def polars(cells: list[Any], kind: str, *options: Any) -> Any:
    import polars as pl

    of = getattr(pl, kind)
    return pl.Series(cells, dtype=of(*options) if options else of)


def pandas_periods() -> Any:
    import pandas as pd

    return pd.Series(pd.period_range("2024-01", "2024-03", freq="M"))


CASES = (
    text("days in ISO 8601", "pandas-dev/pandas#22168", ["2018-04-11", "2018-11-04"], days("2018-04-11", "2018-11-04")),
    text(
        "two blanks within a time stamp",
        "pandas-dev/pandas#22168",
        ["2018-04-11 10:30:00", "2018-04-11  10:30:00"],
        days("2018-04-11T10:30", ""),
    ),
    text(
        "days without hyphens", "pandas-dev/pandas#58859", ["20160311", "2016-03-11"], days("2016-03-11", "2016-03-11")
    ),
    text(
        "time stamps with Z and offsets",
        "pandas-dev/pandas#14402",
        ["2018-10-28T02:30:00+02:00", "2018-10-28T02:30:00+01:00", "2018-10-28T02:30:00Z"],
        days("2018-10-28T00:30", "2018-10-28T01:30", "2018-10-28T02:30"),
    ),
    text(
        "an hour that is there twice, without an offset",
        "pandas-dev/pandas#14585",
        ["2013-10-27 02:15:00", "2013-10-27 02:15:00"],
        days("2013-10-27T02:15", "2013-10-27T02:15"),
    ),
    text(
        "days of Germany that are not declared",
        "pandas-dev/pandas#26304",
        ["12.01.2017 17:18", "01.02.2017 11:12", "15.04.2017 02:40"],
        days("", "", ""),
        refused=NO_DATES,
    ),
    text(
        "days of Germany",
        "pandas-dev/pandas#11725",
        ["29.01.1945", "1.3.1945", "02.03.1945"],
        days("1945-01-29", "1945-03-01", "1945-03-02"),
        "%d.%m.%Y",
    ),
    text(
        "days of America", "pandas-dev/pandas#12501", ["03/01/2016", "13/01/2016"], days("2016-03-01", ""), "%m/%d/%Y"
    ),
    text(
        "the day first, and one row otherwise",
        "pandas-dev/pandas#3341",
        ["13-01-2012", "01-13-2012"],
        days("2012-01-13", ""),
        "%d-%m-%Y",
    ),
    text(
        "the day first in one row",
        "pandas-dev/pandas#27454",
        ["05-01-2019 00:37", "15-01-2019 00:37"],
        days("", ""),
        refused=NO_DATES,
    ),
    text(
        "months in letters",
        "duckdb/duckdb#13923",
        ["31-OCT-2023", "01-Nov-2023"],
        days("2023-10-31", "2023-11-01"),
        "%d-%b-%Y",
    ),
    text(
        "years of two digits",
        "duckdb/duckdb-web#6733",
        ["01/01/68", "01/01/69"],
        days("2068-01-01", "1969-01-01"),
        "%d/%m/%y",
        facts={"two_digit_years_from": 1969},
    ),
    text(
        "years of two digits that are not declared",
        "JuliaLang/julia#30590",
        ["01/01/19", "02/01/19"],
        days("", ""),
        refused=NO_DATES,
    ),
    text(
        "a leap second",
        "arrow-py/arrow#393",
        ["2016-12-31T23:59:60", "2016-12-31T23:59:59"],
        days("", "2016-12-31T23:59:59"),
    ),
    text("24 o'clock", "dateutil/dateutil#658", ["2007-04-05T24:00", "2007-04-06T00:00"], days("", "2007-04-06")),
    text(
        "milliseconds since 1970 for a time stamp",
        "flutter/flutter#43078",
        ["1571791260000", "1571791261000"],
        days("", ""),
        refused=NO_DATES,
    ),
    text(
        "days that are none", "postgresql-interfaces/psqlodbc#198", ["0000-00-00", "2024-02-29"], days("", "2024-02-29")
    ),
    text("an infinity of PostgreSQL", "psycopg/psycopg#1251", ["infinity", "2024-01-01"], days("", "2024-01-01")),
    text(
        "the first and the last day of Python",
        "NVIDIA/cudf#8070",
        ["0001-01-01", "9999-12-31"],
        days("0001-01-01", "9999-12-31"),
    ),
    text("blanks around a day", "mlrun/storey#202", [" 2024-06-01 ", "", "None"], days("2024-06-01", "", "")),
    text(
        "a number of a spreadsheet's days", "h2oai/datatable#1701", ["42008", "42015"], days("", ""), refused=NO_DATES
    ),
    held(
        "stamps in nanoseconds",
        "numpy/numpy#9956",
        lambda: np.array(["1969-12-31T23:59:59.5", "NaT"], "M8[ns]"),
        (-0.5, NAN),
    ),
    held(
        "stamps in days beyond nanoseconds",
        "apache/arrow#36084",
        lambda: np.array(["2400-01-01", "1500-06-01"], "M8[D]"),
        days("2400-01-01", "1500-06-01"),
    ),
    held(
        "stamps in hours beyond nanoseconds",
        "numpy/numpy#16352",
        lambda: np.array(["2367-12-31T12"], "M8[h]"),
        days("2367-12-31T12:00"),
    ),
    held(
        "stamps in months",
        "pola-rs/polars#9783",
        lambda: np.array(["2011-03", "1969-12"], "M8[M]"),
        days("2011-03-01", "1969-12-01"),
    ),
    held(
        "stamps of another byte order",
        "pandas-dev/pandas#53234",
        lambda: np.array(["2011-03-01"], ">M8[s]"),
        days("2011-03-01"),
    ),
    held(
        "stamps of pandas in seconds",
        "pandas-dev/pandas#66218",
        lambda: pandas_stamps("s"),
        days("2024-03-31T00:30", ""),
    ),
    held(
        "stamps of pandas in a time zone",
        "pandas-dev/pandas#11481",
        lambda: pandas_stamps("us", "Europe/Prague"),
        days("2024-03-30T23:30", ""),
    ),
    held(
        "stamps of Arrow in a time zone",
        "apache/arrow#287",
        lambda: arrow([0, None], "timestamp", "s", "America/Chicago"),
        (0, NAN),
    ),
    held(
        "days of Arrow", "apache/arrow#36084", lambda: arrow([date(2400, 1, 1), None], "date32"), days("2400-01-01", "")
    ),
    held(
        "days of Arrow in milliseconds",
        "apache/arrow#36084",
        lambda: arrow([date(2400, 1, 1), None], "date64"),
        days("2400-01-01", ""),
    ),
    held(
        "stamps of polars",
        "pola-rs/polars#9783",
        lambda: polars([datetime(2011, 3, 20), None], "Datetime", "ms"),
        days("2011-03-20", ""),
    ),
    held(
        "stamps of polars in a time zone",
        "duckdb/duckdb#6466",
        lambda: polars([datetime(2011, 3, 20), None], "Datetime", "us", "UTC"),
        days("2011-03-20", ""),
    ),
    held(
        "days of polars",
        "pola-rs/polars#9783",
        lambda: polars([date(2011, 3, 20), None], "Date"),
        days("2011-03-20", ""),
    ),
    held(
        "a list of datetimes",
        "DASDAE/dascore#927",
        lambda: [datetime(2024, 1, 1), None],
        days("2024-01-01", ""),
        refused={"median": "array of their type"},
    ),
    held(
        "text of days in memory",
        "duckdb/duckdb#15473",
        lambda: np.array(["2024-01-01", "x"], dtype=object),
        days("2024-01-01", ""),
        refused={"median": "integers"},
    ),
    held(
        "periods are no moments",
        "pandas-dev/pandas#55151",
        pandas_periods,
        days("", "", ""),
        refused={"predict": "no cell that can be read as a date|dates in another form", "median": "period"},
    ),
    held(
        "durations of NumPy",
        "pandas-dev/pandas#17037",
        lambda: np.array([90, "NaT"], "m8[m]"),
        (5400, NAN),
        kind="duration",
        refused={"median": "timedelta"},
    ),
    held(
        "durations of Arrow",
        "pandas-dev/pandas#52843",
        lambda: arrow([timedelta(minutes=90), None], "duration", "ns"),
        (5400, NAN),
        kind="duration",
        refused={"median": "duration"},
    ),
    held(
        "durations of Python",
        "apache/arrow#13718",
        lambda: [timedelta(days=1, seconds=1), None],
        (86401, NAN),
        kind="duration",
        refused={"median": "list must hold numbers"},
    ),
    held(
        "durations are not numbers",
        "streamlit/streamlit#16722",
        lambda: np.array([5], "m8[s]"),
        "holds dates or durations|timedelta",
        kind="number",
    ),
    Case(
        name="durations in text",
        thread="apache/arrow#5566",
        want=(86400 + 7200, 5400, NAN),
        kind="duration",
        make='id,x\na,"1 days 02:00:00"\nb,01:30:00\nc,\n',
    ),
)
