"""Means of errors: what noise is added to, and how narrow the interval is."""

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.metrics.noisy_means import NODES
from dpselect.study.metrics.row_metric import FINE_STEPS, RowMetric
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import ADD, REPLACE

TARGET = Target(bounds=(0.0, 10.0))
METRIC = METRICS["absolute-error"](TARGET)
NOISE = ScoreNoise(None, ADD, 1.43)


class Given:
    def predict(self, X):
        return X


def errors_of(rows, seed=1):
    return np.minimum(np.random.default_rng(seed).exponential(0.4, rows), 10.0)


def cells_of(errors):
    return METRIC.cells(Given(), errors, np.zeros(len(errors)))


def test_laplace_noise_is_added_to_two_numbers_as_to_any_mean():
    errors, noise = errors_of(50), ScoreNoise(1.0, ADD)
    plain = RowMetric(METRIC.of_rows, FINE_STEPS, METRIC.lower, METRIC.upper, loss=True)
    noisy = METRIC.noisy(cells_of(errors), noise, keyed_source(1))
    other = plain.noisy(plain.cells(Given(), errors, np.zeros(50)), noise, keyed_source(1))
    np.testing.assert_array_equal(noisy, other)
    found = [each.estimate(noisy, noise=noise, failure=0.05) for each in (METRIC, plain)]
    assert found[0] == found[1]
    assert METRIC.score(noisy, rows=50.0, noise=noise) == plain.score(noisy, rows=50.0, noise=noise)


def test_gaussian_noise_is_added_to_sums_of_hat_functions():
    noisy = METRIC.noisy(cells_of(errors_of(1000)), NOISE, keyed_source(1))
    assert noisy.shape == METRIC.noisy_shape == (len(NODES) + 1,)
    assert noisy[-1] == pytest.approx(1000, abs=60)
    assert np.sum(noisy[:-1]) / FINE_STEPS == pytest.approx(1000, abs=20)


def test_a_public_number_of_rows_has_no_noise():
    for seed in range(3):
        assert METRIC.noisy(cells_of(errors_of(77)), ScoreNoise(None, REPLACE, 1.43), keyed_source(seed))[-1] == 77


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_the_interval_of_a_thousand_rows_is_half_of_that_of_a_mean_alone(adjacency):
    errors, noise = errors_of(1000), ScoreNoise(None, adjacency, 1.43)
    plain = RowMetric(METRIC.of_rows, FINE_STEPS, METRIC.lower, METRIC.upper, loss=True)
    found = METRIC.estimate(METRIC.noisy(cells_of(errors), noise, keyed_source(2)), noise=noise, failure=0.05)
    old = plain.estimate(plain.noisy(cells_of(errors)[:2], noise, keyed_source(2)), noise=noise, failure=0.05)
    assert found.low < found.value < found.high
    assert found.low < errors.mean() < found.high
    assert found.high - found.low < (old.high - old.low) / (2.2 if adjacency is ADD else 1.6)


def test_scores_differ_as_the_errors_do():
    rows = 20_000
    scores = []
    for size in (1.0, 1.5):
        noisy = METRIC.noisy(cells_of(size * errors_of(rows)), NOISE, keyed_source(3))
        scores.append(METRIC.score(noisy, rows=rows, noise=NOISE))
    assert scores[0] - scores[1] == pytest.approx(0.5 * errors_of(rows).mean(), abs=0.01)


@pytest.mark.parametrize("name", ["absolute-error", "squared-error"])
def test_a_model_in_the_middle_loses_half_of_what_a_constant_loses(name):
    metric = METRICS[name](TARGET)
    cells = metric.typical(1000.0, NOISE)
    assert cells.shape == metric.noisy_shape
    found = metric.estimate(cells, noise=NOISE, failure=0.05)
    assert found.value == pytest.approx(metric.worth * (metric.upper - metric.lower) / 2.0, rel=0.05)
    assert len(metric.typical(1000.0, ScoreNoise(1.0, ADD))) == 2


def test_noisy_counts_below_one_row_give_an_estimate():
    for cells in (np.zeros(len(NODES) + 1, dtype=np.int64), np.full(len(NODES) + 1, -FINE_STEPS)):
        found = METRIC.estimate(cells, noise=NOISE, failure=0.05)
        assert 0.0 <= found.low <= found.value <= found.high <= 10.0


@pytest.mark.full
@pytest.mark.cases(1)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_a_mean_error_is_in_its_interval(adjacency):
    """150 tables with rare large errors at 0.2: 30 fail in expectation at most, 50 by chance once in 10**4."""
    random, noise, missed = np.random.default_rng(4), ScoreNoise(None, adjacency, 1.43), 0
    for k in range(150):
        errors = np.where(random.random(200) < 0.01, 10.0, 0.3)
        found = METRIC.estimate(METRIC.noisy(cells_of(errors), noise, keyed_source(k)), noise=noise, failure=0.2)
        missed += not found.low <= 0.397 <= found.high
    assert missed <= 50
