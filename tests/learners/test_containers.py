"""Which container holds a table: arrays, frames of pandas and polars, Arrow tables, sparse tables; NumPy types."""

import numpy as np
import pytest
from scipy import sparse

from dpselect.learners.containers import (
    is_arrow_table,
    is_frame,
    is_pandas,
    is_sparse,
    numpy_kind,
    without_sparsity,
)

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ASKED = (is_frame, is_pandas, is_arrow_table, is_sparse)
CELLS = {"a": [1, 2], "b": [0.5, 1.5]}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (np.zeros((2, 2)), [False, False, False, False]),
        ([[1.0, "x"]], [False, False, False, False]),
        (pd.DataFrame(CELLS), [True, True, False, False]),
        (pl.DataFrame(CELLS), [True, False, False, False]),
        (pa.table(CELLS), [True, False, True, False]),
        (sparse.csr_matrix(np.eye(2)), [False, False, False, True]),
    ],
    ids=["array", "lists", "pandas", "polars", "arrow", "sparse"],
)
def test_each_container_is_known(table, expected):
    assert [asked(table) for asked in ASKED] == expected


def test_a_sparse_table_becomes_an_array_and_others_stay():
    dense = np.eye(2)
    assert np.array_equal(without_sparsity(sparse.csr_matrix(dense)), dense)
    assert without_sparsity(dense) is dense


def test_the_kind_is_that_of_a_numpy_type():
    values = (
        np.zeros(1),
        np.zeros(1, dtype=bool),
        np.array(["a"]),
        pd.Series([1]),
        pd.Series(["a"], dtype="category"),
        pl.Series([1]),
        [1],
    )
    assert [numpy_kind(each) for each in values] == ["f", "b", "U", "i", None, None, None]
