"""The classifier of a private rectangle: conventions, its price, the class that it learns, cells of any kind."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.learners import DataDependentClassesWarning, PrivateRectangleClassifier
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_CHECKS
from dpselect.randomness import keyed_source


def test_the_classifier_keeps_to_the_conventions():
    model = PrivateRectangleClassifier(lower=-10, upper=10, epsilon=10.0)
    with pytest.warns(DataDependentClassesWarning):
        results = check_estimator(model, on_fail=None, expected_failed_checks=EXPECTED_FAILED_CHECKS)
    assert {r["status"] for r in results} <= {"passed", "xfail", "skipped"}, [
        r["check_name"] for r in results if r["status"] == "failed"
    ]


def test_the_classifier_learns_and_tells_its_price():
    X = np.random.default_rng(66).uniform(0, 1, (6000, 2))
    y = np.where(np.all((X > 0.1) & (X < 0.9), axis=1), "in", "out")
    model = PrivateRectangleClassifier(epsilon=4.0, classes=["in", "out"], random=keyed_source(66))
    with pytest.raises(ArgumentError, match="columns"):
        model.guarantee()
    # the second class in order is "out", and it is the one that a rectangle is learnt for
    inverted = np.where(y == "in", "out", "in")
    assert np.mean(model.fit(X, inverted).predict(X) == inverted) > 0.9
    assert model.guarantee_.epsilon(delta=0) == model.guarantee().epsilon(delta=0) <= 4.0
    copy = pickle.loads(pickle.dumps(model))
    assert copy.random is None
    assert (copy.predict(X) == model.predict(X)).all()
    assert model.predict([[0.5, np.nan], [0.5, "text"], [0.5, 0.5]]).tolist() == ["in", "in", "out"]


@settings(max_examples=20, deadline=None)
@given(cells=st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=3)), min_size=2, max_size=6))
def test_no_cell_makes_the_classifier_fail(cells):
    X = np.array([[cell, 0.5] for cell in cells], dtype=object)
    model = PrivateRectangleClassifier(classes=[0, 1]).fit(X, [k % 3 for k in range(len(cells))])
    assert len(model.predict(X)) == len(cells)
