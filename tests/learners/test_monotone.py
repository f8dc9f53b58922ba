"""Directions of columns: leaves are in order after the noise, sums of trees are, and learners with directions learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners import PrivateBoostingClassifier, PrivateBoostingRegressor
from dpselect.learners.monotone import monotone, signs_of
from dpselect.randomness import keyed_source


def in_order(values, columns, signs):
    grid = values.reshape((2,) * len(columns))
    for level, column in enumerate(columns):
        left, right = np.moveaxis(grid, level, 0)
        yield bool(np.all((right - left) * (signs[column] if column < len(signs) else 0) >= 0))


@pytest.mark.parametrize("signs", [(1, 0), (-1, 1), (1, 1), (0, -1)])
def test_leaves_are_in_order_on_every_level(signs):
    random = np.random.default_rng(1)
    changed = 0
    for columns in itertools.product(range(3), repeat=3):
        values = random.normal(size=(8, 1))
        found = monotone(values, columns, signs)
        assert all(in_order(found, columns, signs))
        changed += not np.array_equal(found, values)
        assert np.array_equal(monotone(found, columns, signs), found)
        assert np.mean(found) == pytest.approx(np.mean(values))
    assert changed > 10


def test_the_difference_of_two_classes_is_in_order_and_stays_if_it_was():
    values = np.array([[3.0, 1.0], [0.0, 4.0]])
    assert monotone(values, [0], [1]).tolist() == [[1.0, -1.0], [-2.0, 2.0]]
    assert monotone(values, [0], [-1]).tolist() == [[-0.5, 0.5], [-0.5, 0.5]]
    assert monotone(values, [1], [1]).tolist() == [[1.0, -1.0], [-2.0, 2.0]]


def test_places_of_numbers_have_their_directions():
    assert signs_of(None, 3, [0, 1, 2]) == ()
    assert signs_of([0, 0, 0], 3, [0, 2]) == ()
    assert signs_of(np.array([1, 0, -1]), 3, [0, 2]) == (1, -1)


def fitted(kind, signs, noise=30.0, **options):
    random = np.random.default_rng(3)
    X = random.uniform(-1, 1, (500, 3))
    y = X[:, 0] - X[:, 1] + 0.1 * np.sin(9 * X[:, 2])
    public = {"nominal_rows": 500, "n_estimators": 20, "monotonic_cst": signs, "random": keyed_source(7), **options}
    if kind == "numbers":
        return PrivateBoostingRegressor(label_bounds=(-2, 2), noise_multiplier=noise, **public).fit(X, y), X, y
    y = (y > 0).astype(int)
    return PrivateBoostingClassifier(classes=[0, 1], noise_multiplier=noise, **public).fit(X, y), X, y


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_answers_rise_and_fall_exactly_even_under_much_noise(kind, adjacency):
    def steps(signs, column):
        model, X, _ = fitted(kind, signs, adjacency=adjacency)
        answer = model.predict if kind == "numbers" else model.decision_function
        found = []
        for value in np.linspace(-1.2, 1.2, 13):
            rows = X[:30].copy()
            rows[:, column] = value
            rows[::7, 2] = np.nan
            found.append(answer(rows))
        return np.diff(found, axis=0)

    assert np.all(steps([1, -1, 0], 0) >= 0)
    assert np.all(steps([1, -1, 0], 1) <= 0)
    assert np.any(steps([1, -1, 0], 0) > 0)
    assert not np.all(steps(None, 0) >= 0), "without directions noise makes waves"


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_models_with_directions_learn(kind):
    model, X, y = fitted(kind, [1, -1, 0], noise=0.3, n_estimators=40)
    assert model.score(X, y) > 0.8
    assert len(model.weights_) == 3, "the linear start has no direction"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"monotonic_cst": [1, 0]}, "monotonic_cst"),
        ({"monotonic_cst": [2, 0, 0]}, "monotonic_cst"),
        ({"monotonic_cst": 1}, "monotonic_cst"),
        ({"monotonic_cst": [0.5, 0, 0]}, "monotonic_cst"),
        ({"monotonic_cst": [1, 0, 0], "indicators": [[0]]}, "monotonic_cst"),
        ({"monotonic_cst": [1, 0, 0], "linear_share": 0.5}, "linear_share"),
        ({"monotonic_cst": [1, 0, 0], "classes": [0, 1, 2]}, "monotonic_cst"),
    ],
)
def test_directions_that_are_none_are_refused_by_name(options, named):
    model = PrivateBoostingClassifier(**{"classes": [0, 1], "nominal_rows": 3, **options})
    with pytest.raises((ArgumentError, TypeError), match=named):
        model.fit(np.zeros((3, 3)), [0, 1, 1])
