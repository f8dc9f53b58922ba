"""The noise of a noisy binary search: its cost on every data set, sharing, and its deviation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtr

from dpselect.adaptive.blocks import normal_loss
from dpselect.adaptive.search_noise import SearchNoise, best_sharing, search_cost
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_laws import data_sets, search_law
from tests.privacy.test_statements import within_one_per_cent


@pytest.mark.cases(5)
@pytest.mark.parametrize("sharing", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("deviation", [0.7, 1.5])
def test_the_noise_of_a_search_costs_what_is_claimed_on_every_data_set(sharing: float, deviation: float) -> None:
    """Both accounts of a search against its exact law, over all data of 5 blocks on 8 points: the probability of a
    share of c or less, and the expected shortfall below c. The worst data come within a factor 30 of both."""
    size, blocks, steps, c = 8, 5, 3, 0.25
    noise = SearchNoise.of_deviation(steps, deviation, sharing=sharing)
    x = (0.5 - c) * blocks / deviation
    noises = steps * (2 if sharing else 1)
    union, shortfall = noises * float(ndtr(-x)), noises * deviation / blocks * float(normal_loss(x))
    worst_probability = worst_shortfall = 0.0
    for values in data_sets(size, blocks):
        data, points = np.array(values)[:, None], np.arange(size)[None, :]
        shares = np.minimum((data <= points).mean(0), (data >= points).mean(0))
        law = search_law(values, size, noise.fresh, noise.shared)
        worst_probability = max(worst_probability, float(law[shares <= c].sum()))
        worst_shortfall = max(worst_shortfall, float(law @ np.maximum(c - shares, 0.0)))
    assert union / 30 < worst_probability <= union
    assert shortfall / 30 < worst_shortfall <= shortfall


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 64), st.floats(0.0, 4.0), st.integers(0, 2**30))
def test_the_cost_of_a_search_covers_every_subset_of_steps(steps: int, sharing: float, seed: int) -> None:
    """d' Sigma^-1 d for random zero-one vectors, by solving the linear system."""
    covariance = np.eye(steps) + sharing * np.ones((steps, steps))
    shift = np.random.default_rng(seed).integers(0, 2, steps).astype(float)
    squared = float(shift @ np.linalg.solve(covariance, shift))
    assert squared * (1.0 + sharing) <= search_cost(steps, sharing) * (1 + 1e-9)


def test_sharing_pays() -> None:
    assert search_cost(10, 0.0) == 10.0
    assert search_cost(10, best_sharing(10)) < 4.34
    assert search_cost(64, best_sharing(64)) < 20.3
    assert best_sharing(1) == 0.0
    for steps in (2, 10, 64):
        assert search_cost(steps, best_sharing(steps)) <= (math.sqrt(steps) + 1) ** 2 / 4 * 1.0001


@pytest.mark.cases(1)
@pytest.mark.parametrize("deviation", [0.02, 1.0, 300.0, 1e6])
def test_the_noise_has_its_deviation(deviation: float) -> None:
    """Two thousand searches: the sample deviation is within 10 % but for a chance below 1e-9."""
    source, noise = keyed_source(7), SearchNoise.of_deviation(8, deviation)
    drawn = np.array([noise.draw(source) for _ in range(2000)]) / noise.scale
    assert math.isclose(float(drawn.std()), deviation, rel_tol=0.1)
    covariance = float(np.mean(drawn[:, 0] * drawn[:, 5]))
    assert abs(covariance - noise.shared**2) < 0.15 * deviation**2
    assert math.isclose(noise.deviation, deviation, rel_tol=1e-12)


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("steps", [1, 5, 10, 40])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 2.0])
def test_the_noise_of_a_search(steps, sharing):
    """The squared length of a shift of correlated Gaussian counts, by the covariance, over all numbers of steps."""
    covariance = np.eye(steps) + sharing * np.ones((steps, steps))
    shifts = np.tri(steps)
    truth = float(np.max(np.sum(shifts * np.linalg.solve(covariance, shifts.T).T, axis=1)))
    assert within_one_per_cent(truth * (1.0 + sharing) * (1 - 1e-9), search_cost(steps, sharing))
