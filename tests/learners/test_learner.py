"""The base of the private learners: answers and their shapes, copies without a random source, bounded predictions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from dpselect.errors import ArgumentError
from dpselect.learners import PrivateRidge
from dpselect.randomness import keyed_source
from tests.learners.estimators_cases import small, table

KINDS = ["output perturbation", "softmax", "network"]


@pytest.mark.parametrize("kind", KINDS)
def test_clone_and_pickle(kind: str) -> None:
    X, y = table()
    source = keyed_source(1)
    model = small(kind, random=source)
    assert clone(model).get_params() == model.get_params()
    assert clone(model).random is source  # shared, so its draws stay distinct
    model.fit(X, y)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))
        assert copied.guarantee_.epsilon(delta=1e-5) == model.guarantee_.epsilon(delta=1e-5)
    # a keyed source that travelled would repeat its draws in two places
    assert pickle.loads(pickle.dumps(model)).random is None


def test_shapes_of_the_answers() -> None:
    X, y = table()
    for kind in KINDS:
        model = small(kind).fit(X, y)
        assert model.predict_proba(X).shape == model.decision_function(X).shape == (60, 3)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
        two = small(kind, classes=["no", "yes"]).fit(X, np.where(y, "yes", "no"))
        assert two.decision_function(X).shape == (60,)
        assert np.array_equal(two.predict(X) == "yes", two.decision_function(X) > 0)
        np.testing.assert_allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-two.decision_function(X))), rtol=1e-9)


def test_a_regressor_answers_between_its_bounds_and_by_its_weights() -> None:
    """By hand: the place of an answer in [-1, 1] is the product of a unit row and the weights."""
    model = PrivateRidge(label_bounds=(2.0, 10.0), noise_multiplier=1.0, intercept_scale=0.0).fit(
        np.zeros((3, 2)), [2.0] * 3
    )
    model.weights_ = (np.array([[0.5], [0.25]]),)
    found = model.predict([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(found, [8.0, 7.0, 4.0, 6.0], atol=1e-4)
    model.weights_ = (np.array([[1e9], [-1e9]]),)
    assert model.predict([[1.0, 0.0], [0.0, 1.0]]).tolist() == [10.0, 2.0]


def test_columns_must_have_the_names_of_training() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: [0.1, 0.2], 1: [0.3, 0.4]})
    model = small("softmax").fit(frame, [0, 1])
    assert model.predict(frame).shape == model.predict(frame.to_numpy()).shape == (2,)
    with pytest.raises(ArgumentError, match="names of those in training"):
        model.predict(frame[[1, 0]])
