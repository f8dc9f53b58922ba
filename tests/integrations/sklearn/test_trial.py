"""One run of a search: no source of randomness or private row leaves with its model, and public rows stand in."""

import pickle
import random as standard_random

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.integrations.sklearn.scoring import scoring_of
from dpselect.integrations.sklearn.trial import TrialRows, pack, unpack
from dpselect.learners import (
    OutputPerturbationClassifier,
)
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import Fixed
from dpselect.study.metrics import ScoreNoise
from tests.integrations.sklearn.attacks_cases import Constant, SeenReplaceOne, X, Y, search, seen

# what leaves a run


def test_no_source_of_randomness_leaves_with_a_model():
    """A holder of a generator in the state before training could draw the noise again and take it off."""
    model = LogisticRegression(random_state=np.random.RandomState(np.random.Philox(1)))
    model.deep = {"own": [keyed_source(1), np.random.default_rng(1), standard_random.Random(1), np.random.Philox(1)]}
    left = unpack(pack(model))
    assert left.random_state is None
    assert left.deep == {"own": [None, None, None, None]}
    with pytest.raises(TypeError, match="not copied or pickled"):
        pickle.dumps(RandomSource(None))


class KeepsWhatItPredicts(OutputPerturbationClassifier):
    """A careless estimator: its predict leaves rows, without noise, on the model."""

    def predict(self, X):
        self.seen = np.array(X)
        return super().predict(X)


@pytest.mark.parametrize("folds", [None, 2])
def test_rows_that_score_a_model_do_not_leave_with_it(folds):
    estimator = KeepsWhatItPredicts(classes=[0, 1], nominal_rows=100)
    X = np.linspace(-0.9, 0.9, 100)[:, None]
    found = PrivateSearchCV(
        estimator, {}, repetitions=Fixed(count=1), cv=folds, score_epsilon=1.0, random=keyed_source(1), rehearse=False
    ).fit(X, (X[:, 0] > 0).astype(int))
    models = [found.best_estimator_] if folds is None else found.best_estimator_.models
    assert models
    assert not any(hasattr(model, "seen") for model in models)


class Unnoised(Constant):
    def __init__(self):
        pass


ALL = np.column_stack([X, Y]).tolist()


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_a_public_row_stands_in_whatever_the_container(kind):
    table = X.copy()
    table[[3, 7], 1] = np.nan
    if kind != "array":
        names = ["a", "b", "c"]
        module = pytest.importorskip(kind)
        table = module.DataFrame(dict(zip(names, table.T, strict=True)))
    found = seen(SeenReplaceOne, table, Y)
    assert len(found) == len(Y)
    assert found[3] == found[7]
    assert np.all(np.isfinite(found))
    assert [row for place, row in enumerate(found) if place not in (3, 7)] == [
        row for place, row in enumerate(ALL) if place not in (3, 7)
    ]


def test_a_row_that_nothing_can_be_trained_on_counts_as_answered_wrongly():
    scored = scoring_of(
        Constant(), "accuracy", noise=ScoreNoise(1e6, Adjacency.ADD_OR_REMOVE_ONE), rows=4, classes=np.array([0, 1])
    )
    table = np.array([[0.0], [np.nan], [1.0], [2.0]])
    rows = TrialRows(table, np.array([1, 1, 1, 5]), {}, usable=np.array([True, False, True, False]))
    sums = sum(scored.total(Constant(), *part) for part in rows.scored(np.arange(4)))
    assert scored.score(sums) == 0.5


# learners


def test_a_learner_whose_noise_a_run_cannot_set_is_refused_unless_declared():
    """Worker processes made by fork share NumPy's own generator: all runs would draw the same noise."""
    with pytest.raises(ArgumentError, match="no parameter random"):
        search(Unnoised()).plan()
    assert search(Unnoised(), base=pure_dp(epsilon=1.0)).plan().parts[0].pure_epsilon == 1.0


def test_a_public_row_trains_in_the_place_of_each_unusable_one():
    """By hand: rows 1 and 3 train nothing, or the first row that is taken does, at their places, by its own label."""
    table, usable = np.arange(8.0).reshape(4, 2), np.array([True, False, True, False])
    alone = TrialRows(table, np.array([5, 6, 7, 8]), {"weight": np.arange(4)}, usable=usable)
    X, y, beside = alone.training(np.arange(4))
    assert (X.tolist(), y.tolist(), beside["weight"].tolist()) == ([[0.0, 1.0], [4.0, 5.0]], [5, 7], [0, 2])
    offered = [(np.zeros((1, 2)), 1), (np.full((1, 2), 99.0), 9)]
    stood = alone.with_usable(usable, lambda rows: rows[:, 0] > 50.0, offered)
    X, y, _ = stood.training(np.array([3, 0, 1]))
    assert (X.tolist(), y.tolist()) == ([[99.0, 99.0], [0.0, 1.0], [99.0, 99.0]], [9, 5, 9])
    assert alone.with_usable(usable, lambda rows: rows[:, 0] > 100.0, offered) is alone
