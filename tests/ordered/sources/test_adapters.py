"""Containers in memory: ranks, the domain of their type, and lists that are refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.sources.adapters import read_values
from tests.ordered.sources.columns_cases import FLOATS, WHOLE, reference, same_ranks

FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


def sources(rows):
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    yield "array", rows
    if rows.dtype.kind == "f":
        yield "list", rows.tolist()
    yield "big endian", rows.astype(rows.dtype.newbyteorder(">"))
    yield "every second", np.repeat(rows, 2)[::2]
    yield "arrow", pa.array(rows)
    yield "arrow chunks", pa.chunked_array([rows[:3], rows[3:3], rows[3:]])
    yield "arrow nulls", pa.chunked_array([pa.array([None, *rows[:3].tolist()], pa.array(rows).type), rows[3:]])
    yield "pandas", pd.Series(rows)
    yield "pandas nulls", pd.Series([*rows.tolist(), None], dtype="Int64" if rows.dtype.kind == "i" else "Float64")
    yield "polars", pl.Series(rows)
    yield "iterator", iter(np.array_split(rows, 3))
    yield "function", lambda: iter(np.array_split(rows, 3))


@pytest.mark.parametrize(("rows", "domain"), [(FLOATS, FLOAT_DOMAIN), (WHOLE, WHOLE_DOMAIN)], ids=["floats", "whole"])
def test_every_container_gives_the_same_ranks(rows, domain):
    for name, values in sources(rows):
        column = read_values(values).ranked(domain)
        try:
            same_ranks(column, reference(rows, domain))
        except AssertionError as error:
            raise AssertionError(name) from error


def test_the_domain_of_an_arrow_column_without_chunks_is_of_its_type():
    pa = pytest.importorskip("pyarrow")
    assert read_values(pa.chunked_array([], type=pa.int64())).dtype == np.int64


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (["a"], "must hold numbers"),
        ([np.datetime64(1, "s")], "array of their type"),
        ([1.0] + ["a"] * 10, "must hold numbers"),
    ],
)
def test_lists_of_other_things_are_refused(rows, named):
    with pytest.raises(TypeError, match=named):
        read_values(rows)
