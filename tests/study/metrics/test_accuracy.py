"""Accuracy: the fraction of the rows whose label is predicted."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.study.metrics import METRICS
from dpselect.study.metrics.accuracy import answers_of
from dpselect.study.target import Target


class Same:
    def predict(self, X):
        return X


def test_its_counts_are_of_right_and_wrong_rows_and_an_unknown_label_is_wrong():
    metric = METRICS["accuracy"](Target(("a", "b")))
    assert metric.cells(Same(), np.array([0, 1, 1, -1]), np.array([0, 1, 0, -1])).tolist() == [[1, 1, 0], [1, 0, 1]]
    for cells in ([3, 1], [[1, 2, 0], [0, 0, 1]]):  # of Laplace noise right and wrong ones alone
        assert metric.estimate(np.array(cells), noise=None, failure=0.05).value == 0.75
        assert metric.score(np.array(cells), rows=4.0, noise=None) == 0.75
    assert not metric.loss


def test_the_constant_answer_is_the_most_common_class():
    assert METRICS["accuracy"](Target(("a", "b", "c"))).constant([0.2, 0.5, 0.3]) == 0.5


def test_answers_have_one_number_for_each_row():
    assert answers_of(Same(), [1, 0], [0, 0]).tolist() == [1, 0]
    for other in ([[1], [0]], [1], [1, 0, 1]):
        with pytest.raises(ArgumentError, match="one label for each row"):
            answers_of(Same(), other, [0, 0])
