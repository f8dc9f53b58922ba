"""Metrics of studies: what one row can do to them, over all tiny tables; their noise; their values and intervals."""

import math
import pickle
from unittest.mock import patch

import numpy as np
import pytest
from sklearn import metrics as peers

from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.metrics.metric import metrics_for
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import (
    ADD,
    GAUSSIAN,
    NUMBER,
    PURE,
    REPLACE,
    TWO,
    Answers,
    cells_of,
    universe,
    worst_loss,
)

NAMES = {"classification": TWO, "regression": NUMBER}
SHIPPED = [(name, METRICS.facts(name)["task"]) for name in METRICS]


@pytest.mark.cases(5)
@pytest.mark.parametrize("noise", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize(("name", "task"), SHIPPED)
def test_one_row_costs_epsilon_and_no_more(name, task, adjacency, noise):
    """Over all pairs of neighbours of up to two rows; some pair attains it, except where a row is two parts of which
    one cannot move all the way while the other does. Of the median error no row is in all ranges that are looked at."""
    target = NAMES[task]
    worst = worst_loss(METRICS[name](target), target, adjacency, noise)
    assert worst <= 1.0 + 1e-12
    assert worst >= (0.9 if name == "median-error" else 1.0 - 1e-4)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("name", "adjacency"),
    [("balanced-accuracy", REPLACE), ("auc", REPLACE), ("auc", ADD), ("r2", REPLACE), ("r2", ADD)],
)
def test_noise_for_less_than_a_row_can_do_is_found(name, adjacency):
    """The same check on metrics that pretend that a row moves 1 % less, or one cell in place of two."""
    target = NAMES[METRICS.facts(name)["task"]]
    metric = METRICS[name](target)
    honest = metric.moved(adjacency)
    less = honest / 2 if name in ("auc", "balanced-accuracy") and adjacency is REPLACE else honest * 0.99
    with patch.object(type(metric), "moved", lambda self, adjacency: less):
        assert worst_loss(metric, target, adjacency) > 1.009
    less = metric.moved_squares(adjacency) * (less / honest) ** 2
    with patch.object(type(metric), "moved_squares", lambda self, adjacency: less):
        assert worst_loss(metric, target, adjacency, GAUSSIAN) > 1.009


@pytest.mark.parametrize(("name", "task"), SHIPPED)
def test_metrics_travel_to_worker_processes(name, task):
    metric = METRICS[name](NAMES[task])
    rows = universe(NAMES[task])
    np.testing.assert_array_equal(cells_of(pickle.loads(pickle.dumps(metric)), rows), cells_of(metric, rows))


@pytest.mark.parametrize(("name", "task"), SHIPPED)
def test_rows_by_themselves_add_up(name, task):
    """No row's part depends on those beside it, and a row without an answer counts at the worst end."""
    metric = METRICS[name](NAMES[task])
    rows = universe(NAMES[task])
    whole = cells_of(metric, rows)
    np.testing.assert_array_equal(whole, sum(cells_of(metric, [row]) for row in rows))
    labels = np.array([label for _, label in rows if label != -1])
    lost = metric.lost(labels)
    assert lost.shape == whole.shape
    assert metric.score(lost, rows=len(labels), noise=None) <= metric.score(whole, rows=len(rows), noise=None)


# values


def random_rows(rows=400, seed=1):
    random = np.random.default_rng(seed)
    y = (random.random(rows) < 0.3).astype(int)
    p = 1.0 / (1.0 + np.exp(-(random.normal(size=rows) + 1.5 * y - 1.0)))
    return p[:, None], y


def test_without_noise_the_values_are_those_of_scikit_learn():
    X, y = random_rows()
    model = Answers()
    expected = {
        "accuracy": peers.accuracy_score(y, model.predict(X)),
        "balanced-accuracy": peers.balanced_accuracy_score(y, model.predict(X)),
        "log-loss": peers.log_loss(y, np.clip(model.predict_proba(X), 0.01, 1.0)),
        "auc": peers.roc_auc_score(y, X[:, 0]),
    }
    for name, value in expected.items():
        metric = METRICS[name](TWO)
        found = metric.estimate(metric.cells(model, X, y), noise=None, failure=0.05)
        assert found.value == pytest.approx(value, abs=5e-3 if name in ("auc", "log-loss") else 1e-12)
        assert found.low < found.value < found.high
    random = np.random.default_rng(2)
    labels = random.uniform(-3, 7, 300)
    answers = np.clip(labels + random.normal(size=300), -3, 7)
    expected = {
        "absolute-error": peers.mean_absolute_error(labels, answers),
        "squared-error": peers.mean_squared_error(labels, answers),
        "r2": peers.r2_score(labels, answers),
    }
    for name, value in expected.items():
        metric = METRICS[name](NUMBER)
        cells = metric.cells(Answers(NUMBER), answers[:, None], labels)
        assert metric.estimate(cells, noise=None, failure=0.05).value == pytest.approx(value, abs=5e-3)


def test_runs_are_compared_by_what_is_better():
    X, y = random_rows()
    worse = np.where(np.arange(len(y))[:, None] % 2, X, 1.0 - X)
    for metric in metrics_for(TWO).values():
        scores = [metric.score(metric.cells(Answers(), rows, y), rows=400, noise=None) for rows in (X, worse)]
        assert scores[0] > scores[1]
    labels = np.linspace(-3, 7, 50)
    for metric in metrics_for(NUMBER).values():
        rows = [labels[:, None], labels[::-1, None]]
        scores = [metric.score(metric.cells(Answers(NUMBER), each, labels), rows=50, noise=None) for each in rows]
        assert scores[0] > scores[1]


