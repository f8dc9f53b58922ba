"""Absolute and squared errors, clipped at the bounds of the label."""

import math

import numpy as np
import pytest

from dpselect.study.metrics import METRICS
from dpselect.study.metrics.errors import absolute_shares
from dpselect.study.metrics.row_metric import FINE_STEPS
from dpselect.study.target import Target

TARGET = Target(bounds=(-1.0, 3.0))


class Same:
    def predict(self, X):
        return X


def test_an_error_is_a_part_of_the_width_and_one_that_is_not_a_number_is_the_whole():
    answers, labels = np.array([0.0, 9.0, -9.0, np.nan, 0.0]), np.array([1.0, 1.0, -1.0, 1.0, np.nan])
    assert absolute_shares(TARGET, Same(), answers, labels).tolist() == [0.25, 0.5, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(("name", "kept", "value"), [("absolute-error", 0.75, 1.0), ("squared-error", 0.9375, 1.0)])
def test_the_value_is_in_units_of_the_label(name, kept, value):
    metric = METRICS[name](TARGET)
    cells = metric.cells(Same(), np.array([0.0]), np.array([1.0]))
    assert cells[:2].tolist() == [kept * FINE_STEPS, (1 - kept) * FINE_STEPS]
    assert cells[2:].sum() == FINE_STEPS
    assert metric.estimate(cells, noise=None, failure=0.05).value == value
    assert metric.loss


def test_errors_round_towards_the_worse():
    metric = METRICS["squared-error"](TARGET)
    first, second = metric.cells(Same(), np.array([0.0]), np.array([1 / 3]))[:2]
    assert first == math.floor((1 - (1 / 12) ** 2) * FINE_STEPS)
    assert second == FINE_STEPS - first
