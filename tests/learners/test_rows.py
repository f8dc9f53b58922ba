"""From any cell, row and label to unit rows and class numbers: each row by itself, never failing on one."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.errors import ArgumentError
from dpselect.learners import (
    DataDependentClassesWarning,
    OutputPerturbationClassifier,
    PublicRowCountWarning,
)
from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import class_numbers, labels_of, unit_rows
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
