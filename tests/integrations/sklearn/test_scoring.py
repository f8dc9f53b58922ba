"""Scores of runs on private rows: scikit-learn's metrics by name, row scores, failing rows, intervals."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import check_scoring
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, RowScore
from dpselect.integrations.sklearn.scoring import scoring_of
from dpselect.learners import DPSGDRegressor, OutputPerturbationClassifier, PrivateRidge
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.study.metrics import ScoreNoise
from tests.integrations.sklearn import attacks_cases as attacks
from tests.integrations.sklearn.plan_cases import Owned

# scores


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(), min_size=1, max_size=20), gone=st.integers(0, 19))
def test_one_row_moves_a_row_score_by_at_most_its_steps(values, gone):
    gone %= len(values)
    answers = np.array(values)
    score = RowScore(lambda y, _: y, lower=-2.0, upper=3.0)
    scoring = scoring_of(None, score, noise=None, rows=1.0)
    model = Owned()
    model.predict = lambda X: X
    whole = scoring.total(model, answers, answers)
    less = np.delete(answers, gone)
    moved = whole - scoring.total(model, less, less)
    assert np.min(moved) >= 0
    assert np.sum(moved) == 2**20


def test_the_noise_of_a_row_score_covers_all_steps():
    """Scale 2**20/epsilon for each of the two cells, of which the score is half the difference.

    The mean of |X - Y|/2 for two Laplace variables of scale 2 is 1.5; of 400 draws it is within 20 % of that but
    for 1 key in 10,000.
    """
    noise = ScoreNoise(0.5, Adjacency.ADD_OR_REMOVE_ONE)
    scoring = scoring_of(None, RowScore(abs, lower=0.0, upper=1.0), noise=noise, rows=1.0)
    source = keyed_source(3)
    noisy = [scoring.score(scoring.noisy(np.zeros(2, dtype=np.int64), source)) for _ in range(400)]
    found = np.mean([abs(score - 0.5) for score in noisy])
    assert found == pytest.approx(1.5, rel=0.2)


def test_predictions_of_another_shape_count_nothing():
    """A column of answers equals every label of its class: one row would be counted many times."""
    model = Owned()
    model.predict = lambda X: np.ones((len(X), 1))
    model.classes_ = np.array([0, 1])
    scoring = scoring_of(model, "accuracy", noise=None, rows=1.0, classes=model.classes_)
    with pytest.raises(ArgumentError, match="one label for each row"):
        scoring.strict_total(model, np.zeros((5, 2)), np.ones(5))
    assert scoring.total(model, np.zeros((5, 2)), np.ones(5)).tolist() == [[0, 0, 0], [0, 5, 0]]


def chance_of_the_label(y, answers):
    return answers[np.arange(len(y)), y]


def test_a_label_that_a_row_score_does_not_know_costs_that_row_and_no_other():
    labels = attacks.Y.copy()
    labels[::10] = 7
    probability = RowScore(chance_of_the_label, response="predict_proba")
    model = OutputPerturbationClassifier(classes=[0, 1], nominal_rows=120, random=keyed_source(2))
    model.fit(attacks.X, attacks.Y)
    known = labels != 7
    rule = scoring_of(model, probability, noise=None, rows=120.0)
    good, bad = rule.total(model, attacks.X, labels)
    assert good == rule.total(model, attacks.X[known], labels[known])[0] > 0
    assert good + bad == 120 * 2**20
    with pytest.raises(IndexError):
        probability(model, attacks.X, labels)
    assert attacks.search(scoring=probability).fit(attacks.X, labels).best_estimator_ is not None


# scores


@pytest.mark.parametrize("rule", [None, RowScore(lambda y, answers: y == answers)])
def test_a_scoring_row_on_which_the_model_fails_changes_no_other(rule):
    """Otherwise one row among those put aside makes every run fail."""
    scoring = scoring_of(attacks.Constant(), rule or "accuracy", noise=None, rows=1.0, classes=np.unique(attacks.Y))
    model = attacks.Constant().fit(attacks.X, attacks.Y)
    ruined = attacks.X.copy()
    ruined[7] = np.inf
    expected = scoring.total(model, np.delete(attacks.X, 7, axis=0), np.delete(attacks.Y, 7))
    worst = scoring.metric.lost(attacks.Y[7:8])
    assert np.sum(expected[0]) > 0
    np.testing.assert_array_equal(scoring.total(model, ruined, attacks.Y), expected + worst)


CLASSES = ["accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc"]
NUMBERS = ["neg_mean_absolute_error", "neg_mean_squared_error", "r2"]


def rows(count=400, seed=1):
    random = np.random.default_rng(seed)
    X = random.uniform(-0.7, 0.7, (count, 2))
    return X, X[:, 0] * 4.0 + 5.0 + 0.1 * random.normal(size=count)


def search(estimator, space, **options):
    settings = {"repetitions": Fixed(count=3), "nominal_rows": 400, "score_epsilon": 2.0, "release_score": True}
    return PrivateSearchCV(estimator, space, random=keyed_source(2), **{**settings, **options})


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("labels", [(0, 1), ("well", "ill"), (True, False)])
def test_classifiers_whatever_their_labels_are(name, labels):
    X, y = rows()
    learner = OutputPerturbationClassifier(epsilon=4.0)
    found = search(learner, {"regularization": [0.01, 0.02]}, scoring=name, classes=list(labels))
    found.fit(X, np.where(y > 5.0, labels[1], labels[0]))
    assert found.best_score_ > (-0.75 if name == "neg_log_loss" else 0.7)
    assert np.mean(found.predict(X) == np.where(y > 5.0, labels[1], labels[0])) > 0.9


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("name", [*CLASSES, *NUMBERS])
def test_a_run_that_no_row_is_scored_by_does_not_fail(name, adjacency):
    """The part for scoring may be empty, or hold one row: failing would tell which."""
    learner = OutputPerturbationClassifier(epsilon=4.0) if name in CLASSES else PrivateRidge(label_bounds=(0, 10))
    classes = [0, 1] if name in CLASSES else None
    found = search(learner, {}, scoring=name, classes=classes, adjacency=adjacency, delta=1e-5, constant_runs=False)
    for rows in (0, 1):
        assert found.fit(np.zeros((rows, 2)), np.zeros(rows, dtype=int)).best_estimator_ is not None


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("learner", [DPSGDRegressor(label_bounds=(0, 10)), PrivateRidge(label_bounds=(0, 10))])
def test_regressors_with_public_bounds(name, learner):
    X, y = rows()
    found = search(learner, {"row_norm": [1.0, 1.1]}, scoring=name, delta=1e-5).fit(X, y)
    assert found.best_score_ > {"r2": 0.0, "neg_mean_absolute_error": -1.5, "neg_mean_squared_error": -6.0}[name]
    assert np.mean(np.abs(found.predict(X) - y)) < 1.5


def test_folds_in_pipelines_add_up_and_cost_the_same_for_every_metric():
    X, y = rows()
    learner = make_pipeline(Normalizer(), OutputPerturbationClassifier(epsilon=4.0))
    space = {"outputperturbationclassifier__regularization": [0.01, 0.02]}
    prices = set()
    for name in CLASSES:
        found = search(learner, space, scoring=name, classes=[0, 1], cv=3).fit(X, (y > 5.0).astype(int))
        prices.add(found.guarantee_.epsilon(delta=0))
    assert len(prices) == 1


def test_the_ranks_of_a_rare_class_choose_what_accuracy_does_not():
    """The rarer class is 4 of 100; regularisation that is too strong ranks as well as a coin with its noise."""
    X, y = rows(2000)
    rare = (y > 7.6).astype(int)
    learner = OutputPerturbationClassifier(epsilon=8.0)
    model = learner.set_params(classes=[0, 1], nominal_rows=2000, random=keyed_source(3)).fit(X, rare)
    scores = {}
    for name in ("accuracy", "roc_auc"):
        scoring = scoring_of(model, name, noise=None, rows=2000.0, classes=np.array([0, 1]))
        flipped = scoring.metric.score(scoring.total(model, -X, rare), rows=2000.0, noise=None)
        right = scoring.metric.score(scoring.total(model, X, rare), rows=2000.0, noise=None)
        scores[name] = right - flipped
    assert abs(scores["accuracy"]) < 0.1
    assert scores["roc_auc"] > 0.8


def test_answers_are_put_in_the_order_of_the_public_classes():
    class Foreign:
        classes_ = np.array(["c", "a"])

        def predict(self, X):
            return np.array(["c", "a", "d"])[: len(X)]

        def predict_proba(self, X):
            return np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])[: len(X)]

    classes, y = np.array(["a", "b", "c"]), np.array(["c", "a", "d"])
    noise = ScoreNoise(1.0, Adjacency.ADD_OR_REMOVE_ONE)
    counted = scoring_of(Foreign(), "balanced_accuracy", noise=noise, rows=3.0, classes=classes)
    assert counted.total(Foreign(), np.zeros((3, 1)), y).tolist() == [[1, 0, 1, 0], [0, 0, 0, 1]]
    right = scoring_of(Foreign(), "accuracy", noise=noise, rows=3.0, classes=classes)
    assert right.total(Foreign(), np.zeros((3, 1)), y).tolist() == [
        [1, 0, 1, 0],
        [0, 0, 0, 1],
    ]  # an unknown one is not right
    loss = scoring_of(Foreign(), "neg_log_loss", noise=None, rows=3.0, classes=classes)
    total = loss.total(Foreign(), np.zeros((3, 1)), y)
    expected = np.mean(np.log([0.9, 0.8, 0.01]))
    assert loss.metric.score(total, rows=3.0, noise=None) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("learner", "scoring", "said"),
    [
        (OutputPerturbationClassifier(), "f1", "one of accuracy, balanced_accuracy, neg_log_loss, roc_auc, r2"),
        (OutputPerturbationClassifier(), "r2", "scoring='r2' is not for a classification"),
        (DPSGDRegressor(label_bounds=(0, 10)), "roc_auc", "scoring='roc_auc' is not for a regression"),
        (DPSGDRegressor(label_bounds=(0, 10)), None, "scoring=None on private rows"),
        (DPSGDRegressor(label_bounds=(-1e200, 1e200)), "neg_mean_squared_error", "take absolute-error, or r2"),
    ],
)
def test_what_is_not_for_it_is_refused_before_anything_is_drawn(learner, scoring, said):
    X, y = rows(40)
    y = (y > 5.0).astype(int)
    with pytest.raises(ArgumentError, match=said):
        search(learner, {"row_norm": [1.0, 2.0]}, scoring=scoring, classes=[0, 1], delta=1e-5).fit(X, y)


def test_bounds_and_probabilities_are_asked_for():
    for name in NUMBERS:
        with pytest.raises(ArgumentError, match="needs public bounds of the labels"):
            scoring_of(PrivateRidge(), name, noise=None, rows=1.0)

    class Silent:
        def predict(self, X):
            return X

    with pytest.raises(ArgumentError, match="needs an estimator with predict_proba"):
        scoring_of(Silent(), "roc_auc", noise=None, rows=1.0, classes=np.array([0, 1]))
    model = OutputPerturbationClassifier()
    with pytest.raises(ArgumentError, match="auc needs two classes"):
        scoring_of(model, "roc_auc", noise=None, rows=1.0, classes=np.arange(3))
    assert scoring_of(PrivateRidge(), RowScore(abs), noise=None, rows=1.0).rule is not None


def fitted(name, *, numbers, **options):
    X, y = rows()
    if numbers:
        learner = PrivateRidge(label_bounds=(0, 10))
        return search(learner, {"row_norm": [1.0, 1.1]}, scoring=name, delta=1e-5, **options).fit(X, y)
    learner = OutputPerturbationClassifier(epsilon=4.0)
    found = search(learner, {"regularization": [0.01, 0.02]}, scoring=name, classes=[0, 1], **options)
    return found.fit(X, (y > 5.0).astype(int))


@pytest.mark.full
@pytest.mark.parametrize("name", [*CLASSES, *NUMBERS])
def test_the_winners_score_has_an_interval_for_further_rows(name):
    """It holds the score on 20,000 of them, and costs nothing."""
    numbers = name in NUMBERS
    found = fitted(name, numbers=numbers)
    low, high = found.best_score_interval_
    X, y = rows(20_000, seed=9)
    truth = y if numbers else (y > 5.0).astype(int)
    reached = check_scoring(found.best_estimator_, name)(found.best_estimator_, X, truth)
    assert low is None or low <= reached
    assert high is None or reached <= high
    assert (low, high) != (None, None)
    assert found.guarantee_.epsilon(1e-5) == fitted(name, numbers=numbers, release_score=False).guarantee_.epsilon(1e-5)


def test_the_interval_is_that_of_the_metric_with_a_failure_for_each_run():
    """By hand from noisy sums; of a loss with its ends turned, since larger scores are better."""
    for name, sign in (("accuracy", 1), ("neg_mean_absolute_error", -1)):
        estimator = PrivateRidge(label_bounds=(0, 10)) if sign < 0 else OutputPerturbationClassifier()
        classes = None if sign < 0 else np.array([0, 1])
        noise = ScoreNoise(None, Adjacency.ADD_OR_REMOVE_ONE, 1.43)
        scoring = scoring_of(estimator, name, noise=noise, rows=100, classes=classes)
        sums = np.full(scoring.metric.noisy_shape, 70, dtype=np.int64)
        expected = scoring.metric.estimate(sums, noise=noise, failure=0.05 / 4)
        ends = (expected.low, expected.high)
        assert scoring.interval(sums, runs=4.0) == (
            ends if sign > 0 else tuple(e if e is None else -e for e in ends[::-1])
        )
        assert scoring.interval(sums, runs=0.5) == scoring.interval(sums, runs=1.0)


@pytest.mark.parametrize(
    "options",
    [{"release_score": False}, {"cv": 3}, {"refit": True}, {"public_validation": rows(50), "score_epsilon": None}],
    ids=["not released", "folds", "another model", "public rows"],
)
def test_there_is_no_interval_where_none_is_proved(options):
    if "public_validation" in options:
        X, y = options["public_validation"]
        options = {**options, "public_validation": (X, (y > 5.0).astype(int))}
    found = fitted("accuracy", numbers=False, **options)
    with pytest.raises(AttributeError, match="no best_score_interval_ unless release_score=True"):
        found.best_score_interval_
