"""The median and the 90 % error, beside those of the middle label."""

from unittest.mock import patch

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.metrics.median_error import MedianError
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import ADD, GAUSSIAN, NUMBER, REPLACE, worst_loss

TARGET = Target(bounds=(0.0, 100.0))
METRIC = METRICS["median-error"](TARGET)
NOISE = ScoreNoise(None, ADD, 1.43)


class Given:
    def predict(self, X):
        return X


def rows(count, seed=1):
    random = np.random.default_rng(seed)
    labels = np.clip(random.normal(40.0, 15.0, count), 0.0, 100.0)
    return np.clip(labels + random.normal(0.0, 5.0, count), 0.0, 100.0), labels


def test_without_noise_the_figures_are_the_quantiles_of_the_errors():
    answers, labels = rows(4000)
    cells = METRIC.cells(Given(), answers, labels)
    middle, most = METRIC.figures(cells, noise=None, failure=0.05)
    errors, constant = np.abs(answers - labels), np.abs(labels - np.median(labels))
    for one, quantile in ((middle, 0.5), (most, 0.9)):
        assert one.estimate.value == pytest.approx(np.quantile(errors, quantile), rel=0.03)
        assert one.constant == pytest.approx(np.quantile(constant, quantile), rel=0.04)
        assert one.answer == pytest.approx(np.median(labels), abs=0.1)
        assert one.estimate.low < one.estimate.value < one.estimate.high
    assert (middle.name, most.name) == ("median-error", "90%-error")
    assert METRIC.score(cells, rows=4000.0, noise=None) == pytest.approx(-middle.estimate.value / 100.0)


def test_noisy_figures_are_near_those_without_noise():
    answers, labels = rows(1000)
    cells = METRIC.cells(Given(), answers, labels)
    noisy = METRIC.noisy(cells, NOISE, keyed_source(1))
    assert noisy.shape == METRIC.noisy_shape
    found, expected = (METRIC.figures(c, noise=n, failure=0.05) for c, n in ((noisy, NOISE), (cells, None)))
    for one, exact in zip(found, expected, strict=True):
        assert one.estimate.value == pytest.approx(exact.estimate.value, rel=0.15)
        assert one.constant == pytest.approx(exact.constant, rel=0.15)
        assert one.estimate.high - one.estimate.low < 2.0 * (exact.estimate.high - exact.estimate.low)


def test_an_answer_that_is_none_is_as_wrong_as_can_be():
    labels = np.array([10.0, 20.0, 30.0])
    assert METRIC.cells(Given(), np.full(3, np.nan), labels)[255] == 3
    np.testing.assert_array_equal(METRIC.cells(Given(), np.full(3, np.nan), labels), METRIC.lost(labels))


@pytest.mark.full
@pytest.mark.cases(1)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_noise_that_forgets_that_a_row_is_in_a_bin_and_in_a_block_is_found(adjacency):
    metric = METRICS["median-error"](NUMBER)
    with patch.object(MedianError, "_twice", lambda self, noise: self.reach(noise.adjacency)):
        assert worst_loss(metric, NUMBER, adjacency) > 1.5
        assert worst_loss(metric, NUMBER, adjacency, GAUSSIAN) > 1.2


@pytest.mark.full
@pytest.mark.cases(1)
def test_quantiles_of_new_rows_are_in_their_intervals():
    """100 tables of 500 rows at 0.05 each: 5 fail in expectation at most, 15 by chance once in 10**4."""
    answers, labels = rows(200_000, seed=9)
    errors = np.abs(answers - labels)
    expected = {"median-error": np.quantile(errors, 0.5), "90%-error": np.quantile(errors, 0.9)}
    missed = dict.fromkeys(expected, 0)
    for k in range(100):
        part = slice(500 * k, 500 * (k + 1))
        noisy = METRIC.noisy(METRIC.cells(Given(), answers[part], labels[part]), NOISE, keyed_source(k))
        for one in METRIC.figures(noisy, noise=NOISE, failure=0.05):
            missed[one.name] += not one.estimate.low <= expected[one.name] <= one.estimate.high
    assert all(count <= 5 for count in missed.values())


def test_a_table_without_rows_has_figures():
    empty = METRIC.cells(Given(), np.empty(0), np.empty(0))
    for cells, noise in ((empty, None), (METRIC.noisy(empty, NOISE, keyed_source(2)), NOISE)):
        for one in METRIC.figures(cells, noise=noise, failure=0.05):
            assert 0.0 <= one.estimate.low <= one.estimate.value <= one.estimate.high <= 100.0
