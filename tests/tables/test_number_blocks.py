"""Blocks of numbers: decimals, Python objects, and later chunks."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import open_column
from dpselect.study.columns.column import Column
from dpselect.study.data import cells_of
from dpselect.tables import Declared
from dpselect.tables.number_blocks import block_of, chunk_of, present_in
from dpselect.tables.table import open_table
from tests.ordered.sources import column_laws as laws
from tests.tables.object_columns import objects

PRICES = [Decimal("10.25"), None, Decimal("-0.10"), Decimal("123456789012345678.1")]


def test_decimals_of_parquet(tmp_path):
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    column = pa.array(PRICES, pa.decimal128(30, 2))
    parquet.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
    expected = [math.nan if price is None else float(price) for price in PRICES]
    with open_column(str(tmp_path / "t.parquet"), "x") as source:
        np.testing.assert_array_equal(np.concatenate([values for values, _ in source.blocks()]), expected)
    table = open_table("t.parquet", tmp_path)
    found = Column(bounds=(0, 1), missing=0.5).numbers("x", cells_of(table, ["x"], ["x"])["x"])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(block_of(column)[0], expected)


def test_decimals_of_polars():
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(block_of(pl.Series(PRICES[:3], dtype=pl.Decimal(10, 2)))[0], [10.25, math.nan, -0.1])


def test_whole_numbers_among_objects_are_read_however_they_are_stored():
    """As pandas leaves them beside missing cells; 2.0 was lost without a word."""
    cells = np.array(
        [1, 2.0, Decimal("3"), Fraction(8, 2), None, math.nan, math.inf, Decimal("1e999999")], dtype=object
    )
    assert present_in(block_of(cells)).tolist() == [1, 2, 3, 4]


def test_numbers_with_decimal_places_among_objects_are_not_lost_in_silence():
    with pytest.raises(TypeError, match=r"values\.astype"):
        block_of(np.array([1.5, 2.5, 3, 4, None], dtype=object))
    # a row that a column of integers has no place for is missing, and refuses nothing
    assert present_in(block_of(np.array([*range(5), 0.5], dtype=object))).tolist() == [0, 1, 2, 3, 4]


def test_no_warning_tells_of_a_cell(tmp_path):
    cells = np.array(["1e400", "5"], dtype=np.longdouble)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("number", "duration", "integer"):
            Declared(kind=kind).read(cells)
        assert block_of(cells)[0].tolist() == [np.inf, 5.0]


NUMBERS = [1.5, -2.25, 0.1, 1e300, -0.0, 7.0] * 3
WHOLE = [1, -2, 2**53 + 1, 0, 7, -(2**40)] * 3
DAYS = ["2024-06-01", "1969-12-31", "9999-12-31T23:59:59"] * 6
ROWS = len(NUMBERS)
ODD = [*laws.OBJECTS, *laws.TEXTS]


@pytest.mark.parametrize("kind", ["f8", "i4", "O", "M8[us]"])
def test_later_chunks(kind):
    rows = [np.datetime64(day, "us") for day in DAYS] if kind[0] == "M" else WHOLE[:1] * ROWS
    dtype = np.dtype(kind)
    before, _ = chunk_of(list(rows), dtype)
    for cell in ODD:
        for make in (list, objects):
            values, present = chunk_of(make([*rows[:-1], cell]), dtype)
            assert values[:-1].tolist() == before[:-1].tolist()
            assert present is None or present[:-1].all()
