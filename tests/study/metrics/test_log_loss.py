"""Log loss: the mean of -ln p of a row's class, clipped at ln 100."""

import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.study.metrics import METRICS
from dpselect.study.metrics.row_metric import FINE_STEPS
from dpselect.study.target import Target

METRIC = METRICS["log-loss"](Target(("a", "b")))


class Chances:
    def predict_proba(self, X):
        return X


def loss(chances, label):
    cells = METRIC.cells(Chances(), np.array([chances]), np.array([label]))
    return METRIC.estimate(cells, noise=None, failure=0.05).value


@pytest.mark.parametrize(
    ("chances", "label", "expected"),
    [
        ([0.5, 0.5], 1, math.log(2)),
        ([0.9, 0.1], 0, -math.log(0.9)),
        ([0.0, 1.0], 1, 0.0),
        ([0.995, 0.005], 1, math.log(100)),
        ([np.nan, np.nan], 0, math.log(100)),
        ([0.5, 0.5], -1, math.log(100)),
    ],
)
def test_a_loss_is_that_of_the_probability_of_the_class(chances, label, expected):
    assert loss(chances, label) == pytest.approx(expected, abs=math.log(100) / FINE_STEPS)


def test_the_constant_is_the_entropy_of_the_shares():
    assert METRIC.constant([0.25, 0.75]) == pytest.approx(0.25 * math.log(4) - 0.75 * math.log(0.75))
    assert METRIC.constant([0.999, 0.001]) == pytest.approx(-0.999 * math.log(0.999) + 0.001 * math.log(100))
    assert METRIC.constant([1.0, 0.0]) == 0.0


def test_there_is_a_probability_for_each_row_and_class():
    with pytest.raises(ArgumentError, match="for each row and class"):
        METRIC.cells(Chances(), np.ones((2, 3)), np.zeros(2, int))
