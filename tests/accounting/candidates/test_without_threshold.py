"""A search without a threshold: how many runs it needs."""

from __future__ import annotations

import math

import pytest

from dpselect.accounting.candidates.without_threshold import runs_needed
from tests.accounting.candidates.threshold_published_cases import near


@pytest.mark.parametrize(
    ("numbers", "passing", "samples"),
    [
        ({"candidates": 10, "thresholds": 10, "epsilon_run": 1.0}, 1.49882325e-57, 5.83e58),
        ({"candidates": 10, "thresholds": 10, "epsilon_run": 0.1}, 1.05388063e-24, 2.13e26),
        ({"candidates": 2, "thresholds": 4, "epsilon_run": 0.01, "failure_probability": 0.25}, None, 2.69e15),
    ],
)
def test_runs_needed_without_a_threshold(numbers, passing, samples):
    needed = runs_needed(**numbers, epsilon_search=1.0, delta=1e-6, version="paper")
    assert 10**needed.log10_samples == near(samples, rel=2e-3)
    if passing is not None:
        assert 10**needed.log10_passing == near(passing)
    ours = runs_needed(**numbers, epsilon_search=1.0, delta=1e-6)
    assert ours.total < needed.total, "conditioning the tries leaves the whole budget to the search"
    assert ours.epsilon_search == 2 * needed.epsilon_search == 1.0
    found = (3 * math.exp(-ours.slack / 2) - 1) * ours.smoothing  # what `threshold_search_samples` promises, times N
    assert 10 ** (ours.log10_passing + ours.log10_samples) == near(found)
