"""Naive Bayes by noisy sums: its price, what it learns, class weights, containers, refused parameters, conventions."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.learners import PrivateNaiveBayes
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_CHECKS
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source


def texts(rows, *, seed, columns=60):
    """Counts of terms, most of them the same in both classes, scaled to norm 1, and classes of unlike size."""
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.3).astype(int)
    rate = np.full((2, columns), 0.1)
    rate[0, :6], rate[1, 6:12] = 0.5, 0.5
    counts = random.poisson(rate[labels]).astype(float)
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1.0), labels


def model(**settings):
    return PrivateNaiveBayes(**{"classes": [0, 1], "noise_multiplier": 1.0, "random": keyed_source(1), **settings})


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_the_price_is_that_of_one_gaussian_mechanism_whatever_else_is_set(adjacency):
    found = model(noise_multiplier=3.0, adjacency=adjacency, row_norm=7.0, class_weights="balanced").guarantee()
    expected = gaussian(noise_multiplier=3.0, adjacency=adjacency)
    assert found.epsilon(delta=1e-6) == expected.epsilon(delta=1e-6)
    assert found.adjacency is expected.adjacency


def test_with_hardly_any_noise_it_answers_as_naive_bayes_does():
    X, y = texts(4000, seed=1)
    rows, labels = texts(2000, seed=2)
    private = model(noise_multiplier=0.05).fit(X, y).score(rows, labels)
    plain = MultinomialNB().fit(X, y).score(rows, labels)
    assert private > plain - 0.02 > 0.8


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_with_noise_it_loses_little(adjacency):
    X, y = texts(4000, seed=1)
    rows, labels = texts(2000, seed=2)
    assert model(noise_multiplier=2.0, adjacency=adjacency).fit(X, y).score(rows, labels) > 0.85


def test_under_replacement_the_noise_is_a_root_of_2_larger():
    X, y = texts(800, seed=1, columns=13)
    fits = {
        adjacency: [model(adjacency=adjacency, random=keyed_source(seed)).fit(X, y) for seed in range(60)]
        for adjacency in ("add_or_remove_one", "replace_one")
    }
    added, replaced = (np.std([fit.weights_[0] for fit in each], axis=0)[:-1].mean() for each in fits.values())
    assert replaced == pytest.approx(math.sqrt(2.0) * added, rel=0.12)


def test_balanced_classes_count_alike_at_the_same_price():
    X, y = texts(4000, seed=1)
    rows, labels = texts(2000, seed=2)

    def recall(fitted):
        return np.mean(fitted.predict(rows)[labels == 1] == 1)

    plain, balanced = model().fit(X, y), model(class_weights="balanced").fit(X, y)
    assert recall(balanced) > recall(plain)
    assert recall(model(class_weights={1: 1e6}).fit(X, y)) == 1.0
    assert plain.guarantee_.epsilon(delta=1e-6) == balanced.guarantee_.epsilon(delta=1e-6)


def test_a_negative_cell_counts_as_zero():
    X, y = texts(500, seed=1)
    found = model().fit(np.hstack([X, -X]), y).weights_[0]
    again = model().fit(np.hstack([X, 0 * X]), y)
    scaled = np.hstack([X, -X])[:9]
    assert found.shape == (121, 2)
    assert np.array_equal(again.predict(scaled), again.predict(np.maximum(scaled, 0.0)))


def test_sparse_rows_and_rows_some_at_a_time_give_the_same_model(monkeypatch):
    X, y = texts(700, seed=1)
    whole = model().fit(X, y).weights_[0]
    monkeypatch.setattr("dpselect.learners.term_weights._CELLS", 61 * 100)
    for table in (X, sparse.csr_matrix(X), sparse.coo_matrix(X), X.tolist(), np.asfortranarray(X)):
        assert np.array_equal(model().fit(table, y).weights_[0], whole)


def test_what_is_known_of_a_row_depends_on_that_row_alone():
    X, y = texts(300, seed=1)
    fitted = model().fit(X, y)
    assert np.array_equal(fitted.decision_function(X)[17:19], fitted.decision_function(X[17:19]))


def test_no_row_and_no_known_label_are_tables_too():
    for X, y in ((np.zeros((0, 2)), []), ([[1.0, 2.0]], [None]), ([[math.nan, "x"]], ["9"]), ([[-1.0, -1.0]], [1])):
        assert np.all(np.isfinite(model().fit(X, y).weights_[0]))


def test_a_copy_draws_other_noise_and_keeps_what_was_learnt():
    fitted = model().fit(*texts(300, seed=1))
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.random is None
    assert np.array_equal(copy.weights_[0], fitted.weights_[0])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"noise_multiplier": 0.01}, "noise_multiplier"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"classes": range(129)}, "classes"),
        ({"class_weights": {7: 1.0}}, "class_weights"),
        ({"class_weights": "even"}, "class_weights"),
    ],
)
def test_parameters_are_refused_by_name(options, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        model(**options).fit(np.zeros((3, 2)), [0, 1, 1])


def test_only_the_listed_conventions_of_scikit_learn_are_broken():
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(
            PrivateNaiveBayes(noise_multiplier=0.05),
            expected_failed_checks=EXPECTED_FAILED_CHECKS,
            on_fail=None,
            on_skip=None,
        )
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 35
