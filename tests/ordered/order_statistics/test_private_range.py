"""Private ranges and intervals hold their data, at the rate of shifted targets."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import private_range, quantile_interval
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source


@pytest.mark.full
@pytest.mark.statistical
def test_intervals_hold_the_quantile_and_ranges_the_data():
    random = keyed_source(6)
    rows = np.concatenate([np.arange(3000.0), [1500.0] * 500])
    truth = float(np.quantile(rows, 0.4))
    held = 0
    for _ in range(200):
        low, high = quantile_interval(rows, q=0.4, lower=0.0, upper=1e6, epsilon=1.0, random=random).value
        held += low <= truth <= high
        assert high - low < 500
    assert held >= 175  # at a true rate of 0.95 fewer than 175 of 200 have probability 1e-5
    for _ in range(50):
        low, high = private_range(rows * 1e-200 + 3e-200, epsilon=1.0, random=random).value
        assert np.sum(rows * 1e-200 + 3e-200 < low) <= 60
        assert 1e-198 < high <= 1e-196


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [[0.5], [999.0] * 4, [0.0, 1000.0], [0.5] * 25, list(range(100))])
def test_intervals_hold_their_quantile_however_few_rows_there_are(rows):
    """One row's target would lie 70 ranks outside the column; without rows added, nearly all of these fail."""
    random, failures = keyed_source(6), 0
    for _ in range(60):
        low, high = quantile_interval(rows, q=0.5, lower=0.0, upper=1000.0, epsilon=1.0, random=random).value
        failures += np.sum(np.array(rows) < low - 1e-6) > len(rows) / 2
        failures += np.sum(np.array(rows) <= high + 1e-6) < len(rows) / 2
    assert failures <= 14  # at a true rate of 0.05 more than 14 of 60 have probability 1e-6


ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize("call", [private_range, lambda rows, **o: quantile_interval(rows, q=0, lower=0, upper=9, **o)])
def test_ends_are_drawn_at_the_rate_of_shifted_targets(monkeypatch, call):
    """Two draws at half of epsilon = 1, where one row moves all scores by one."""
    rates = []

    def draw(column, *, size, target, rate, random, measure=None):
        rates.append(rate)
        return 0

    monkeypatch.setattr(sys.modules["dpselect.ordered.order_statistics.private_range"], "draw_code", draw)
    for adjacency in (ADD, REPLACE):
        released = call([1.0], epsilon=1.0, adjacency=adjacency)
        assert released.guarantee.epsilon(delta=0) == 1.0
    assert rates == [Fraction(1, 4)] * 4


def test_ends_are_the_outer_rows_at_a_large_epsilon():
    rows = np.arange(1.0, 1001.0)
    low, high = private_range(rows, epsilon=4000.0, random=keyed_source(7)).value
    assert 1 <= low <= 2
    assert 1000 <= high <= 1024  # the ends are powers of two
    low, high = quantile_interval(rows, q=0.25, lower=0, upper=2000, epsilon=4000.0, random=keyed_source(7)).value
    assert 248 <= low <= high <= 252
