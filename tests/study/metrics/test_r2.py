"""R2: 1 - (mean squared error)/(variance of the labels), from four counts of steps."""

import numpy as np
import pytest

from dpselect.privacy import Adjacency
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.target import Target

METRIC = METRICS["r2"](Target(bounds=(0.0, 4.0)))
A, B = 2**16, 2**15


class Same:
    def predict(self, X):
        return X


def test_a_row_gives_its_error_and_three_parts_that_add_up():
    cells = METRIC.cells(Same(), np.array([2.0]), np.array([1.0]))  # quarter and half of the way
    assert cells.tolist() == [A // 16, B * 9 // 16, B * 6 // 16, B // 16]
    assert METRIC.lost(np.array([1.0])).tolist() == [A, B * 9 // 16, B * 6 // 16, B // 16]
    assert METRIC.cells(Same(), np.empty(0), np.empty(0)).tolist() == [0, 0, 0, 0]


def test_the_score_of_labels_at_both_ends():
    labels = np.array([0.0, 4.0])
    for answers, expected in (([0.0, 4.0], 1.0), ([2.0, 2.0], 0.0), ([1.0, 3.0], 0.75), ([4.0, 0.0], -1.0)):
        cells = METRIC.cells(Same(), np.array(answers), labels)
        assert METRIC.score(cells, rows=2.0, noise=None) == pytest.approx(expected, abs=1e-4)
    assert METRIC.constant(None) == 0.0


def test_one_row_moves_the_counts_by_these_many_steps():
    assert METRIC.moved(Adjacency.ADD_OR_REMOVE_ONE) == A + B
    assert METRIC.moved(Adjacency.REPLACE_ONE) == A + 2 * B


def test_a_variance_below_the_noise_counts_as_if_it_were_as_large():
    noise = ScoreNoise(0.5, Adjacency.ADD_OR_REMOVE_ONE)
    cells = METRIC.cells(Same(), np.array([2.0]), np.array([3.0]))
    least = METRIC.smallest_count(noise) / (4.0 * B)
    assert METRIC.score(cells, rows=1.0, noise=noise) == pytest.approx(1.0 - (1 / 16) / least)
