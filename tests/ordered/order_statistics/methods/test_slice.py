"""The method of slices, by `Quantiles`: its cost, its accuracy, and the error that it states."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.ordered import Quantiles, quantiles
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source


@pytest.mark.full
@pytest.mark.statistical
def test_answers_are_near_their_quantiles():
    rows = np.random.default_rng(1).normal(size=20_000)
    released = quantiles(
        rows, qs=[0.1, 0.5, 0.9], lower=-9.0, upper=9.0, epsilon=2.0, method="slice", delta=1e-6, random=keyed_source(1)
    )
    errors = released.rank_errors(0.05)
    for q, value, error in zip([0.1, 0.5, 0.9], released.value, errors, strict=True):
        assert abs(np.sum(rows <= value) - q * 20_000) <= error < 2500
    assert abs(released.noisy_rows - 20_000) < 200
    assert quantiles([], qs=[0.2, 0.7], lower=0, upper=1, epsilon=1.0, method="slice", delta=1e-6).value[0] >= 0


@pytest.mark.full
@pytest.mark.statistical
def test_slices_that_are_too_small_say_so():
    """500 rows a slice at this price are fewer than a draw may be off by: it may lie anywhere outside its slice."""
    count, upper = 6000, 2**40
    rows, qs = upper - count + np.arange(count), [(k + 0.5) / 12 for k in range(12)]
    released = quantiles(
        rows, qs=qs, lower=0, upper=upper, epsilon=1.0, method="slice", delta=1e-6, random=keyed_source(1)
    )
    off = [
        max(q * count - np.sum(rows <= v), np.sum(rows < v) - q * count)
        for q, v in zip(qs, released.value, strict=True)
    ]
    assert max(off) > 5000
    assert all(found <= error for found, error in zip(off, released.rank_errors(0.05), strict=True))


QS = ([0.5], [0.25, 0.5, 0.75], [0.1, 0.2, 0.5, 0.7, 0.9])


@pytest.mark.parametrize("epsilon", [0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0])
def test_slices_cost_the_epsilon_that_is_asked_at_most(epsilon):
    plan = Quantiles(epsilon=epsilon, qs=QS[1], method="slice", delta=1e-5)
    assert 0.9 * epsilon < plan.guarantee.epsilon(delta=1e-5) <= epsilon
    assert plan.slicing.guarantee(Adjacency.ADD_OR_REMOVE_ONE).epsilon(1e-5) == plan.guarantee.epsilon(delta=1e-5)
