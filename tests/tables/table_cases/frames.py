"""Columns of numbers in memory: NumPy, pandas, polars, Arrow, lists."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tests.tables.table_cases.case import NAN, Case

BOTH_REFUSE = (
    "no cell that can be read|values must be numbers|is not read|must be a column|sequence of cells|not 1-D|2D array"
)


def held(name: str, thread: str, make: Callable[[], Any], want: Any, **more: Any) -> Case:
    return Case(name=name, thread=thread, make=make, want=want, in_memory=True, **more)


def pandas(cells: list[Any], kind: Any) -> Any:
    import pandas as pd

    return pd.Series(cells, dtype=kind)


def categorical(codes: list[int], categories: list[Any]) -> Any:
    import pandas as pd

    return pd.Series(pd.Categorical.from_codes(codes, categories))


def sparse(cells: list[Any], fill: Any) -> Any:
    import pandas as pd

    return pd.Series(pd.arrays.SparseArray(cells, fill_value=fill))


def backed(cells: list[Any], kind: str, *options: Any) -> Any:
    import pandas as pd

    return pd.Series(pd.arrays.ArrowExtensionArray(arrow(cells, kind, *options)))


def of_pandas(make: str, *options: Any, **more: Any) -> Any:
    import pandas as pd

    return pd.Series(getattr(pd, make)(*options, **more))


def arrow(cells: list[Any], kind: str, *options: Any) -> Any:
    import pyarrow as pa

    return pa.array(cells, getattr(pa, kind)(*options))


def arrow_dictionary(cells: list[Any], kind: str) -> Any:
    return arrow(cells, kind).dictionary_encode()


def arrow_chunks(*chunks: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array(list(chunks))


def run_ends() -> Any:
    import pyarrow as pa

    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([1.5, None]))


def polars(cells: list[Any], kind: str, *options: Any) -> Any:
    import polars as pl

    of = getattr(pl, kind)
    return pl.Series(cells, dtype=of(*options) if options else of)


def objects(*cells: Any) -> Any:
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found


def masked(hard: bool) -> Any:
    return np.ma.array([1.0, 2.0, 1e20], mask=[True, False, True], hard_mask=hard)


def records() -> Any:
    return np.array([(1, (1, 2)), (7, (3, 4))], dtype=[("k", "i4"), ("v", "i4", 2)])


def masked_records() -> Any:
    kind = [("a", int), ("b", float)]
    return np.ma.array([(1, 2.2), (42, 5.5)], dtype=kind, mask=[(True, False), (False, True)])["b"]


WHOLE = {"median": "give doubles"}
"""An array of objects is a column of integers there."""

CASES = (
    held("integers that may be missing", "numpy/numpy#17659", lambda: pandas([1, None, 3], "UInt8"), (1, NAN, 3)),
    held(
        "long integers that may be missing",
        "pandas-dev/pandas#30038",
        lambda: pandas([2**53 + 1, None], "Int64"),
        (2.0**53, NAN),
    ),
    held(
        "doubles that may be missing, and NaN",
        "deephaven/deephaven-core#4237",
        lambda: pandas([1.5, None, math.nan], "Float64"),
        (1.5, NAN, NAN),
    ),
    held(
        "booleans that may be missing",
        "pandas-dev/pandas#30792",
        lambda: pandas([True, None, False], "boolean"),
        (1, NAN, 0),
    ),
    held(
        "integers for categories",
        "pandas-dev/pandas#21767",
        lambda: categorical([0, -1, 2], [10, 20, 30]),
        (10, NAN, 30),
    ),
    held(
        "doubles for categories",
        "scikit-learn-contrib/category_encoders#244",
        lambda: categorical([1, -1, 0], [0.5, 1.5]),
        (1.5, NAN, 0.5),
    ),
    held(
        "text of numbers for categories",
        "lightgbm-org/LightGBM#1226",
        lambda: categorical([1, 0, -1], ["3", "1.5"]),
        (1.5, 3, NAN),
    ),
    held(
        "no categories",
        "pola-rs/polars#14582",
        lambda: categorical([-1, -1], [0]),
        (NAN, NAN),
        refused={"predict": "no cell that can be read"},
    ),
    held("zeros that are left out", "pandas-dev/pandas#29231", lambda: sparse([0, 1, 0, 1], 0), (0, 1, 0, 1)),
    held(
        "missing numbers that are left out", "numpy/numpy#14783", lambda: sparse([math.nan, 2.5], math.nan), (NAN, 2.5)
    ),
    held("ones that are left out", "pandas-dev/pandas#24817", lambda: sparse([1, 1, 1, 2], 1), (1, 1, 1, 2)),
    held("booleans that are left out", "pandas-dev/pandas#59063", lambda: sparse([False, True], False), (0, 1)),
    held(
        "text of numbers in pandas 3",
        "pandas-dev/pandas#49026",
        lambda: pandas(["1.5", "2", None, "x"], "str"),
        (1.5, 2, NAN, NAN),
    ),
    held(
        "text of numbers by Arrow",
        "scikit-learn/scikit-learn#29291",
        lambda: pandas(["18", "25", None], "string[pyarrow]"),
        (18, 25, NAN),
    ),
    held("objects that mix text and numbers", "NVIDIA/cudf#4210", lambda: objects("1.0", "2", -3), (1, 2, -3)),
    held(
        "integers among objects",
        "pandas-dev/pandas#35580",
        lambda: objects(5, None, True, np.True_),
        (5, NAN, 1, 1),
    ),
    held(
        "numbers with places among objects",
        "pandas-dev/pandas#59221",
        lambda: objects(5.5, "7.25", None),
        (5.5, 7.25, NAN),
        refused=WHOLE,
    ),
    held(
        "decimals among objects",
        "duckdb/duckdb#4897",
        lambda: objects(Decimal("1"), Decimal("10"), Decimal("NaN")),
        (1, 10, NAN),
    ),
    held("a list with one text", "pandas-dev/pandas#9589", lambda: [1, "2", "x", None, 4.5], (1, 2, NAN, NAN, 4.5)),
    held(
        "a list of text", "man-group/dtale#240", lambda: ["1", "00", "1.05", " ", "", "02"], (1, 0, 1.05, NAN, NAN, 2)
    ),
    held("bytes of numbers", "JDASoftwareGroup/kartothek#399", lambda: np.array([b"1.5", b"2"]), (1.5, 2)),
    held("text of NumPy", "turicas/rows#247", lambda: np.array(["1.5", " 2 ", "1_0"]), (1.5, 2, NAN)),
    held(
        "text of NumPy 2",
        "scikit-learn/scikit-learn#33392",
        lambda: np.array(["1.5", "x"], np.dtypes.StringDType()),
        (1.5, NAN),
    ),
    held(
        "integers beyond all doubles",
        "jeroen/jsonlite#111",
        lambda: [10**400, -(10**400), Fraction(10**400), 1],
        (math.inf, -math.inf, math.inf, 1),
    ),
    held("a queue has no type", "", lambda: deque([0, 0.5]), (0, 0.5)),
    held("an array of Python", "", lambda: array("d", [1.5, math.nan]), (1.5, NAN)),
    held("a range", "", lambda: range(3), (0, 1, 2)),
    held("a mask", "pandas-dev/pandas#396", lambda: masked(False), (NAN, 2, NAN)),
    held("a hard mask", "pandas-dev/pandas#24574", lambda: masked(True), (NAN, 2, NAN)),
    held("a masked field of records", "pandas-dev/pandas#42739", masked_records, (2.2, NAN)),
    held("a mask over integers", "vaexio/vaex#640", lambda: np.ma.array([1, 2**60], mask=[False, True]), (1, NAN)),
    held("a field of records", "pola-rs/polars#8620", lambda: records()["k"], (1, 7)),
    held("records are no column", "pybind/pybind11#2091", records, "records|values must be numbers|is not read"),
    held("a field of several numbers", "pandas-dev/pandas#9381", lambda: records()["v"], "one-dimensional"),
    held("another byte order", "pandas-dev/pandas#9989", lambda: np.array([1, 2, 3], dtype=">f4"), (1, 2, 3)),
    held(
        "another byte order of integers",
        "pandas-dev/pandas#17396",
        lambda: np.array([1, -2], dtype=">i2"),
        (1, -2),
    ),
    held("no rows of another byte order", "pandas-dev/pandas#57457", lambda: np.array([], dtype=">f8"), ()),
    held("halves", "apache/arrow#2691", lambda: np.array([0.1, 2.2, 3], np.float16), (0.0999755859375, 2.19921875, 3)),
    held("more than doubles", "", lambda: np.array([1.5, math.nan], np.longdouble), (1.5, NAN)),
    held(
        "integers without a sign",
        "RayforceDB/rayforce-py#18",
        lambda: np.array([1, 40000, 65535], np.uint16),
        (1, 40000, 65535),
    ),
    held(
        "beyond integers with a sign",
        "influxdata/influxdb#4508",
        lambda: np.array([2**64 - 1, 1], np.uint64),
        (2.0**64, 1),
    ),
    held("complex numbers", "scikit-learn/scikit-learn#25814", lambda: np.array([1j]), "complex"),
    held("numbers of Arrow with a missing one", "apache/arrow#12416", lambda: arrow([1, None], "int64"), (1, NAN)),
    held(
        "long numbers of Arrow with a missing one",
        "owid/data-api#5",
        lambda: arrow([2**62, None], "int64"),
        (2.0**62, NAN),
    ),
    held(
        "integers of Arrow without a sign",
        "apache/arrow-rs#258",
        lambda: arrow([2**64 - 1, None], "uint64"),
        (2.0**64, NAN),
    ),
    held("small integers of Arrow", "apache/arrow-rs#7040", lambda: arrow([255, 128], "uint8"), (255, 128)),
    held("halves of Arrow", "apache/arrow#39790", lambda: arrow([np.float16(0.5), None], "float16"), (0.5, NAN)),
    held(
        "booleans of Arrow from the middle",
        "apache/arrow#51223",
        lambda: arrow([True, False, None, True, True, False, None, True], "bool_").slice(3, 5),
        (1, 1, 0, NAN, 1),
    ),
    held(
        "numbers of Arrow from the middle",
        "apache/arrow-rs#6152",
        lambda: arrow([1, None, 3, 4], "int32").slice(1, 2),
        (NAN, 3),
    ),
    held(
        "decimals of Arrow",
        "duckdb/duckdb#4102",
        lambda: arrow([Decimal("2423432.0000"), None], "decimal128", 12, 4),
        (2423432, NAN),
    ),
    held(
        "decimals of 256 bits",
        "dask/fastparquet#48",
        lambda: arrow([Decimal("0.1"), None], "decimal256", 60, 1),
        (0.1, NAN),
    ),
    held(
        "a dictionary of numbers",
        "apache/arrow#6284",
        lambda: arrow_dictionary([15.5, None, 3.75, 15.5], "float64"),
        (15.5, NAN, 3.75, 15.5),
    ),
    held(
        "dictionaries of numbers that differ",
        "apache/arrow#4615",
        lambda: arrow_chunks(arrow_dictionary([5, 7], "int64"), arrow_dictionary([7, None], "int64")),
        (5, 7, 7, NAN),
    ),
    held(
        "a dictionary of text", "apache/arrow#7551", lambda: arrow_dictionary(["5", None, "x"], "string"), (5, NAN, NAN)
    ),
    held("text of Arrow", "apache/arrow#4184", lambda: arrow(["1.5", "NULL", None], "large_string"), (1.5, NAN, NAN)),
    held("views of text", "apache/arrow#44195", lambda: arrow(["1.5", None], "string_view"), (1.5, NAN)),
    held("bytes of Arrow", "apache/arrow#10897", lambda: arrow([b"1.5", None, b"\xff"], "binary"), (1.5, NAN, NAN)),
    held(
        "nothing but missing cells",
        "apache/arrow-rs#4910",
        lambda: arrow([None, None], "null"),
        (NAN, NAN),
        refused={"predict": "no cell that can be read"},
    ),
    held("runs of Arrow", "apache/arrow#41502", run_ends, (1.5, 1.5, NAN)),
    held("chunks of Arrow without one", "JDASoftwareGroup/kartothek#255", lambda: arrow_chunks(arrow([], "int64")), ()),
    held(
        "lists in cells",
        "pandas-dev/pandas#9381",
        lambda: arrow([[1], [2]], "list_", arrow([], "int64").type),
        BOTH_REFUSE,
    ),
    held("times of the day", "duckdb/duckdb#23767", lambda: arrow([1, 2], "time64", "us"), BOTH_REFUSE),
    held(
        "doubles of pandas by Arrow",
        "dmlc/xgboost#8653",
        lambda: backed([1.5, None, math.nan], "float64"),
        (1.5, NAN, NAN),
    ),
    held(
        "integers of pandas by Arrow",
        "pandas-dev/pandas#50971",
        lambda: backed([2**53 + 1, None], "int64"),
        (2.0**53, NAN),
    ),
    held(
        "decimals of pandas by Arrow",
        "duckdb/duckdb#5306",
        lambda: backed([Decimal("10.00"), None], "decimal128", 9, 2),
        (10, NAN),
    ),
    held("intervals", "scikit-learn/scikit-learn#25814", lambda: of_pandas("interval_range", 0, 2), BOTH_REFUSE),
    held(
        "numbers of polars with a missing one and NaN",
        "duckdb/duckdb#10196",
        lambda: polars([1.5, None, math.nan], "Float64"),
        (1.5, NAN, NAN),
    ),
    held(
        "integers of polars with a missing one",
        "pola-rs/polars#17113",
        lambda: polars([2**53 + 1, None], "Int64"),
        (2.0**53, NAN),
    ),
    held("booleans of polars", "narwhals-dev/narwhals#114", lambda: polars([True, None], "Boolean"), (1, NAN)),
    held(
        "decimals of polars",
        "pola-rs/polars#17498",
        lambda: polars([Decimal("1.10"), None], "Decimal", 10, 2),
        (1.1, NAN),
    ),
    held("text of polars", "pola-rs/polars#4567", lambda: polars(["1.5 ", None, "NA"], "String"), (1.5, NAN, NAN)),
    held("categories of polars", "pola-rs/polars#672", lambda: polars(["1", None, "2"], "Categorical"), (1, NAN, 2)),
    held("an enumeration of polars", "pola-rs/polars#22125", lambda: polars(["1", None], "Enum", ["1", "2"]), (1, NAN)),
    held(
        "nothing but missing cells of polars",
        "dasch-swiss/dsp-tools#1673",
        lambda: polars([None, None], "Null"),
        (NAN, NAN),
        refused={"predict": "no cell that can be read"},
    ),
    held("integers of 128 bits", "ibis-project/ibis#6678", lambda: polars([1], "Int128"), "Int128 is not read"),
    held("lists of polars", "pola-rs/polars#16358", lambda: polars([[1], [2]], "List", int), BOTH_REFUSE),
    held("objects of polars", "pola-rs/polars#9783", lambda: polars([object()], "Object"), "Object is not read"),
    held("a set has no order", "", lambda: {1.5, 2.5}, "must be a column"),
    held("a text is no column", "", lambda: "1.5", "sequence of cells|is a name: write open_column"),
    held("a table of one column", "", lambda: np.array([[1.0], [2.0]]), "one-dimensional"),
)
