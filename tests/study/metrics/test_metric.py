"""Metrics by name and task, and the scale of their noise."""

import math

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.metrics.metric import metrics_for
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import ADD, NUMBER, REPLACE, TWO


def test_there_are_those_that_a_study_can_name():
    assert list(metrics_for(TWO)) == ["accuracy", "auc", "balanced-accuracy", "log-loss"]
    assert list(metrics_for(Target(("a", "b", "c")))) == ["accuracy", "balanced-accuracy", "log-loss"]
    assert list(metrics_for(NUMBER)) == ["absolute-error", "median-error", "r2", "squared-error"]


@pytest.mark.cases(1)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_the_noise_that_is_drawn_has_the_scale_that_is_said(adjacency):
    """E|X| of the discrete Laplace law of rate a is 2 q/(1 - q^2), q = exp(-a); 3000 draws, six standard errors."""
    metric, random = METRICS["balanced-accuracy"](TWO), keyed_source(3)
    cells = np.array([[5, 1], [0, 40]])
    drawn = np.array([metric.noisy(cells, ScoreNoise(0.5, adjacency), random) - cells for _ in range(750)])
    q = math.exp(-0.5 / metric.moved(adjacency))
    assert np.mean(np.abs(drawn)) == pytest.approx(2 * q / (1 - q * q), rel=0.12)
    assert abs(np.mean(drawn)) < 6 * 2.9 * metric.moved(adjacency) / math.sqrt(3000)
