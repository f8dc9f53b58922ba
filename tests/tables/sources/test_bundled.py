"""Sets of scikit-learn: their parts, their names of columns, and names that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets

from dpselect.errors import ArgumentError
from dpselect.tables.table import open_table


@pytest.mark.parametrize("name", ["digits", "breast_cancer", "iris", "wine", "diabetes"])
def test_columns_are_those_of_the_library(name):
    known = getattr(datasets, f"load_{name}")()
    table = open_table(f"sklearn:{name}")
    assert table.columns == (*known.feature_names, "target")
    found = table.read(table.columns)
    for place, column in enumerate(known.feature_names):
        np.testing.assert_array_equal(found[column], known.data[:, place])
    np.testing.assert_array_equal(found["target"], known.target)
    assert set(table.types) == set(known.feature_names)
    assert set(table.types.values()) == {"number"}


def test_every_fifth_row_is_for_tests():
    labels = datasets.load_iris().target
    train, test = (open_table(f"sklearn:iris/{part}").read(["target"])["target"] for part in ("train", "test"))
    np.testing.assert_array_equal(test, labels[::5])
    np.testing.assert_array_equal(train, np.delete(labels, np.arange(0, 150, 5)))


@pytest.mark.parametrize(
    ("source", "said"),
    [("sklearn:cars", r"'cars' is not one of digits, breast"), ("sklearn:iris/all", r"is /train or /test, got 'all'")],
)
def test_other_names_are_refused(source, said):
    with pytest.raises(ArgumentError, match=said):
        open_table(source)