@pytest.mark.parametrize("bounds", [(0.0, 1e-300), (-1e300, 1e300), (-1e-9, 1e-9), (-2e6, -1e6)])
def test_tiny_huge_and_negative_labels(bounds):
    target = Target(bounds=bounds)
    low, high = bounds
    labels = low + (high / 2 - low / 2) * np.linspace(0.0, 2.0, 9)
    found = metrics_for(target)
    assert ("squared-error" in found) == (bounds[1] < 1e200)
    for name, metric in found.items():
        cells = metric.cells(Answers(target), labels[:, None], labels)
        for noise in (None, ScoreNoise(0.5, ADD)):
            assert math.isfinite(metric.score(cells, rows=9.0, noise=noise))
            estimate = metric.estimate(cells, noise=noise, failure=0.01)
            assert all(math.isfinite(end) for end in (estimate.value, estimate.low or 0.0, estimate.high or 0.0))
        best = {"absolute-error": 0.0, "squared-error": 0.0, "median-error": 0.0}.get(name, 1.0)
        lost = metric.score(metric.lost(labels), rows=9.0, noise=None)
        assert metric.score(cells, rows=9.0, noise=None) - lost >= 0.9 * (best - lost)


@pytest.mark.parametrize("name", ["accuracy", "auc", "balanced-accuracy", "log-loss"])
def test_constant_answers_one_class_and_no_row(name):
    """A score and an interval are there if anything is missing. A constant answer is worth one half by ranks."""
    metric = METRICS[name](TWO)
    constant = np.full((20, 1), 0.4)
    halves = np.repeat([0, 1], 10)
    for y in (halves, np.zeros(20, int), np.ones(20, int), np.full(20, -1), halves[:0]):
        cells = metric.cells(Answers(), constant[: len(y)], y)
        for noise in (None, ScoreNoise(0.2, REPLACE)):
            noisy = cells if noise is None else metric.noisy(cells, noise, keyed_source(4))
            estimate = metric.estimate(noisy, noise=noise, failure=0.05)
            assert estimate.low <= estimate.value <= estimate.high
            assert math.isfinite(metric.score(noisy, rows=20.0, noise=noise))
    if name in ("auc", "balanced-accuracy"):
        assert metric.score(metric.cells(Answers(), constant, halves), rows=20.0, noise=None) == pytest.approx(0.5)


def test_metrics_refuse_answers_of_another_shape_and_labels_they_are_not_for():
    class Column(Answers):
        def predict(self, X):
            return X

        def predict_proba(self, X):
            return X

    for metric in metrics_for(TWO).values():
        with pytest.raises(ArgumentError, match="for each row"):
            metric.cells(Column(), np.zeros((3, 1)), np.zeros(3, int))
    with pytest.raises(ArgumentError, match="auc needs two classes: take balanced-accuracy"):
        METRICS["auc"](Target(("a", "b", "c")))
    with pytest.raises(ArgumentError, match="squared-error needs label_bounds less than"):
        METRICS["squared-error"](Target(bounds=(-1e200, 1e200)))


@pytest.mark.full
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["accuracy", "auc", "balanced-accuracy", "log-loss"])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_intervals_hold_for_further_rows_and_need_the_noise(name, adjacency):
    """With much noise: none of 40 fails, at 0.05 each; of 20 intervals that forget the noise some do."""
    metric, noise = METRICS[name](TWO), ScoreNoise(0.02 if name == "auc" else 0.05, adjacency)
    X, y = random_rows(40_000, seed=9)
    whole = metric.estimate(metric.cells(Answers(), X, y), noise=None, failure=0.5).value
    missed = {True: 0, False: 0}
    for k in range(40):
        part = slice(1000 * k, 1000 * (k + 1))
        noisy = metric.noisy(metric.cells(Answers(), X[part], y[part]), noise, keyed_source(k))
        for counted in (True, False) if k < 20 else (True,):
            found = metric.estimate(noisy, noise=noise if counted else None, failure=0.05)
            missed[counted] += not found.low - 1e-3 <= whole <= found.high + 1e-3
    assert missed[True] == 0
    assert missed[False] >= 2


@pytest.mark.full
@pytest.mark.parametrize("name", ["absolute-error", "r2", "squared-error"])
def test_intervals_of_errors_hold_for_further_rows_and_need_the_noise(name):
    random = np.random.default_rng(6)
    labels = random.choice([-3.0, 7.0], 20_000)
    answers = np.clip(labels + random.normal(size=20_000), -3, 7)
    metric, noise = METRICS[name](NUMBER), ScoreNoise(0.05, ADD)
    whole = metric.estimate(metric.cells(Answers(NUMBER), answers[:, None], labels), noise=None, failure=0.5).value
    missed = {True: 0, False: 0}
    for k in range(40):
        part = slice(500 * k, 500 * (k + 1))
        cells = metric.cells(Answers(NUMBER), answers[part, None], labels[part])
        noisy = metric.noisy(cells, noise, keyed_source(k))
        for counted in (True, False) if k < 20 else (True,):
            found = metric.estimate(noisy, noise=noise if counted else None, failure=0.05)
            missed[counted] += not (-math.inf if found.low is None else found.low) <= whole <= found.high
    assert missed[True] == 0
    assert missed[False] >= 2
