"""Categories: what makes two cells one, and which texts stand for a missing one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tables.table_cases.case import Case


def named(name: str, thread: str, cells: list[str], categories: tuple[Any, ...], want: Any, **more: Any) -> Case:
    rows = "".join(f'r{place},"{cell}"\n' for place, cell in enumerate(cells))
    make = f"id,x\n{rows}"
    return Case(name=name, thread=thread, make=make, want=want, kind="category", categories=categories, **more)


def held(name: str, thread: str, make: Any, categories: tuple[Any, ...], want: Any, **more: Any) -> Case:
    more |= {"kind": "category", "categories": categories, "in_memory": True}
    return Case(name=name, thread=thread, make=make, want=want, **more)


def pandas(kind: str, cells: list[Any]) -> Any:
    import pandas as pd

    return pd.Series(cells, dtype=kind)


def arrow_chunks() -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", None, "a"]).dictionary_encode()])


def arrow_unsigned() -> Any:
    """An index of 255 for a missing cell, as polars and some writers have it."""
    import pyarrow as pa

    indices = pa.array([0, None, 1], pa.uint8())
    return pa.DictionaryArray.from_arrays(indices, ["a", "b"])


def polars(cells: list[Any], enum: bool) -> Any:
    import polars as pl

    return pl.Series(cells, dtype=pl.Enum(["a", "b", "c"]) if enum else pl.Categorical)


CASES = (
    named("Namibia", "vincentarelbundock/countrycode#111", ["NA", "DE", ""], ("NA", "DE"), (1, 1)),
    named(
        "None of a holiday",
        "marcopeix/TimeSeriesForecastingInPython#15",
        ["None", "Easter"],
        ("None", "Easter"),
        (1, 1),
    ),
    named(
        "leading zeros",
        "DOI-USGS/dataretrieval-python#311",
        ["07307", "7307", "1"],
        ("07307",),
        (2,),
    ),
    named(
        "blanks around a category",
        "tidyverse/readr#823",
        ["low ", " low", "high"],
        ("low", "high"),
        (2, 1),
    ),
    named(
        "booleans of R and pandas",
        "tidyverse/readr#672",
        ["TRUE", "True", "FALSE"],
        ("true", "false"),
        (2, 1),
    ),
    named(
        "an accent typed in two ways",
        "pandas-dev/pandas#2741",
        ["caf\u00e9", "cafe\u0301"],
        ("caf\u00e9",),
        (2,),
    ),
    named("upper and lower case differ", "datasets/country-codes#38", ["na", "NA", "Na"], ("NA",), (1,)),
    named(
        "numbers for categories",
        "pandas-dev/pandas#8007",
        ["1", "1.0", "2"],
        ("1", "2"),
        (2, 1),
    ),
    named(
        "quotes and line ends within",
        "minimaxir/facebook-page-post-scraper#50",
        ["a\nb", 'c""d'],
        ("a\nb", 'c"d'),
        (1, 1),
    ),
    held("text of pandas", "apache/arrow#44195", lambda: pandas("str", ["a", "b", None, "a"]), ("a", "b"), (2, 1)),
    held(
        "text of pandas by Arrow",
        "scikit-learn/scikit-learn#29291",
        lambda: pandas("string[pyarrow]", ["a", None]),
        ("a", "b"),
        (1, 0),
    ),
    held(
        "categories of pandas with a missing cell",
        "pandas-dev/pandas#18574",
        lambda: pandas("category", ["a", None, "b"]),
        ("a", "b"),
        (1, 1),
    ),
    held("dictionaries that differ", "apache/arrow#45010", arrow_chunks, ("a", "b", "c"), (2, 1, 1)),
    held("a missing index without a sign", "apache/arrow#10101", arrow_unsigned, ("a", "b"), (1, 1)),
    held("categories of polars", "pola-rs/polars#1380", lambda: polars(["a", None, "b"], False), ("a", "b"), (1, 1)),
    held(
        "an enumeration of polars", "pola-rs/polars#25588", lambda: polars(["a", None, "c"], True), ("a", "c"), (1, 1)
    ),
    held("text of NumPy", "JDASoftwareGroup/kartothek#399", lambda: np.array(["a", "bb", "a"]), ("a", "bb"), (2, 1)),
    held("integers of NumPy", "dmlc/xgboost#8653", lambda: np.array([0, 2, 3, 0]), (0, 2), (2, 1)),
    held(
        "a mask over text",
        "pandas-dev/pandas#38399",
        lambda: np.ma.masked_array(np.array(["a", "b", "a"]), [False, False, True]),
        ("a", "b"),
        (1, 1),
    ),
)
