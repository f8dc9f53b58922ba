"""Ridge regression and classification: their price, what they learn, class weights, refused parameters, conventions."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.learners import PrivateRidge, PrivateRidgeClassifier
from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import targets_of, unit_rows
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_CHECKS, EXPECTED_FAILED_REGRESSOR_CHECKS
from dpselect.learners.sufficient_statistics import RowSums
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_the_price_is_that_of_one_gaussian_mechanism_whatever_else_is_set(adjacency):
    for model in (
        PrivateRidge(noise_multiplier=3.0, adjacency=adjacency, floor=9.0, gram_share=0.9),
        PrivateRidgeClassifier(noise_multiplier=3.0, adjacency=adjacency, class_weights={1: 5.0}, intercept_scale=1.0),
    ):
        expected = gaussian(noise_multiplier=3.0, adjacency=adjacency)
        assert model.guarantee().epsilon(delta=1e-6) == expected.epsilon(delta=1e-6)
        assert model.guarantee().adjacency is expected.adjacency


# what is learnt


def test_with_hardly_any_noise_the_regression_is_that_of_least_squares():
    random = np.random.default_rng(1)
    X = random.uniform(-0.5, 0.5, (20_000, 3))
    y = 3 + X @ [4.0, -2.0, 0.0] + random.normal(size=20_000) * 0.1
    model = PrivateRidge(label_bounds=(-1, 7), noise_multiplier=0.05, random=keyed_source(2)).fit(X, y)
    assert model.predict([[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]]) == pytest.approx([3, 5, 2], abs=0.05)
    assert model.score(X, y) > 0.98
    assert model.predict([[1, -1, 0]]) <= 7


def test_with_hardly_any_noise_classes_and_their_shares_are_found():
    random = np.random.default_rng(3)
    X = np.repeat(np.eye(3), 3000, axis=0)
    shares = [[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]
    y = np.concatenate([random.choice(["a", "b", "c"], 3000, p=p) for p in shares])
    model = PrivateRidgeClassifier(classes=["c", "a", "b"], noise_multiplier=0.05, random=keyed_source(2)).fit(X, y)
    assert model.predict(np.eye(3)).tolist() == ["a", "b", "c"]
    assert model.predict_proba(np.eye(3)) == pytest.approx(np.array(shares), abs=0.15)


def test_a_heavier_class_is_found_more_often():
    random = np.random.default_rng(3)
    X, y = np.ones((5000, 1)), random.random(5000) < 0.2
    options = {"classes": [False, True], "noise_multiplier": 0.05, "random": keyed_source(1)}
    assert not PrivateRidgeClassifier(**options).fit(X, y).predict([[1.0]])[0]
    assert PrivateRidgeClassifier(class_weights={True: 6.0}, **options).fit(X, y).predict([[1.0]])[0]
    lighter = PrivateRidgeClassifier(class_weights={False: 0.5, True: 3.0}, **options).fit(X, y)
    assert lighter.predict([[1.0]])[0]


def test_no_row_and_no_known_label_are_tables_too():
    for X, y in ((np.zeros((0, 2)), []), ([[1.0, 2.0]], [None]), ([[math.nan, "x"]], ["9"])):
        assert np.all(np.isfinite(PrivateRidge(label_bounds=(0, 1)).fit(X, y).weights_[0]))
        assert np.all(np.isfinite(PrivateRidgeClassifier(classes=[0, 1]).fit(X, y).weights_[0]))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"noise_multiplier": 0.01}, "noise_multiplier"),
        ({"noise_multiplier": "much"}, "noise_multiplier"),
        ({"floor": 0.0}, "floor"),
        ({"gram_share": 1.0}, "gram_share"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"intercept_scale": -0.1}, "intercept_scale"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"label_bounds": (1, 1)}, "label_bounds"),
        ({"label_bounds": None}, "label_bounds"),
        ({"label_bounds": 3}, "label_bounds"),
        ({"classes": range(129)}, "classes"),
        ({"class_weights": {7: 1.0}}, "class_weights"),
        ({"class_weights": {0: 0.0}}, "class_weights"),
    ],
)
def test_parameters_are_refused_by_name(options, named):
    made = []
    for kind, public in ((PrivateRidge, {"label_bounds": (0, 1)}), (PrivateRidgeClassifier, {"classes": [0, 1]})):
        if set(options) <= set(kind().get_params()):
            made.append(kind(**{**public, **options}))
    assert made
    for model in made:
        with pytest.raises((ArgumentError, TypeError), match=named):
            model.fit(np.zeros((3, 2)), [0, 1, 1])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (PrivateRidge(label_bounds=(-4, 4), row_norm=4, noise_multiplier=0.05), EXPECTED_FAILED_REGRESSOR_CHECKS),
        (PrivateRidgeClassifier(noise_multiplier=0.05), EXPECTED_FAILED_CHECKS),
    ],
    ids=["regression", "classes"],
)
def test_only_the_listed_conventions_of_scikit_learn_are_broken(model, expected):
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 35


# sums over rows in place of the rows


def sums_of(X, t, row_norm, step=STEP):
    z = (unit_rows(X, row_norm, intercept=0.0) / STEP).astype(np.int64)
    t = np.rint(t / step).astype(np.int64)
    return RowSums(row_norm, len(z), z.sum(axis=0), z.T @ z, t.sum(axis=0), z.T @ t)


@pytest.mark.parametrize("intercept", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_sums_give_the_weights_of_their_rows_to_the_bit(intercept, adjacency):
    random = np.random.default_rng(4)
    X, y = random.normal(size=(300, 4)), random.normal(size=300)
    shared = {"noise_multiplier": 2.0, "intercept_scale": intercept, "row_norm": 2.0, "adjacency": adjacency}
    model = PrivateRidge(label_bounds=(-1, 3), **shared)
    parts = [sums_of(X[p], targets_of(y[p], len(y[p]), (-1, 3))[:, None], 2.0) for p in (slice(0, 99), slice(99, None))]
    of_rows = model.set_params(random=keyed_source(5)).fit(X, y)
    wanted, guarantee = of_rows.weights_[0], of_rows.guarantee_
    of_sums = model.set_params(random=keyed_source(5)).fit_sums(parts[0] + parts[1])
    assert np.array_equal(of_sums.weights_[0], wanted)
    assert of_sums.guarantee_.epsilon(delta=1e-6) == guarantee.epsilon(delta=1e-6)
    assert np.array_equal(
        of_sums.predict(X), PrivateRidge(label_bounds=(-1, 3), random=keyed_source(5), **shared).fit(X, y).predict(X)
    )

    labels = np.where(y > 0, "b", np.where(y > -1, "a", "c"))
    classifier = PrivateRidgeClassifier(classes=["a", "b", "c"], **shared)
    wanted = classifier.set_params(random=keyed_source(5)).fit(X, labels).weights_[0]
    targets = 3.0 * (labels[:, None] == ["a", "b", "c"]) - 1.0
    found = classifier.set_params(random=keyed_source(5)).fit_sums(sums_of(X, targets, 2.0, 1.0))
    assert np.array_equal(found.weights_[0], wanted)
    assert set(found.predict(X)) <= {"a", "b", "c"}


def test_sums_that_do_not_fit_are_refused():
    sums = sums_of(np.ones((3, 2)), np.zeros((3, 2)), 1.0, 1.0)
    with pytest.raises(ArgumentError, match=r"row_norm must be 1\.0"):
        PrivateRidgeClassifier(classes=[0, 1], row_norm=2.0).fit_sums(sums)
    with pytest.raises(ArgumentError, match="classes must be given"):
        PrivateRidgeClassifier().fit_sums(sums)
    with pytest.raises(ArgumentError, match="a target for each"):
        PrivateRidgeClassifier(classes=[0, 1, 2]).fit_sums(sums)
    with pytest.raises(ArgumentError, match="at most"):
        PrivateRidgeClassifier(classes=[0, 1]).fit_sums(dataclasses.replace(sums, count=2**28))
