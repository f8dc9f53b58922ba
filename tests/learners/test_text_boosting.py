"""Boosted trees on texts and other columns: their price, what they learn, which rows count, refused parameters."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners import boosted_trees
from dpselect.learners.boosted_trees import BoostedTreesClassification, BoostedTreesRegression
from dpselect.learners.term_weights import TermWeights
from dpselect.learners.text_boosting import TextBoostingClassification, TextBoostingRegression
from dpselect.learners.tree_rounds import TreeRounds
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source

WORDS = 40
PUBLIC = {"texts": [range(1, 1 + WORDS)], "indicators": [[1 + WORDS, 2 + WORDS]], "nominal_rows": 2000}


def table(rows=2000, *, seed=1):
    """A number, words and a category. The number decides whether the label follows from the words or the category."""
    random = np.random.default_rng(seed)
    kind, number = random.integers(0, 2, rows), random.uniform(-1.0, 1.0, rows)
    rate = np.full((2, WORDS), 0.1)
    rate[0, :5], rate[1, 5:10] = 0.6, 0.6
    counts = random.poisson(rate[kind]).astype(float)
    counts /= np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1.0)
    category = random.integers(0, 2, rows)
    return np.hstack([number[:, None], counts, np.eye(2)[category]]), np.where(number > 0.0, kind, category)


def classifier(**settings):
    given = {"classes": [0, 1], "noise_multiplier": 1.0, "n_estimators": 40, "random": keyed_source(1), **settings}
    return TextBoostingClassification(**{**PUBLIC, **given})


def regressor(**settings):
    given = {
        "label_bounds": (0, 10),
        "noise_multiplier": 1.0,
        "n_estimators": 40,
        "random": keyed_source(1),
        **settings,
    }
    return TextBoostingRegression(**{**PUBLIC, **given})


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_price_is_that_of_one_gaussian_mechanism(make, adjacency):
    found = make(noise_multiplier=3.0, adjacency=adjacency, text_share=0.3).guarantee()
    expected = gaussian(noise_multiplier=3.0, adjacency=adjacency)
    assert found.epsilon(delta=1e-6) == expected.epsilon(delta=1e-6)
    assert found.adjacency is expected.adjacency


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("make", "trees"), [(classifier, BoostedTreesClassification), (regressor, BoostedTreesRegression)]
)
def test_both_parts_together_cost_what_is_stated(make, trees, share, monkeypatch):
    """The mu of the words and of the trees, as they are made by a fit, add up in squares."""
    spent = []
    learn, fit = TermWeights.learn, trees.fit
    monkeypatch.setattr(
        TermWeights, "learn", lambda self, *args: spent.append(1.0 / self.noise_multiplier) or learn(self, *args)
    )
    monkeypatch.setattr(
        trees, "fit", lambda self, *args: spent.append(self.guarantee().gaussian_mu) or fit(self, *args)
    )
    X, y = table(50)
    make(noise_multiplier=2.0, text_share=share, n_estimators=2).fit(X, y)
    assert len(spent) == 2
    assert 0.5 * (1 - 1e-9) < math.hypot(*spent) <= 0.5


def test_it_learns_what_words_and_numbers_do_together():
    X, y = table()
    rows, labels = table(seed=2)
    fitted = classifier().fit(X, y)
    assert np.mean(fitted.predict(rows) == labels) > 0.85
    assert fitted.predict_proba(rows[:3]).sum(axis=1) == pytest.approx([1.0] * 3)


def test_it_learns_numbers():
    X, y = table()
    rows, labels = table(seed=2)
    fitted = regressor().fit(X, 10.0 * y)
    error = np.mean((fitted.predict(rows) - 10.0 * labels) ** 2)
    assert error < 0.6 * np.var(10.0 * labels)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_model_that_is_loaded_is_the_one_that_was_trained(make):
    """A study keeps the weights and makes the rest from public facts."""
    X, y = table(300)
    fitted = make(n_estimators=3).fit(X, y)
    empty = make(n_estimators=3).fit_nothing(X.shape[1])
    assert [each.shape for each in empty.weights_] == [each.shape for each in fitted.weights_]
    empty.weights_ = fitted.weights_
    for model in (empty, pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(model.predict(X), fitted.predict(X))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_an_answer_depends_on_its_row_alone(make):
    X, y = table(300)
    fitted = make(n_estimators=3).fit(X, y)
    assert np.array_equal(fitted.predict(X)[17:19], fitted.predict(X[17:19]))


def test_rows_without_a_known_label_count_nowhere():
    X, y = table(300)
    strange = np.vstack([X, np.full((1, X.shape[1]), np.nan)])
    for made, label in ((classifier, 7), (regressor, math.nan)):
        models = (
            made(n_estimators=3).fit(X, np.asarray(y, dtype=float)),
            made(n_estimators=3).fit(strange, [*map(float, y), label]),
        )
        assert all(np.array_equal(one, other) for one, other in zip(*(m.weights_ for m in models), strict=True))


@pytest.mark.parametrize(("make", "unknown"), [(classifier, 7), (regressor, math.nan)])
def test_under_replacement_the_trees_go_by_all_rows_not_by_those_with_a_known_label(make, unknown, monkeypatch):
    """How many labels are known is private. The number of rows is not, and the bound on gradients follows from it."""
    counts = []
    monkeypatch.setattr(
        boosted_trees, "TreeRounds", lambda **public: counts.append(public["rows"]) or TreeRounds(**public)
    )
    X, y = table(50)
    few = [float(label) if place < 10 else unknown for place, label in enumerate(y)]
    for labels in (y.astype(float), few):
        make(adjacency="replace_one", nominal_rows=None, n_estimators=2).fit(X, labels)
    assert counts == [50, 50]


def test_no_row_is_a_table_too():
    for made in (classifier, regressor):
        found = made(n_estimators=3).fit(np.zeros((0, 3 + WORDS)), [])
        assert all(np.isfinite(each).all() for each in found.weights_)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"texts": []}, "texts"),
        ({"texts": [[1], [1]]}, "texts"),
        ({"texts": [[99]]}, "texts"),
        ({"texts": [["x"]]}, "texts"),
        ({"indicators": [[1]]}, "indicators"),
        ({"indicators": [[99]]}, "indicators"),
        ({"text_share": 1.0}, "text_share"),
        ({"noise_multiplier": 1e5}, "noise_multiplier"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"adjacency": "swap"}, "adjacency"),
    ],
)
@pytest.mark.parametrize("make", [classifier, regressor])
def test_parameters_are_refused_by_name(make, options, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        make(**options).fit(np.zeros((3, 3 + WORDS)), [0, 1, 1])
