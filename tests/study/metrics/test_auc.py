"""The area under the curve: its bins, groups and noise."""

import numpy as np
import pytest

from dpselect.privacy import Adjacency
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.metrics.auc import _groups
from tests.study.metrics.metrics_cases import ADD, TWO


def test_the_two_counts_of_the_area_together_cost_epsilon():
    first, second = METRICS["auc"](TWO)._noises(ScoreNoise(0.1, ADD))
    assert first.a_step(1) + second.a_step(1) == ScoreNoise(0.1, ADD).a_step(1)


class Chances:
    def predict_proba(self, X):
        return np.stack([1.0 - X, X], axis=1)


def test_pairs_in_order_count_one_and_ties_a_half():
    metric = METRICS["auc"](TWO)
    for chances, labels, expected in (
        ([0.1, 0.9], [0, 1], 1.0),
        ([0.9, 0.1], [0, 1], 0.0),
        ([0.5, 0.5], [0, 1], 0.5),
        ([0.1, 0.5, 0.9, 0.7], [0, 1, 0, 1], 0.5),
        ([0.1, 0.2, 0.9, 0.7], [0, 0, 0, 1], 2 / 3),
    ):
        cells = metric.cells(Chances(), np.array(chances), np.array(labels))
        assert cells.shape == (2, 256)
        assert metric.score(cells, rows=1.0, noise=None) == pytest.approx(expected)


def test_one_row_moves_one_count_or_two():
    metric = METRICS["auc"](TWO)
    assert metric.moved(ADD) == 1
    assert metric.moved(Adjacency.REPLACE_ONE) == 2
    assert metric.lost(np.array([0, 1, 1, -1]))[:, [0, 255]].tolist() == [[0, 1], [2, 0]]


def test_groups_have_about_equally_many_rows_and_a_bin_each():
    assert _groups(np.ones(256, dtype=np.int64)).tolist() == list(range(0, 256, 16))
    heavy = np.zeros(256, dtype=np.int64)
    heavy[255] = 1000
    assert _groups(heavy).tolist() == [0, *range(241, 256)]
