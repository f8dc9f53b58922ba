"""Several scores in one search: which decides, what the others cost and show, what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import check_scoring

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import RowScore
from dpselect.integrations.sklearn.several_scores import named_scores, scorings_of
from dpselect.learners import OutputPerturbationClassifier
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.study.metrics import ScoreNoise
from tests.integrations.sklearn.search_cases import X, Y, fit, search

PAIR = ["accuracy", "roc_auc"]
PAIR_AND = [*PAIR, "balanced_accuracy"]
CLASSES = np.array(["no", "yes"])
MODEL = OutputPerturbationClassifier(nominal_rows=500, classes=["no", "yes"], epsilon=50.0).fit(X, Y)


def several(names=("accuracy", "balanced_accuracy", "roc_auc"), epsilon=1.0, adjacency=Adjacency.ADD_OR_REMOVE_ONE):
    noise = ScoreNoise(epsilon, adjacency)
    return scorings_of(MODEL, {name: name for name in names}, public=None, noise=noise, rows=500.0, classes=CLASSES)


@pytest.mark.parametrize(
    ("scoring", "refit", "names"),
    [
        ("accuracy", False, None),
        ("accuracy", True, None),
        ("accuracy", "accuracy", None),
        (None, False, None),
        (PAIR, False, PAIR),
        (PAIR, "roc_auc", PAIR[::-1]),
        ({"right": "accuracy", "ranks": "roc_auc"}, "ranks", ["ranks", "right"]),
    ],
)
def test_the_score_that_refit_names_decides_and_else_the_first(scoring, refit, names):
    found = named_scores(scoring, refit)
    assert (found if found is None else list(found)) == names


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scoring": PAIR, "refit": True}, "refit must be the name of the score that decides .'accuracy', 'roc_auc'.*"),
        ({"scoring": PAIR, "refit": "f1"}, "or False, got 'f1'"),
        ({"scoring": set(PAIR)}, "a list of names"),
        ({"scoring": []}, "a list of names"),
        ({"scoring": [RowScore(abs)]}, "a list of names"),
        ({"scoring": "accuracy", "refit": "f1"}, "refit must be True or False"),
        ({"scoring": PAIR, "release_score": False}, "Add release_score=True to see them"),
        ({"scoring": ["accuracy", "f1"]}, "scoring='f1' on private rows"),
        ({"scoring": PAIR, "design": "one-run", "epsilon": 1.0, "repetitions": None}, "release_score does not go with"),
    ],
)
def test_wrong_scores_are_told_before_anything_is_drawn(options, told):
    with pytest.raises(ArgumentError, match=told):
        fit(**{"release_score": True, **options})


def test_the_parts_of_the_noise_cost_what_one_score_costs():
    """Half for the score that decides, the rest for the others: exact parts of epsilon that add up to it."""
    for count in (1, 2, 3):
        parts = [each.noise.epsilon for each in several(PAIR_AND[:count]).scores.values()]
        assert sum(parts) == 1
        assert parts[0] == (1 if count == 1 else Fraction(1, 2))
        assert len(set(parts[1:])) <= 1
    one, two = (search(scoring=each, release_score=True, epsilon=2.0) for each in ("accuracy", PAIR))
    assert one.plan().score_epsilon == two.plan().score_epsilon
    assert one.guarantee().epsilon(0) == two.guarantee().epsilon(0)


def test_each_part_of_the_sums_has_noise_of_its_own_at_the_scale_of_its_part():
    """By 400 draws: the mean size of discrete Laplace noise of epsilon e is 2 r/(1 - r^2) for r = exp(-e)."""
    scores = several(["accuracy", "neg_log_loss", "balanced_accuracy"], epsilon=0.4)
    total = scores.total(MODEL, X, Y)
    random = keyed_source("noise")
    draws = [scores.noisy(total, random) for _ in range(400)]
    right = np.array([each[0][0] for each in draws]) - int(np.sum(total[0][0]))
    balanced = np.array([each[2][0, 0] for each in draws]) - int(total[2][0, 0])
    for noise, epsilon in ((right, 0.2), (balanced, 0.1)):
        r = np.exp(-epsilon)
        assert np.mean(np.abs(noise)) == pytest.approx(2.0 * r / (1.0 - r * r), rel=0.2)
    assert abs(np.corrcoef(right, balanced)[0, 1]) < 0.2


@pytest.mark.parametrize("adjacency", Adjacency)
def test_no_row_loses_more_than_epsilon_over_all_scores(adjacency):
    """The largest loss of rows that come, go or are replaced, among them one of no class and one that fails.

    Of discrete Laplace noise it is epsilon/moved for each step of a cell with noise, in each part; the parts add up.
    A mean has noise on both of its cells, or under replace_one on the first: the second is what lacks to all rows.
    """
    names = ["accuracy", "balanced_accuracy", "neg_log_loss"]
    scores = several(names, epsilon=0.7, adjacency=adjacency)
    labels = np.where(np.arange(20) % 7 == 0, "other", Y[:20])
    table = np.where((np.arange(20) % 5 == 0)[:, None], np.nan, X[:20] * 30.0)
    rows = [scores.total(MODEL, table[k : k + 1], labels[k : k + 1]) for k in range(20)]
    replaced = adjacency is Adjacency.REPLACE_ONE
    others = rows if replaced else [scores.total(MODEL, table[:0], labels[:0])]
    steps = scores.scores["neg_log_loss"].metric.steps

    def noised(name, sums):
        cells = np.sum(sums, axis=1) if name == "accuracy" else sums
        cells = cells[:2] if name == "neg_log_loss" else cells  # Laplace noise releases no sum of a hat function
        return cells[:1] if replaced and name != "balanced_accuracy" else cells

    def loss(one, other):
        moved = {"accuracy": 1, "balanced_accuracy": 2 if replaced else 1, "neg_log_loss": steps}
        return sum(
            scores.scores[name].noise.epsilon * int(np.abs(noised(name, a) - noised(name, b)).sum()) / moved[name]
            for name, a, b in zip(names, one, other, strict=True)
        )

    largest = max(loss(one, other) for one in rows for other in others)
    assert 0.65 < largest <= Fraction(0.7)  # and the worst of them lose nearly all of it


def test_the_sums_of_parts_of_the_rows_add_up_and_a_row_that_fails_counts_as_the_worst_of_each():
    scores = several()
    parts = (slice(None), slice(200), slice(200, 500))
    whole, first, second = (scores.total(MODEL, X[part], Y[part]) for part in parts)
    assert all(np.array_equal(a, b + c) for a, b, c in zip(whole, first, second, strict=True))
    lost = scores.total(MODEL, np.zeros((1, 2)), Y[:1])  # a row of another width, on which the model fails
    for each, sums in zip(scores.scores.values(), lost, strict=True):
        assert np.array_equal(sums, each.metric.lost(np.array([0 if Y[0] == "no" else 1])))


@pytest.mark.full
def test_the_winners_scores_are_shown_with_intervals_and_the_first_is_best_score():
    found = fit(scoring=PAIR, release_score=True, score_epsilon=200.0)
    assert found.multimetric_
    assert list(found.scorer_) == PAIR
    assert found.best_score_ == found.best_scores_["accuracy"]
    assert found.best_score_interval_ == found.best_score_intervals_["accuracy"]
    for name, (low, high) in found.best_score_intervals_.items():
        assert low is None or low <= check_scoring(MODEL, name)(found.best_estimator_, X, Y)
        assert high is None or found.best_scores_[name] <= high + 0.05
    assert found.score(X, Y) == check_scoring(MODEL, "accuracy")(found.best_estimator_, X, Y)
    one = fit(scoring="accuracy", release_score=True)
    assert not one.multimetric_
    assert not hasattr(one, "best_scores_")
    assert "best_scores_" not in vars(found.set_params(scoring="accuracy", release_score=False).fit(X, Y))


@pytest.mark.full
def test_the_score_that_refit_names_wins_and_a_further_model_is_trained():
    """A score that prefers the first setting, and one that prefers the second, with hardly any noise."""
    weights = {
        "large": RowScore(_size, response="predict_proba"),
        "small": RowScore(lambda y, chances: 1.0 - _size(y, chances), response="predict_proba"),
    }
    space = {"regularization": [1e-3, 1.0]}
    options = {"scoring": weights, "release_score": True, "score_epsilon": 1e4, "repetitions": Fixed(count=12)}
    learner = OutputPerturbationClassifier(epsilon=1e3)
    won = {name: fit(learner, space, refit=name, **options) for name in weights}
    assert won["large"].best_params_ != won["small"].best_params_
    for name, found in won.items():
        assert found.best_score_ == found.best_scores_[name]
        assert set(found.best_scores_) == set(weights)
        assert not hasattr(found, "best_score_intervals_")  # of another model than the one released
    free = fit(learner, space, **options)
    assert free.best_params_ == won["large"].best_params_
    assert free.guarantee_.epsilon(0) < won["large"].guarantee_.epsilon(0)


def _size(y, chances):
    return np.abs(chances[:, 0] - 0.5) * 2.0


def test_folds_and_public_rows_show_scores_too():
    folds = fit(scoring=PAIR, release_score=True, cv=3)
    assert set(folds.best_scores_) == set(PAIR)
    public = fit(scoring=["accuracy", "f1_macro"], release_score=True, public_validation=(X, Y))
    assert public.best_scores_ == {
        name: check_scoring(MODEL, name)(public.best_estimator_, X, Y) for name in ("accuracy", "f1_macro")
    }
    assert public.score_epsilon_ is None


def test_a_scorer_that_a_design_does_not_need_makes_no_fit_fail():
    """It is made when it is asked for, and not once the search is paid for."""
    found = fit(space={}, design="one-run", epsilon=1.0, repetitions=None, scoring="no such score")
    assert found.predict(X).shape == (500,)
    with pytest.raises(ValueError, match="no such score"):
        found.score(X, Y)
    with pytest.raises(AttributeError, match="scorer_"):
        search().scorer_
    found = fit(space={}, design="one-run", epsilon=1.0, repetitions=None)
    before = found.score(X, Y)
    assert found.set_params(scoring="neg_log_loss").score(X, Y) == before


@pytest.mark.full
def test_a_sealed_search_has_room_for_all_sums(tmp_path):
    stored = fit(scoring=PAIR, release_score=True, store=tmp_path / "s.sealed", refit="roc_auc")
    assert stored.best_scores_ == fit(scoring=PAIR, release_score=True, refit="roc_auc").best_scores_
