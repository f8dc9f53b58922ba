"""Boosted trees as models: what they learn, odd tables, copies, refusals by name, scikit-learn's conventions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.learners import PrivateBoostingClassifier, PrivateBoostingRegressor
from dpselect.learners.rows import PublicRowCountWarning
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_CHECKS, EXPECTED_FAILED_REGRESSOR_CHECKS
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source

BOTH = [
    (PrivateBoostingRegressor, {"label_bounds": (0, 1)}),
    (PrivateBoostingClassifier, {"classes": [0, 1]}),
]


def two_columns(rows=3000, seed=1):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (rows, 2))


def classifier(noise=0.5, seed=2, **options):
    public = {"classes": [0, 1], "nominal_rows": 4000, **options}
    return PrivateBoostingClassifier(noise_multiplier=noise, random=keyed_source(seed), **public)


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize(("kind", "public"), BOTH)
def test_the_price_is_that_of_one_gaussian_mechanism_with_any_other_parameters(kind, public, adjacency):
    for options in ({}, {"n_estimators": 3, "max_depth": 8, "learning_rate": 2.0, "max_bins": 9, "nominal_rows": 1e6}):
        found = kind(noise_multiplier=3.0, adjacency=adjacency, **public, **options).guarantee()
        expected = gaussian(noise_multiplier=3.0, adjacency=adjacency)
        assert found.gaussian_mu == expected.gaussian_mu
        assert found.epsilon(delta=1e-6) == expected.epsilon(delta=1e-6)
        assert found.adjacency is expected.adjacency


# what is learnt


def test_two_columns_together_are_learnt_and_noise_hurts():
    """The sign of a product: no column tells anything alone."""
    X, new = two_columns(), two_columns(seed=2)
    y, y_new = (((each > 0).sum(axis=1) == 1).astype(int) for each in (X, new))
    scores = [classifier(noise, n_estimators=25).fit(X, y).score(new, y_new) for noise in (0.5, 400.0)]
    assert scores[0] > 0.9
    assert scores[1] < 0.75


def test_a_product_of_two_columns_is_learnt_and_noise_hurts():
    X, new = two_columns(), two_columns(seed=2)
    options = {"label_bounds": (-10, 10), "nominal_rows": 4000, "n_estimators": 60}
    scores = [
        PrivateBoostingRegressor(noise_multiplier=noise, random=keyed_source(3), **options)
        .fit(X, 10 * X.prod(axis=1))
        .score(new, 10 * new.prod(axis=1))
        for noise in (0.5, 400.0)
    ]
    assert scores[0] > 0.9
    assert scores[1] < 0.3


def test_categories_missing_cells_and_three_classes_are_learnt():
    random = np.random.default_rng(4)
    kind, number = random.integers(0, 3, 2500), random.uniform(-1, 1, 2500)
    missing = random.random(2500) < 0.3
    X = np.column_stack([np.where(missing, np.nan, number), np.eye(3)[kind]])
    y = np.where(missing, "none", np.where((kind == 1) ^ (number > 0), "a", "b"))
    model = classifier(classes=["b", "none", "a"], indicators=[[1, 2, 3]], n_estimators=25)
    assert model.fit(X, y).score(X, y) > 0.9
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1)


def test_a_heavier_class_is_found_more_often():
    X = two_columns(600)
    y = (np.random.default_rng(3).random(600) < 0.2).astype(int)
    for share in (0.0, 0.5):
        options = {"n_estimators": 20, "linear_share": share, "noise": 0.05}
        assert np.mean(classifier(**options).fit(X, y).predict(X)) < 0.2
        assert np.mean(classifier(class_weights={1: 9.0}, **options).fit(X, y).predict(X)) > 0.8


def test_a_skewed_column_has_thresholds_where_its_rows_are():
    random = np.random.default_rng(5)
    X = np.column_stack([random.uniform(-1, 1, 4000), random.lognormal(0, 1, 4000)])
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 1)).astype(int)
    model = classifier(bounds=[(-1, 1), (0, 200)], n_estimators=40, linear_share=0.0)
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_the_linear_start_is_there_if_it_is_paid_for(adjacency):
    model = classifier(adjacency=adjacency, n_estimators=5).fit(two_columns(50), [0, 1] * 25)
    assert len(model.weights_) == (4 if adjacency == "add_or_remove_one" else 3)
    assert len(classifier(linear_share=0.0, n_estimators=5).fit(two_columns(50), [0, 1] * 25).weights_) == 3
    never = classifier(1e5, nominal_rows=1e12, linear_share=0.01, n_estimators=5)
    assert len(never.fit(two_columns(50), [0, 1] * 25).weights_) == 3, "so much noise a step it does not take"


# odd tables


@pytest.mark.parametrize(("kind", "public"), BOTH)
def test_no_row_and_no_known_label_are_tables_too(kind, public):
    for X, y in ((np.zeros((0, 2)), []), ([[1.0, 2.0]], [None]), ([[np.nan, "x"], [np.inf, -np.inf]], ["9", "k"])):
        for share in (0.0, 0.5):
            model = kind(nominal_rows=10, n_estimators=3, linear_share=share, **public).fit(X, y)
            assert all(np.all(np.isfinite(each)) for each in model.weights_)
            assert len(model.predict(X)) == len(X)


def test_the_container_does_not_matter():
    X, y = two_columns(200), [0, 1] * 100
    X[3, 1] = np.nan
    options = {"n_estimators": 4, "nominal_rows": 200}
    first = classifier(**options).fit(X, y)
    for other in (X.tolist(), X.astype(object), np.asfortranarray(X)):
        model = classifier(**options).fit(other, y)
        assert all(np.array_equal(*pair) for pair in zip(first.weights_, model.weights_, strict=True))
        assert np.array_equal(model._scores(other), first._scores(X))


def test_a_single_class_is_the_answer():
    model = classifier(classes=["only"], n_estimators=2).fit(two_columns(5), ["only"] * 4 + ["other"])
    assert model.predict(two_columns(3)).tolist() == ["only"] * 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.3, 1e308])
@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize(("kind", "public"), BOTH)
def test_weights_of_any_doubles_predict(kind, public, share, value):
    """A model may come from a file that somebody made."""
    X = two_columns(20)
    model = kind(nominal_rows=20, n_estimators=3, linear_share=share, **public).fit(X, [0, 1] * 10)
    model.weights_ = tuple(np.full_like(each, value) for each in model.weights_)
    with warnings.catch_warnings(action="ignore"):
        assert model.predict(X).shape == (20,)


def test_rows_are_predicted_alone(monkeypatch):
    X = two_columns(100)
    model = classifier(n_estimators=10).fit(X, [0, 1] * 50)
    whole = model.predict_proba(X)
    monkeypatch.setattr("dpselect.learners.boosted_trees.CHUNK", 7)
    assert np.array_equal(model.predict_proba(X), whole)
    assert np.array_equal(np.vstack([model.predict_proba(X[[k]]) for k in range(100)]), whole)


def test_copies_predict_alike_and_draw_anew():
    X, y = two_columns(100), [0, 1] * 50
    model = classifier(n_estimators=4, nominal_rows=100).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.random is None
    assert copied._linear.random is None
    assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))
    assert not np.array_equal(copied.fit(X, y).weights_[-1], model.weights_[-1])
    new = clone(model)
    assert not hasattr(new, "weights_")
    assert new._linear is None
    model.set_params(linear_share=0.0).fit(X, y)
    assert model._linear is None


# refused


class Untouchable:
    def __getattribute__(self, attribute):
        raise AssertionError("the data was looked at")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"noise_multiplier": 0.01}, "noise_multiplier"),
        ({"noise_multiplier": "much"}, "noise_multiplier"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 10_001}, "n_estimators"),
        ({"max_depth": 9}, "max_depth"),
        ({"max_depth": 2.5}, "max_depth"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"linear_share": 0.96}, "linear_share"),
        ({"linear_share": -0.1}, "linear_share"),
        ({"max_bins": 1}, "max_bins"),
        ({"max_bins": 256}, "max_bins"),
        ({"nominal_rows": 0}, "nominal_rows"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"random": 7}, "random"),
        ({"label_bounds": (1, 1)}, "label_bounds"),
        ({"label_bounds": None}, "label_bounds"),
    ],
)
def test_parameters_are_refused_by_name_before_the_data_is_looked_at(options, named):
    made = [kind(**{**public, **options}) for kind, public in BOTH if set(options) <= set(kind().get_params())]
    assert made
    for model in made:
        with pytest.raises((ArgumentError, TypeError), match=named):
            model.fit(Untouchable(), Untouchable())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": [(0, 1)]}, "bounds"),
        ({"indicators": [[5]]}, "indicators"),
        ({"classes": range(129)}, "classes"),
        ({"classes": [0, 0]}, "classes"),
        ({"class_weights": "even"}, "class_weights must be numbers.*balanced.*even"),
        ({"class_weights": 3}, "class_weights must be numbers.*3"),
        ({"class_weights": {7: 1.0}}, "class_weights"),
        ({"class_weights": {0: 0.0}}, "class_weights"),
    ],
)
def test_facts_about_columns_and_classes_are_refused_by_name(options, named):
    made = [kind(**{**public, **options}) for kind, public in BOTH if set(options) <= set(kind().get_params())]
    for model in made:
        with pytest.raises((ArgumentError, TypeError), match=named):
            model.fit(np.zeros((3, 2)), [0, 1, 1])


def test_a_linear_start_has_no_price_when_rows_are_replaced():
    with pytest.raises(AdjacencyError, match="linear_share"):
        classifier(adjacency="replace_one", linear_share=0.5).fit(Untouchable(), Untouchable())


def test_a_number_of_rows_that_is_not_public_is_announced():
    with pytest.warns(PublicRowCountWarning):
        classifier(nominal_rows=None, n_estimators=2).fit(two_columns(4), [0, 1, 0, 1])
    with warnings.catch_warnings(action="error"):
        classifier(nominal_rows=None, n_estimators=2, adjacency="replace_one").fit(two_columns(4), [0, 1, 0, 1])


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            PrivateBoostingRegressor(label_bounds=(-4, 4), bounds=(-4, 4), noise_multiplier=0.05, n_estimators=20),
            EXPECTED_FAILED_REGRESSOR_CHECKS,
        ),
        (PrivateBoostingClassifier(bounds=(-4, 4), noise_multiplier=0.05, n_estimators=20), EXPECTED_FAILED_CHECKS),
    ],
    ids=["regression", "classes"],
)
def test_only_the_listed_conventions_of_scikit_learn_are_broken(model, expected):
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 35


def test_a_list_that_is_changed_after_a_fit_does_not_change_its_model():
    random = np.random.default_rng(2)
    X = np.column_stack([random.uniform(0, 1, 200), *np.eye(2)[random.integers(0, 2, 200)].T])
    y = (X[:, 0] > 0.5).astype(int)
    bounds = [[0.0, 1.0]]
    model = PrivateBoostingClassifier(
        bounds=bounds, indicators=[[1, 2]], classes=[0, 1], nominal_rows=200, noise_multiplier=0.05, n_estimators=5
    ).fit(X, y)
    before = model.predict_proba(X)
    bounds[0][1] = 9.0
    assert np.array_equal(model.predict_proba(X), before)
