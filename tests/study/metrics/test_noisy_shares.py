"""Intervals from noisy counts hold by the exact law of rows and noise, and are not much wider than they must be."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from dpselect.study.metrics import ScoreNoise
from dpselect.study.metrics.noisy_shares import CellNoise, quantile_interval, quantile_value, share_interval_of_cells
from dpselect.study.metrics.score_noise import Reach
from tests.study.metrics.metrics_cases import ADD
from tests.study.metrics.test_score_noise import discrete_laplace, rounded_gaussian

UNIT = Reach(1, 1)
NOISES = [ScoreNoise(None, ADD, 2.0), ScoreNoise(0.7, ADD)]


def cell_noise(noise, reach=UNIT):
    return CellNoise(lambda at: noise.cumulants(at, reach))


def chance_shown(rows, p, noise, claimed, failure):
    """The exact probability that a share of p is shown to be above p, from two noisy cells."""
    values, masses = rounded_gaussian(noise.multiplier) if noise.multiplier else discrete_laplace(0.7)
    values, masses = values[masses > 1e-13], masses[masses > 1e-13]
    good = np.convolve(binom.pmf(np.arange(rows + 1), rows, p), masses)
    # the sum of both cells is the rows, and the noise of both
    chance = 0.0
    for right in range(rows + 1):
        first = (right + values)[:, None]
        second = (rows - right + values)[None, :]
        excess = (1.0 - p) * first - p * second
        shown = claimed.shown(excess.ravel(), np.full(excess.size, p), [(1, 1.0 - p), (1, p)], rows, failure)
        joint = np.outer(masses, masses).ravel()
        chance += binom.pmf(right, rows, p) * float(np.sum(joint[shown]))
    assert good.sum() == pytest.approx(1.0, abs=1e-6)
    return chance


@pytest.mark.cases(3)
@pytest.mark.parametrize("noise", NOISES, ids=["gaussian", "laplace"])
@pytest.mark.parametrize("p", [0.3, 0.9])
def test_a_share_is_shown_wrongly_as_seldom_as_is_said_by_the_exact_law(noise, p):
    failure = 0.1
    found = chance_shown(12, p, noise, cell_noise(noise), failure)
    assert failure / 50 < found <= failure


def test_intervals_that_forget_the_noise_fail():
    assert chance_shown(12, 0.3, ScoreNoise(None, ADD, 6.0), CellNoise(), 0.1) > 0.15


def test_without_noise_an_interval_is_at_most_half_as_wide_again_as_the_exact_one():
    for good in (100, 500, 900, 990):
        low, high = share_interval_of_cells(good, 1000, (1, 1), CellNoise(), 0.05)
        exact = beta.ppf(0.025, good, 1001 - good), beta.ppf(0.975, good + 1, 1000 - good)
        assert low < exact[0] < exact[1] < high
        assert high - low < 1.55 * (exact[1] - exact[0])


def test_at_a_thousand_rows_and_epsilon_3_noise_hardly_widens_an_interval():
    """Of three classes, with the noise of one run at epsilon 3 and delta 1e-5."""
    noise = cell_noise(ScoreNoise(None, ADD, 1.43))
    low, high = share_interval_of_cells(900.0, 1000.0, (3, 4), noise, 0.05)
    exact = beta.ppf(0.975, 901, 100) - beta.ppf(0.025, 900, 101)
    assert high - low < 1.5 * exact


def test_no_rows_have_no_share():
    for noise in (CellNoise(), cell_noise(NOISES[0])):
        assert share_interval_of_cells(0.0, 0.0, (1, 1), noise, 0.05) == (0.0, 1.0)
        assert share_interval_of_cells(-3.0, -5.0, (1, 1), noise, 0.05) == (0.0, 1.0)


def test_the_number_of_rows_is_bounded_from_above():
    """By the exact law of the sum of two noises: it is below -m, which the limit adds, with a small probability."""
    noise = ScoreNoise(None, ADD, 2.0)
    values, masses = rounded_gaussian(2.0)
    limit = cell_noise(noise).most_rows(100.0, 2, 0.01) - 100.0
    two = np.convolve(masses, masses)
    sums = np.arange(2 * values[0], 2 * values[-1] + 1)
    assert 0.0005 < np.sum(two[sums < -limit]) <= 0.01
    assert CellNoise(public_rows=True).most_rows(100.0, 2, 0.01) == 100.0


EDGES = np.concatenate([[0.0], np.geomspace(2.0**-8, 1.0, 64)])


@pytest.mark.full
@pytest.mark.cases(2)
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_a_quantile_is_in_its_interval(quantile):
    """At 0.2 each: of 300 tables at most 60 fail in expectation, by chance 90 once in 10**5, without the noise more."""
    random, noise = np.random.default_rng(4), ScoreNoise(None, ADD, 4.0)
    missed = {True: 0, False: 0}
    for _ in range(300):
        counts = np.histogram(random.random(150), EDGES)[0].astype(float)
        blocks = counts.reshape(8, 8).sum(axis=1) + np.round(random.normal(0.0, 4.0, 8))
        noisy = counts + np.round(random.normal(0.0, 4.0, 64))
        for counted in missed:
            claimed = cell_noise(noise) if counted else CellNoise()
            low, high = quantile_interval(blocks, noisy, EDGES, quantile, claimed, 0.2)
            missed[counted] += not low <= quantile <= high
    assert missed[True] <= 60
    assert missed[False] > missed[True]


def test_a_quantile_is_where_the_counts_cross_it():
    counts = np.array([1.0, 3.0, 4.0, 2.0])
    edges = np.arange(5.0)
    blocks = counts.reshape(2, 2).sum(axis=1)
    for quantile, value in ((0.1, 1.0), (0.25, 1.5), (0.4, 2.0), (0.6, 2.5), (0.9, 3.5)):
        assert quantile_value(blocks, counts, edges, quantile) == pytest.approx(value, abs=0.51)
    assert quantile_value(blocks, counts, edges, 0.4) == pytest.approx(2.0)
    assert 0.0 <= quantile_value(np.zeros(2), np.zeros(4), edges, 0.5) <= 4.0
    assert 0.0 <= quantile_value(np.full(2, -3.0), np.array([-4.0, 2.0, -9.0, 1.0]), edges, 0.5) <= 4.0
