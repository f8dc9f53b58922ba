"""Columns in memory of types that are seldom seen."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from tests.tables.table_cases.case import NAN, Case, seconds
from tests.tables.table_cases.frames import BOTH_REFUSE, arrow, backed, held, objects, of_pandas, pandas, polars
from tests.tables.table_cases.moments import days, held as moments


def extension(kind: str, cells: list[Any], storage: str, *options: Any) -> Any:
    import pyarrow as pa

    return pa.ExtensionArray.from_storage(getattr(pa, kind)(), arrow(cells, storage, *options))


def frame(**options: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(**options)


def one_of_levels() -> Any:
    import pandas as pd

    return pd.DataFrame([[1.5], [2.5]], columns=pd.MultiIndex.from_tuples([("a", "x")]))[("a", "x")]


def index(*options: Any, kind: str = "Index") -> Any:
    import pandas as pd

    return getattr(pd, kind)(*options)


def dictionary_with_null() -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array([1.5, None, 3.0]))


def text_dictionary_with_null() -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", None, "b"]))


STAMP = datetime(2024, 1, 1, 12)

CASES = (
    moments(
        "stamps in steps of ten seconds",
        "apache/arrow#39756",
        lambda: np.array(["2012-01-01T00:00:10", "NaT"], "M8[10s]"),
        days("2012-01-01T00:00:10", ""),
    ),
    moments(
        "stamps in steps of six hours",
        "pandas-dev/pandas#25611",
        lambda: np.array(["2019-01-01"], "M8[6h]"),
        days("2019-01-01"),
    ),
    moments(
        "stamps in steps of many days",
        "numpy/numpy#32688",
        lambda: np.array([1, 0], "M8[213504D]"),
        (213504 * 86400.0, 0),
    ),
    moments("stamps beyond all years", "numpy/numpy#22346", lambda: np.array([-(2**63) + 1], "M8[s]"), (-(2.0**63),)),
    moments(
        "stamps in attoseconds",
        "pandas-dev/pandas#63419",
        lambda: np.array([5 * 10**17, -(10**18)], "M8[as]"),
        (0.5, -1),
    ),
    moments("stamps in weeks", "numpy/numpy#13188", lambda: np.array(["2024-01-04"], "M8[W]"), days("2024-01-04")),
    moments(
        "stamps in years",
        "numpy/numpy#13188",
        lambda: np.array(["1969", "2400"], "M8[Y]"),
        days("1969-01-01", "2400-01-01"),
    ),
    moments(
        "stamps without a unit",
        "quantopian/libpy#41",
        lambda: np.array(["NaT", "NaT"], "M8"),
        (NAN, NAN),
        refused={"predict": "no cell"},
    ),
    moments(
        "a mask over stamps",
        "pandas-dev/pandas#38399",
        lambda: np.ma.array(np.array(["2024-01-01"] * 2, "M8[D]"), mask=[False, True]),
        days("2024-01-01", ""),
    ),
    held(
        "doubles beyond doubles",
        "RayforceDB/rayforce-py#18",
        lambda: np.array(["1e400", "-1e400", "1e-4000"], np.longdouble),
        (math.inf, -math.inf, 0),
    ),
    held("every second cell", "apache/arrow-rs#6152", lambda: np.arange(6.0)[::2], (0, 2, 4)),
    held("cells from the end", "apache/arrow-rs#6152", lambda: np.arange(3)[::-1], (2, 1, 0)),
    held("one cell for many", "apache/arrow#39790", lambda: np.broadcast_to(np.float32(1.5), 3), (1.5, 1.5, 1.5)),
    held(
        "cells that cannot be written",
        "pandas-dev/pandas#24574",
        lambda: np.frombuffer(np.array([1.5, 2]).tobytes()),
        (1.5, 2),
    ),
    held(
        "halves that are infinite",
        "apache/arrow#2691",
        lambda: np.array([np.inf, 65504], np.float16),
        (math.inf, 65504),
    ),
    held(
        "a number without a dimension",
        "pola-rs/polars#9783",
        lambda: np.array(1.5),
        BOTH_REFUSE + "|one-dimensional|sequence",
    ),
    held("raw bytes", "pybind/pybind11#2091", lambda: np.zeros(2, "V4"), BOTH_REFUSE + "|records"),
    held(
        "text with a mark of its own for missing",
        "scikit-learn/scikit-learn#33392",
        lambda: np.array(["1.5", np.nan], np.dtypes.StringDType(na_object=np.nan)),
        (1.5, NAN),
    ),
    held(
        "arrays among objects", "pandas-dev/pandas#9381", lambda: objects(np.array(5), np.array([6]), 7), (NAN, NAN, 7)
    ),
    held("booleans and None", "pandas-dev/pandas#30792", lambda: objects(True, False, None), (1, 0, NAN)),
    held(
        "NaN that a division made",
        "pandas-dev/pandas#60564",
        lambda: backed([0.0, math.nan, None], "float64"),
        (0, NAN, NAN),
    ),
    held(
        "NaN in a column that may be missing",
        "pandas-dev/pandas#60106",
        lambda: pandas([0.0, None], "Float64") / pandas([0.0, 1.0], "Float64"),
        (NAN, NAN),
        refused={"predict": "no cell"},
    ),
    held("singles that may be missing", "pandas-dev/pandas#55668", lambda: pandas([0.5, None], "Float32"), (0.5, NAN)),
    held("a column below two names", "pandas-dev/pandas#29749", one_of_levels, (1.5, 2.5)),
    held(
        "two columns of one name",
        "pandas-dev/pandas#21309",
        lambda: frame(data=[[1, 2]], columns=["x", "x"])["x"],
        "must have one column|no cell",
    ),
    held("an index", "pandas-dev/pandas#29749", lambda: index([1.5, math.nan]), (1.5, NAN)),
    held("an index of a range", "pandas-dev/pandas#29749", lambda: index(3, kind="RangeIndex"), (0, 1, 2)),
    held(
        "pandas' own missing value among objects",
        "pandas-dev/pandas#59122",
        lambda: pandas([1, __import__("pandas").NA, 3], object),
        (1, NAN, 3),
    ),
    held(
        "intervals for categories",
        "scikit-learn/scikit-learn#25814",
        lambda: of_pandas("cut", [1, 2], [0, 1, 2]),
        BOTH_REFUSE + "|categories must hold numbers",
    ),
    held(
        "booleans for categories of pandas",
        "lightgbm-org/LightGBM#1226",
        lambda: pandas([True, None, False], "category"),
        (1, NAN, 0),
    ),
    held(
        "text of Python in pandas",
        "pandas-dev/pandas#49026",
        lambda: pandas(["1.5", None, "x"], "string[python]"),
        (1.5, NAN, NAN),
    ),
    held(
        "decimals of 256 bits of pandas by Arrow",
        "duckdb/duckdb#5306",
        lambda: backed([Decimal("0.1"), None], "decimal256", 50, 1),
        (0.1, NAN),
    ),
    held(
        "a dictionary of pandas by Arrow",
        "apache/arrow#6284",
        lambda: __import__("pandas").Series(
            __import__("pandas").arrays.ArrowExtensionArray(arrow([1.5, None, 1.5], "float64").dictionary_encode())
        ),
        (1.5, NAN, 1.5),
    ),
    held(
        "lists of pandas by Arrow",
        "pandas-dev/pandas#9381",
        lambda: backed([[1], None], "list_", arrow([], "int64").type),
        BOTH_REFUSE,
    ),
    moments(
        "stamps of pandas by Arrow",
        "apache/arrow#287",
        lambda: backed([STAMP, None], "timestamp", "ns", "Asia/Tokyo"),
        (seconds("2024-01-01T12:00"), NAN),
    ),
    moments(
        "days of pandas by Arrow",
        "apache/arrow#36084",
        lambda: backed([date(2024, 1, 1), None], "date32"),
        days("2024-01-01", ""),
    ),
    moments(
        "categories of stamps",
        "pandas-dev/pandas#18574",
        lambda: pandas(np.array(["2024-01-01", "NaT"], "M8[ns]"), "category"),
        days("2024-01-01", ""),
        refused={"median": "categor|timestamps"},
    ),
    moments(
        "an index of stamps",
        "pandas-dev/pandas#11481",
        lambda: index(["2024-01-01", None], kind="DatetimeIndex"),
        days("2024-01-01", ""),
    ),
    moments(
        "moments of two time zones among objects",
        "pandas-dev/pandas#14402",
        lambda: objects(datetime(2024, 1, 1, tzinfo=UTC), datetime.fromisoformat("2024-01-01T00:00+02:00")),
        (seconds("2024-01-01"), seconds("2024-01-01") - 7200),
        refused={"median": "integers"},
    ),
    moments(
        "durations that are negative",
        "pandas-dev/pandas#17037",
        lambda: of_pandas("to_timedelta", ["-1 days +23:00:00", None]),
        (-3600, NAN),
        kind="duration",
        refused={"median": "timedelta"},
    ),
    held(
        "decimals of 32 bits",
        "pola-rs/polars#22946",
        lambda: arrow([Decimal("100.1"), None], "decimal32", 4, 1),
        (100.1, NAN),
    ),
    held(
        "decimals of 64 bits",
        "apache/arrow#45570",
        lambda: arrow([Decimal("3.14"), Decimal("-0.01")], "decimal64", 10, 2),
        (3.14, -0.01),
    ),
    held(
        "decimals with places before the point",
        "apache/arrow#13353",
        lambda: arrow([Decimal("1200"), None], "decimal128", 5, -2),
        (1200, NAN),
    ),
    held("booleans of eight bits", "apache/arrow#43488", lambda: extension("bool8", [1, 0, None], "int8"), (1, 0, NAN)),
    held(
        "identities of 128 bits",
        "apache/arrow#50325",
        lambda: extension("uuid", [b"0123456789abcdef"], "binary", 16),
        BOTH_REFUSE,
    ),
    held("text of JSON", "duckdb/duckdb#17857", lambda: extension("json_", ["1.5", None], "string"), (1.5, NAN)),
    held("a missing value within a dictionary", "apache/arrow#10101", dictionary_with_null, (1.5, NAN, NAN, 3)),
    held(
        "long text of Arrow",
        "apache/arrow#44195",
        lambda: arrow(["1e3", None, "1e400"], "large_string"),
        (1000, NAN, math.inf),
    ),
    held(
        "months, days and nanoseconds",
        "apache/arrow#551",
        lambda: arrow([(1, 2, 3)], "month_day_nano_interval"),
        BOTH_REFUSE,
    ),
    held("seconds of the day", "duckdb/duckdb#23767", lambda: arrow([time(1)], "time32", "s"), BOTH_REFUSE),
    held(
        "lists of one length",
        "pola-rs/polars#16358",
        lambda: arrow([[1.0]], "list_", arrow([], "float64").type, 1),
        BOTH_REFUSE,
    ),
    moments(
        "stamps near the end of nanoseconds",
        "apache/arrow#1054",
        lambda: arrow([2**63 - 1, -(2**63) + 1], "timestamp", "ns"),
        ((2**63 - 1) / 1e9, -(2**63 - 1) / 1e9),
    ),
    Case(
        name="a missing text within a dictionary",
        thread="apache/arrow#10101",
        make=text_dictionary_with_null,
        want=(1, 1),
        in_memory=True,
        kind="category",
        categories=("a", "b"),
    ),
    held(
        "decimals of polars of all digits",
        "pola-rs/polars#17498",
        lambda: polars([Decimal("0.1"), Decimal("123456789012345678901234567.8")], "Decimal", 38, 10),
        (0.1, 123456789012345678901234567.8),
    ),
    held(
        "the largest integer of polars",
        "pola-rs/polars#17113",
        lambda: polars([2**64 - 1, None], "UInt64"),
        (2.0**64, NAN),
    ),
    held("bytes of polars", "pola-rs/polars#9783", lambda: polars([b"1.5", None, b"\xff"], "Binary"), (1.5, NAN, NAN)),
    held("times of polars", "pola-rs/polars#9783", lambda: polars([time(1), None], "Time"), BOTH_REFUSE),
    held(
        "fields of polars",
        "pola-rs/polars#16358",
        lambda: __import__("polars").Series([{"a": 1}]),
        BOTH_REFUSE + "|one column|must be numbers",
    ),
    moments(
        "durations of polars",
        "pola-rs/polars#9783",
        lambda: polars([timedelta(minutes=90), None], "Duration", "us"),
        (5400, NAN),
        kind="duration",
        refused={"median": "duration"},
    ),
    moments(
        "stamps of polars in Berlin",
        "duckdb/duckdb#6466",
        lambda: polars([datetime(2024, 7, 1, 12, tzinfo=UTC), None], "Datetime", "ns", "Europe/Berlin"),
        days("2024-07-01T12:00", ""),
    ),
)
