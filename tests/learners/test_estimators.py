"""The private learners as scikit-learn estimators: prices known in advance, replay, content that never fails."""

from __future__ import annotations

import math
import multiprocessing
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpselect.errors import AdjacencyError, ArgumentError, ForkedSourceError
from dpselect.learners import (
    DPSGDClassifier,
    OutputPerturbationClassifier,
)
from dpselect.randomness import keyed_source
from tests.learners.estimators_cases import PUBLIC, Estimator, small, table

KINDS = ["output perturbation", "softmax", "network"]


@pytest.mark.parametrize(
    "model",
    [
        DPSGDClassifier(**PUBLIC, noise_multiplier=2.0, sampling_rate=0.3, steps=7),
        DPSGDClassifier(**PUBLIC, noise_multiplier=2, sampling_rate=1, steps=3, clip_norm=0.1, hidden_units=3),
        OutputPerturbationClassifier(**PUBLIC, epsilon=0.7),
        OutputPerturbationClassifier(**PUBLIC, epsilon=0.7, adjacency="replace_one"),
    ],
)
def test_the_price_is_known_before_there_is_data(model: Estimator) -> None:
    before = clone(model).guarantee()
    for data in (table(), table(3), (np.zeros((0, 4)), np.zeros(0))):
        paid = model.fit(*data).guarantee_
        assert paid.adjacency is before.adjacency
        assert paid.terms == before.terms
        assert paid.epsilon(delta=1e-5) == before.epsilon(delta=1e-5)


def test_an_unknown_adjacency_is_refused_before_the_data_is_looked_at() -> None:
    with pytest.raises(AdjacencyError, match="adjacency"):
        DPSGDClassifier(adjacency="other").fit(object(), object())
    with pytest.raises(AdjacencyError, match="adjacency"):
        OutputPerturbationClassifier(adjacency="other").fit(object(), object())


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("output perturbation", "epsilon", 0.0),
        ("output perturbation", "epsilon", math.nan),
        ("output perturbation", "regularization", -1.0),
        ("output perturbation", "row_norm", 0.0),
        ("output perturbation", "row_norm", math.inf),
        ("output perturbation", "nominal_rows", 0),
        ("output perturbation", "fit_intercept", "yes"),
        ("output perturbation", "random", 7),
        ("softmax", "noise_multiplier", 0.0),
        ("softmax", "noise_multiplier", "1"),
        ("softmax", "sampling_rate", 0.0),
        ("softmax", "sampling_rate", 1.5),
        ("softmax", "steps", 0),
        ("softmax", "steps", 2.5),
        ("softmax", "clip_norm", 0.0),
        ("softmax", "learning_rate", -1.0),
        ("softmax", "momentum", 1.0),
        ("softmax", "averaged_share", 1.5),
        ("softmax", "hidden_units", -1),
        ("softmax", "activation", "sigmoid"),
        ("softmax", "row_norm", math.nan),
        ("softmax", "nominal_rows", 0.5),
        ("softmax", "random", np.random.default_rng(0)),
    ],
)
def test_a_bad_parameter_is_named_before_the_data_is_looked_at(kind: str, name: str, value: Any) -> None:
    class Untouchable:
        def __getattribute__(self, attribute: str) -> Any:
            raise AssertionError("the data was looked at")

    model = small(kind).set_params(**{name: value})
    with pytest.raises((ArgumentError, TypeError), match=name):
        model.fit(Untouchable(), Untouchable())


def test_bad_classes_are_named() -> None:
    for classes in ([], [1, 1], [[0, 1]]):
        with pytest.raises(ArgumentError, match="classes"):
            small("softmax", classes=classes).fit(*table())


def poisoned(name: str) -> tuple[Any, Any]:
    X, y = table()
    if name == "no rows":
        return X[:0], y[:0]
    if name == "one class":
        return X, np.ones(60, dtype=int)
    if name == "unknown labels only":
        return X, np.full(60, 9)
    if name == "missing":
        X[::2] = np.nan
        return X, np.where(y == 2, np.nan, y.astype(float))
    if name == "infinite":
        X[:, 0] = np.inf
        X[3] = -np.inf
        return X, y
    if name == "huge and tiny":
        return X * 10.0 ** np.linspace(-320, 300, 60)[:, None], y
    if name == "lists":
        return [[*row, "text"] for row in X.tolist()], [*y.tolist()[:-3], "text", None, [1]]
    assert name == "objects"
    cells = X.astype(object)
    cells[0, 0], cells[1, 1], cells[2, 2], cells[3, 3] = "text", None, 10**400, object()
    return cells, np.array([*y.tolist()[:-1], "text"], dtype=object)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "content",
    ["no rows", "one class", "unknown labels only", "missing", "infinite", "huge and tiny", "lists", "objects"],
)
def test_content_never_fails_and_never_warns(kind: str, content: str) -> None:
    X, y = poisoned(content)
    with warnings.catch_warnings(), np.errstate(invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        model = small(kind).fit(X, y)
        proba = model.predict_proba(X)
    assert all(np.all(np.isfinite(w)) for w in model.weights_)
    assert np.all(np.isfinite(proba))
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_wild_schedules_stay_finite(kind: str) -> None:
    wild = {"output perturbation": {"epsilon": 1e-6, "regularization": 1e-9}}.get(
        kind, {"learning_rate": 1e6, "noise_multiplier": 1e6, "clip_norm": 1e3, "momentum": 0.999}
    )
    X, y = table()
    model = small(kind, **wild).fit(X, y)
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_one_public_class_is_a_classifier() -> None:
    X, y = table()
    for kind in KINDS:
        assert small(kind, classes=[1]).fit(X, y).predict(X).tolist() == [1] * 60


def test_containers_are_refused_by_name() -> None:
    X, y = table()
    for kind in KINDS:
        with pytest.raises(ArgumentError, match=r"2D array.*X"):
            small(kind).fit(X[0], y)
        with pytest.raises(ArgumentError, match="y must have one label"):
            small(kind).fit(X, y[:-1])
        with pytest.raises(ArgumentError, match="Complex"):
            small(kind).fit(X + 1j, y)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_key_replays_every_bit_and_a_shared_source_does_not_repeat(kind: str) -> None:
    X, y = table()
    source = keyed_source("replay")
    first = small(kind, random=source).fit(X, y).weights_
    again = small(kind, random=keyed_source("replay")).fit(X, y).weights_
    second = small(kind, random=source).fit(X, y).weights_
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _fit_in_child(model: Estimator) -> Any:
    try:
        return model.fit(*table()).weights_[0]
    except ForkedSourceError:
        return "refused"


@pytest.mark.parametrize("kind", ["output perturbation", "softmax"])
def test_forked_children_do_not_share_noise(kind: str) -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        a, b = pool.map(_fit_in_child, [small(kind), small(kind)], chunksize=1)
    assert not np.array_equal(a, b)
