"""Cells of columns in memory: masked, of short floats, or of types that are refused."""

import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners.rows import doubles, labels_of
from dpselect.ordered import interior_point, median
from dpselect.ordered.sources.declared import Column as DeclaredColumn
from dpselect.study.containers import table_columns
from dpselect.tables.categories import category, positions
from dpselect.tables.column_cells import cells_in, text_chunks
from dpselect.tables.number_blocks import block_of, present_in
from tests.tables.csv_text_cases import numbers_of

NAN = math.nan


@pytest.mark.parametrize("kind", [float, int, object])
def test_a_masked_cell_is_missing(kind):
    masked = np.ma.masked_array(np.array([10, 90, 20], dtype=kind), [False, True, False])
    assert present_in(block_of(masked)).tolist() == [10, 20]
    np.testing.assert_array_equal(numbers_of(table_columns({"x": masked}, ["x"])["x"]), [10, NAN, 20])
    np.testing.assert_array_equal(numbers_of(table_columns(masked[:, None], ["x"])["x"]), [10, NAN, 20])


def test_a_masked_cell_is_missing_for_every_door_in_memory():
    mask = [True] * 2 + [False] * 500
    rows = np.ma.masked_array(np.array([90.0] * 2 + [10.0] * 500), mask)
    assert interior_point(rows, lower=0, upper=99, epsilon=50, granularity=1).value == 10
    assert (
        DeclaredColumn(rows, lower=0, upper=99, weights=np.ma.masked_array(np.ones(502), mask)).ranked().total
        == 500 * 1024
    )
    labels = np.ma.masked_array([7] * 502, mask)
    assert labels_of(labels, 502)[:3].tolist() == [None, None, 7]
    assert np.isnan(doubles(rows[:, None])[0, 0])


def test_a_file_or_a_table_is_no_column():
    with pytest.raises(ArgumentError, match=r"write open_column\("):
        median("people.parquet", lower=0, upper=1, epsilon=1)
    pd = pytest.importorskip("pandas")
    with pytest.raises(ArgumentError, match="must have one column here"):
        median(pd.DataFrame({"x": [1.0], "y": [2.0]}), lower=0, upper=1, epsilon=1)


def test_a_type_that_has_no_array_is_named():
    pl = pytest.importorskip("polars")
    with pytest.raises(ArgumentError, match="'x': the type Int128 is not read"):
        table_columns(pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}), ["x"])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_categories_of_short_floats_are_what_they_are_in_every_door(kind):
    largest = {np.float16: 65504, np.float32: 123456792}[kind]
    cells = np.array([0.1, largest, np.nan, 3], dtype=kind)
    names = [category(cell) for chunk in text_chunks(cells)() for cell in chunk]
    assert names == [category(cell) for cell in cells] == [category("0.1"), category(largest), "", category(3)]
    assert positions(cells, (3, 0.1, largest)).tolist() == [1, 2, -1, 0]


def test_missing_cells_of_categories_and_of_text():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    assert cells_in(pd.Series(["b", None, "a", "b"], dtype="category")).tolist() == ["b", None, "a", "b"]
    assert cells_in(pa.array(["b", None, "a", "b"])).tolist() == ["b", None, "a", "b"]
    assert cells_in(pa.array(["b", None]).dictionary_encode()).tolist() == ["b", None]
