"""Accuracy, balanced accuracy and class shares from the same counts."""

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import ADD

THREE = Target(("a", "b", "c"))
NOISE = ScoreNoise(None, ADD, 1.43)
COUNTS = np.array([[540, 150, 40, 0], [60, 100, 60, 50]])


def figures(name, cells=COUNTS, noise=NOISE):
    return {one.name: one for one in METRICS[name](THREE).figures(cells, noise=noise, failure=0.05)}


def test_both_accuracies_stand_beside_a_constant_answer():
    found = figures("accuracy")
    assert list(found) == ["accuracy", "balanced-accuracy"]
    assert list(figures("balanced-accuracy")) == ["balanced-accuracy", "accuracy"]
    right, even = found["accuracy"], found["balanced-accuracy"]
    assert (right.estimate.value, right.constant, right.answer) == (0.73, 0.6, "a")
    assert even.estimate.value == pytest.approx(np.mean([0.9, 0.6, 0.4]))
    assert even.constant == pytest.approx(1 / 3)
    for one in found.values():
        assert one.estimate.low < one.estimate.value < one.estimate.high
        assert not one.less_is_better


def test_shares_of_the_classes_have_intervals():
    shares = METRICS["accuracy"](THREE).shares(COUNTS, noise=NOISE, failure=0.05)
    assert [one.value for one in shares] == [0.6, 0.25, 0.1]
    assert all(one.low < one.value < one.high < one.low + 0.12 for one in shares)


def test_laplace_noise_counts_right_and_wrong_answers_alone():
    metric, noise = METRICS["accuracy"](THREE), ScoreNoise(1.0, ADD)
    noisy = metric.noisy(COUNTS, noise, keyed_source(1))
    assert noisy.shape == (2,)
    assert metric.figures(noisy, noise=noise, failure=0.05) == []
    assert metric.shares(noisy, noise=noise, failure=0.05) is None
    assert metric.rows_by_class(noisy) is None
    assert metric.estimate(noisy, noise=noise, failure=0.05).value == pytest.approx(0.73, abs=0.02)


@pytest.mark.full
@pytest.mark.cases(1)
@pytest.mark.parametrize("multiplier", [1.43, 20.0])
def test_every_figure_of_new_rows_is_in_its_interval(multiplier):
    """100 tables of 300 rows: at 0.05 each 5 fail in expectation at most, 15 by chance once in 10**4."""
    random, noise = np.random.default_rng(3), ScoreNoise(None, ADD, multiplier)
    shares, right = np.array([0.7, 0.25, 0.05]), np.array([0.9, 0.6, 0.3])
    expected = {"accuracy": float(shares @ right), "balanced-accuracy": float(np.mean(right))}
    metric, missed = METRICS["accuracy"](THREE), dict.fromkeys(expected, 0)
    for k in range(100):
        rows = random.multinomial(300, np.concatenate([shares * right, shares * (1.0 - right)])).reshape(2, 3)
        noisy = metric.noisy(np.pad(rows, ((0, 0), (0, 1))), noise, keyed_source(k))
        for one in metric.figures(noisy, noise=noise, failure=0.05):
            missed[one.name] += not one.estimate.low <= expected[one.name] <= one.estimate.high
    assert all(count <= 5 for count in missed.values())


def test_a_constant_model_is_where_the_constant_answer_is():
    """All rows of one class are right, and none of the others: the figures are alike up to the noise."""
    metric, noise = METRICS["accuracy"](THREE), ScoreNoise(None, ADD, 1.43)
    for k in range(4):
        cells = np.array([[700, 0, 0, 0], [0, 250, 50, 0]])
        right, even = metric.figures(metric.noisy(cells, noise, keyed_source(k)), noise=noise, failure=0.05)
        assert right.estimate.low < right.constant < right.estimate.high
        assert even.estimate.low < even.constant < even.estimate.high
