"""Balanced accuracy: the mean over the classes of the fraction of their rows that is recognised."""

import numpy as np
import pytest

from dpselect.privacy import Adjacency
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.target import Target

METRIC = METRICS["balanced-accuracy"](Target(("a", "b", "c")))


class Same:
    def predict(self, X):
        return X


def test_rows_are_counted_by_class_and_by_whether_they_are_recognised():
    X, y = np.array([0, 0, 1, 2, 2, 2, 0]), np.array([0, 1, 1, 2, 0, 2, -1])
    cells = METRIC.cells(Same(), X, y)
    assert cells.tolist() == [[1, 1, 2, 0], [1, 1, 0, 1]]
    assert METRIC.score(cells, rows=6.0, noise=None) == pytest.approx((0.5 + 0.5 + 1.0) / 3)
    assert METRIC.rows_by_class(cells) == [2.0, 2.0, 2.0]
    assert METRIC.lost(y).tolist() == [[0, 0, 0, 0], [2, 2, 2, 1]]


def test_one_row_moves_one_count_or_two():
    assert METRIC.moved(Adjacency.ADD_OR_REMOVE_ONE) == 1
    assert METRIC.moved(Adjacency.REPLACE_ONE) == 2
    assert METRIC.constant(None) == pytest.approx(1 / 3)


def test_a_class_with_fewer_rows_than_the_noise_counts_as_if_it_had_as_many():
    noise = ScoreNoise(0.1, Adjacency.ADD_OR_REMOVE_ONE)
    least = METRIC.smallest_count(noise)
    assert least > 5
    cells = np.array([[1, 400, 400, 0], [0, 0, 0, 0]])
    assert METRIC.score(cells, rows=1.0, noise=noise) == pytest.approx((1 / least + 2.0) / 3)
    assert METRIC.score(-cells, rows=1.0, noise=noise) == 0.0
