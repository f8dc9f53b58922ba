"""From any cell, row and label to unit rows and class numbers: each row by itself, never failing on one."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from dpselect.errors import ArgumentError
from dpselect.learners import (
    DataDependentClassesWarning,
    OutputPerturbationClassifier,
    PublicRowCountWarning,
    rows as rows_module,
)
from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import class_numbers, doubles, labels_of, table_shape, unit_rows
from dpselect.randomness import keyed_source
from tests.learners.estimators_cases import small, table

POISON = [math.nan, math.inf, -math.inf, 1e308, -1e-308, 5e-324, 0.0, None, "text", 10**400, 3 + 4j, [1], object()]


cells = st.one_of(st.floats(), st.integers(-(10**20), 10**20), st.booleans(), st.sampled_from(POISON))


@given(st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=6), st.sampled_from([0.1, 1.0, 1e6]))
def test_rows_are_unit_rows_each_by_itself(table: list[list[Any]], row_norm: float) -> None:
    array = np.empty((len(table), 3), dtype=object)
    for i, row in enumerate(table):
        for j, cell in enumerate(row):
            array[i, j] = cell
    found = unit_rows(array, row_norm, intercept=True)
    assert found.shape == (len(table), 4)
    for i in range(len(table)):
        assert np.array_equal(found[i], unit_rows(array[i : i + 1], row_norm, intercept=True)[0])
        assert sum(Fraction(float(v)) ** 2 for v in found[i, :-1]) <= 1
        assert all((Fraction(float(v)) / Fraction(STEP)).denominator == 1 for v in found[i])
        assert found[i, -1] == 1.0


def test_a_text_in_one_row_leaves_the_others_alone() -> None:
    clean = [[1, 0.25], [0.5, 0.125]]
    poisoned = [[1, 0.25], [0.5, 0.125], ["text", 2j]]
    assert np.array_equal(unit_rows(poisoned, 2.0, intercept=False)[:2], unit_rows(clean, 2.0, intercept=False))
    labels = labels_of([1, 0, "text"], 3)
    assert class_numbers(labels, np.array([0, 1])).tolist() == [1, 0, -1]


def test_rows_keep_their_values_when_they_are_short() -> None:
    X = np.random.default_rng(0).uniform(-0.1, 0.1, (50, 8))
    np.testing.assert_allclose(unit_rows(X, 2.0, intercept=False), X / 2.0, atol=2 * STEP)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([2, 5, 3, -1]), [0, 1, -1, -1]),
        (np.array([2.0, math.nan, math.inf, 5.0]), [0, -1, -1, 1]),
        (np.array([2, None, "5", [5], 5.0, True], dtype=object), [0, -1, -1, -1, 1, -1]),
        (np.array(["2", "5"]), [-1, -1]),
        (np.array([], dtype=float), []),
    ],
)
def test_labels_outside_the_classes_are_marked_not_refused(labels: Any, expected: list[int]) -> None:
    assert class_numbers(labels, np.array([2, 5])).tolist() == expected


KINDS = ["output perturbation", "softmax", "network"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_from_the_data_is_announced(kind: str) -> None:
    X, y = table()
    with pytest.warns(DataDependentClassesWarning, match="classes"):
        assert small(kind, classes=None).fit(X, y).classes_.tolist() == [0, 1, 2]
    with pytest.warns(PublicRowCountWarning, match="nominal_rows"):
        small(kind, nominal_rows=None).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(kind).fit(X, y)
        OutputPerturbationClassifier(classes=[0, 1, 2], adjacency="replace_one").fit(X, y)


def test_missing_labels_are_no_class() -> None:
    X, _ = table(4)
    with pytest.warns(DataDependentClassesWarning):
        assert small("softmax", classes=None).fit(X, [1.0, math.nan, 0.0, math.inf]).classes_.tolist() == [0.0, 1.0]
    with pytest.warns(DataDependentClassesWarning), pytest.raises(ArgumentError, match="classes"):
        small("softmax", classes=None).fit(X, [None] * 4)


# sparse tables

FORMATS = ("csr_matrix", "csc_array", "coo_matrix", "lil_array", "dok_matrix")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("cells", [np.float64, np.float32, np.int64, np.bool_])
def test_a_sparse_table_has_the_bits_of_the_dense_one(kind: str, cells: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_SPARSE_CHUNK", 8)  # two rows at a time
    dense = (4.0 * keyed_source("sparse").uniform((7, 4)) - 2.0).astype(cells)
    dense[keyed_source("holes").uniform((7, 4)) < 0.6] = 0
    table = getattr(sparse, kind)(dense)
    assert table_shape(table) == (7, 4)
    assert doubles(table).tolist() == doubles(dense).tolist()
    for intercept in (0.0, 0.5):
        assert (
            unit_rows(table, 0.7, intercept=intercept).tolist() == unit_rows(dense, 0.7, intercept=intercept).tolist()
        )


def test_cells_of_a_sparse_table_that_are_not_finite_count_as_zero() -> None:
    dense = np.array([[np.nan, 0.0], [np.inf, 0.3], [0.0, 0.0]])
    found = unit_rows(sparse.csr_matrix(dense), 1.0, intercept=False)
    assert found.tolist() == unit_rows(dense, 1.0, intercept=False).tolist()
    assert unit_rows(sparse.csr_matrix((0, 3)), 1.0, intercept=True).shape == (0, 4)


def test_a_sparse_table_is_not_made_dense_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is as large as the dense table, and nothing else is: here one row at a time."""
    monkeypatch.setattr(rows_module, "_SPARSE_CHUNK", 2**12)
    table = sparse.csr_matrix(([1.0], ([3], [5])), shape=(8, 2**12))
    seen: list[Any] = []
    monkeypatch.setattr(rows_module, "doubles", lambda X: seen.append(X.shape) or doubles(X))
    assert unit_rows(table, 1.0, intercept=False)[3, 5] > 0.999
    assert seen == [(1, 2**12)] * 8


def test_a_sparse_table_with_too_many_cells_is_refused_by_its_shape() -> None:
    with pytest.raises(ArgumentError, match="a sparse X must have at most 268435456 cells"):
        table_shape(sparse.csr_matrix((2**10, 2**19)))
    with pytest.raises(ArgumentError, match="must be real"):
        table_shape(sparse.csr_matrix(np.array([[1j]])))
