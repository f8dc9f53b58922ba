"""The base of the private learners: answers and their shapes, copies without a random source, bounded predictions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import learners
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


CLASSES: dict[str, Any] = {"classes": [0, 1]}
FITTED: dict[str, dict[str, Any]] = {
    "DPSGDClassifier": {**CLASSES, "nominal_rows": 60, "steps": 3, "hidden_units": 4},
    "DPSGDRegressor": {"label_bounds": (0, 1), "nominal_rows": 60, "steps": 3},
    "OutputPerturbationClassifier": {**CLASSES, "nominal_rows": 60},
    "PrivateBoostingClassifier": {**CLASSES, "nominal_rows": 60, "n_estimators": 3, "linear_share": 0.5},
    "PrivateBoostingRegressor": {"label_bounds": (0, 1), "nominal_rows": 60, "n_estimators": 3, "linear_share": 0.5},
    "PrivateLeastSquares": {"label_bounds": (0, 1), "nominal_rows": 60, "steps": 3},
    "PrivateRectangleClassifier": {**CLASSES, "lower": 0, "upper": 7, "granularity": 1, "epsilon": 50.0, "delta": 1e-6},
    "PrivateNaiveBayes": CLASSES,
    "PrivateRidge": {"label_bounds": (0, 1)},
    "PrivateRidgeClassifier": CLASSES,
    "PrivateThresholdClassifier": {**CLASSES, "upper": 7, "epsilon": 5.0},
}


class Poison:
    """In the place of a parameter: whatever reads it fails."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a prediction reads a parameter: {name}")

    __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __eq__ = __hash__ = __getattr__  # type: ignore


def test_every_estimator_is_tried() -> None:
    made = {name for name in dir(learners) if isinstance(getattr(learners, name), type)}
    assert {name for name in made if hasattr(getattr(learners, name), "predict")} == set(FITTED)


SLOW = {"PrivateRectangleClassifier"}


@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.full] * (each in SLOW)) for each in FITTED])
def test_a_parameter_that_is_set_after_a_fit_changes_no_prediction(name: str) -> None:
    """Not one that fails if anything reads it, nor another value of a usual kind."""
    X = np.random.default_rng(3).integers(0, 8, (60, 1)).astype(float)
    y = (X[:, 0] > 3).astype(int)
    model = getattr(learners, name)(random=keyed_source(1), **FITTED[name]).fit(X, y)
    methods = [each for each in ("predict", "predict_proba", "decision_function") if hasattr(model, each)]
    before = [getattr(model, each)(X) for each in methods]
    for parameter, value in model.get_params().items():
        for other in (Poison(), 7.5):
            setattr(model, parameter, other)  # as `set_params` does, which reads them all
            found = [getattr(model, each)(X) for each in methods]
            assert all(np.array_equal(a, b) for a, b in zip(before, found, strict=True)), parameter
        model.set_params(**{parameter: value})


@pytest.mark.parametrize("name", ["DPSGDClassifier", "PrivateRidge", "PrivateLeastSquares"])
def test_a_model_of_a_version_that_kept_no_row_norm_is_read(name: str) -> None:
    X = np.random.default_rng(3).uniform(-1.0, 1.0, (60, 2))
    y = (X[:, 0] > 0).astype(int)
    options = {**FITTED[name], "row_norm": 2.0}
    model = getattr(learners, name)(random=keyed_source(1), **options).fit(X, y)
    state = model.__getstate__()
    del state["_row_norm"]
    old = type(model).__new__(type(model))
    old.__setstate__(state)
    np.testing.assert_array_equal(old.predict(X), model.predict(X))
