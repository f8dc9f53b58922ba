"""Means over rows: a metric that forgets a step or a count is found."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from dpselect.study.metrics import METRICS, RowMetric
from dpselect.study.metrics.score_noise import Reach
from tests.study.metrics.metrics_cases import (
    ADD,
    NUMBER,
    TWO,
    worst_loss,
)


def test_a_row_metric_that_forgets_its_steps_is_found():
    wrong = replace(METRICS["squared-error"](NUMBER), steps=2**16)
    with patch.object(RowMetric, "noisy", lambda self, cells, noise, random: noise.added(cells, Reach(1, 1), random)):
        assert worst_loss(wrong, NUMBER, ADD) > 1000.0


def test_a_mean_that_keeps_the_number_of_rows_without_noise_is_found():
    """Under adding or removing, the second cell without noise would tell how many rows there are."""
    metric = METRICS["accuracy"](TWO)

    def forgetful(self, cells, noise, random):
        total = noise.added(cells[:1], self.reach(noise.adjacency), random)[0]
        return np.array([total, int(np.sum(cells)) - total])

    with patch.object(RowMetric, "noisy", forgetful), pytest.raises(AssertionError):
        worst_loss(metric, TWO, ADD)
