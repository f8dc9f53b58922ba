"""The interval of a mean of shares holds, needs the noise, and is shorter than the mean of intervals."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from dpselect.study.metrics import ScoreNoise
from dpselect.study.metrics.mean_shares import mean_share_interval
from dpselect.study.metrics.noisy_shares import CellNoise, share_interval_of_cells
from tests.study.metrics.metrics_cases import ADD
from tests.study.metrics.test_noisy_shares import cell_noise

NOISE = ScoreNoise(None, ADD, 1.43)


@pytest.mark.full
@pytest.mark.parametrize("shares", [(0.3, 0.8), (0.95, 0.5)])
def test_without_noise_it_holds_by_the_exact_law(shares):
    """Of 25 rows of one class and 8 of the other: the chances of all counts for which it fails add up to less."""
    failure, rows = 0.2, np.array([25.0, 8.0])
    missed = 0.0
    for counts in itertools.product(range(26), range(9)):
        chance = np.prod(binom.pmf(counts, rows, shares))
        if chance > 1e-7:
            low, high = mean_share_interval(np.array(counts, float), rows, CellNoise(), failure)
            missed += chance * (not low <= np.mean(shares) <= high)
    assert 1e-4 < missed <= failure


def test_it_is_shorter_than_the_mean_of_intervals():
    total = np.array([100.0] * 10)
    for good in (np.full(10, 90.0), np.full(10, 60.0)):
        low, high = mean_share_interval(good, total, cell_noise(NOISE), 0.05)
        each = [share_interval_of_cells(g, 100.0, (1, 1), cell_noise(NOISE), 0.005) for g in good]
        old = np.mean(each, axis=0)
        assert old[0] < low < np.mean(good) / 100.0 < high < old[1]
        assert high - low < 0.6 * (old[1] - old[0])


def test_it_mirrors_when_good_and_bad_change_places():
    good, total = np.array([90.0, 30.0, 12.0]), np.array([120.0, 40.0, 30.0])
    low, high = mean_share_interval(good, total, cell_noise(NOISE), 0.05)
    other = mean_share_interval(total - good, total, cell_noise(NOISE), 0.05)
    assert (1.0 - high, 1.0 - low) == pytest.approx(other, abs=1e-9)


def test_a_class_without_rows_has_any_share():
    low, high = mean_share_interval(np.array([90.0, -3.0]), np.array([100.0, -1.0]), cell_noise(NOISE), 0.05)
    assert low < 0.45
    assert high > 0.9


@pytest.mark.full
@pytest.mark.cases(1)
def test_it_holds_with_noise_and_needs_it():
    """150 tables at 0.2: 30 fail in expectation at most."""
    random, shares = np.random.default_rng(5), np.array([0.9, 0.6, 0.3])
    noise, missed = ScoreNoise(None, ADD, 8.0), {True: 0, False: 0}
    for _ in range(150):
        rows = random.multinomial(400, [0.6, 0.25, 0.15])
        drawn = np.round(random.normal(0.0, 8.0, (2, 3)))
        good = random.binomial(rows, shares) + drawn[0]
        total = rows + drawn[0] + drawn[1]
        for counted in missed:
            low, high = mean_share_interval(good, total, cell_noise(noise) if counted else CellNoise(), 0.2)
            missed[counted] += not low <= np.mean(shares) <= high
    assert missed[True] <= 10
    assert missed[False] > 20
