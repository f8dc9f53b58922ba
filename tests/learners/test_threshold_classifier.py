"""The classifier that learns one cut of a column: conventions, its price, copies, refused parameters, any cells."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.learners import DataDependentClassesWarning, PrivateThresholdClassifier
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_CHECKS
from dpselect.randomness import keyed_source


def test_the_classifier_keeps_to_the_conventions():
    model = PrivateThresholdClassifier(lower=-10, upper=10, epsilon=10.0)
    with pytest.warns(DataDependentClassesWarning):
        results = check_estimator(model, on_fail=None, expected_failed_checks=EXPECTED_FAILED_CHECKS)
    assert {r["status"] for r in results} <= {"passed", "xfail", "skipped"}, [
        r["check_name"] for r in results if r["status"] == "failed"
    ]


def test_the_classifier_learns_and_forgets_its_source():
    X = np.random.default_rng(5).uniform(0, 1, (2000, 3))
    y = np.where(X[:, 1] > 0.3, "good", "bad")
    model = PrivateThresholdClassifier(column=1, epsilon=2.0, classes=["good", "bad"], random=keyed_source(6))
    assert np.mean(model.fit(X, y).predict(X) == y) > 0.97
    assert model.guarantee_.pure_epsilon == model.guarantee().pure_epsilon == 2.0
    copy = pickle.loads(pickle.dumps(model))
    assert copy.random is None
    assert (copy.predict(X) == model.predict(X)).all()
    assert model.predict([[0.0, np.nan, 0.0], [0.0, "text", 0.0]]).tolist() == ["bad", "bad"]
    rows = [[0.1, "?", 0], [0.2, 0.9, None]] * 30
    model.fit(rows, ["good", "bad"] * 30)
    assert clone(model).get_params()["column"] == 1


def test_the_classifier_refuses():
    X, y = np.zeros((4, 2)), [0, 1, 0, 1]
    for wrong, name in (
        ({"column": 2}, "column"),
        ({"classes": [0, 1, 2]}, "classes"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"positives": "up"}, "positives"),
        ({"method": "best"}, "method"),
    ):
        with pytest.raises(ArgumentError, match=name):
            PrivateThresholdClassifier(**({"classes": [0, 1]} | wrong)).fit(X, y)
    single = PrivateThresholdClassifier(classes=[1]).fit(X, [1] * 4)
    assert single.predict(X).tolist() == [1] * 4


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(cells=st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=3)), min_size=2, max_size=6))
def test_no_cell_makes_the_classifier_fail(cells):
    X = np.array([[cell] for cell in cells], dtype=object)
    model = PrivateThresholdClassifier(classes=[0, 1]).fit(X, [k % 3 for k in range(len(cells))])
    assert len(model.predict(X)) == len(cells)
