"""Intervals for means from noisy sums of hat functions hold by the exact law, and need the noise."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr
from scipy.stats import binom, norm

from dpselect.study.metrics import noisy_means
from dpselect.study.metrics.noisy_means import NODES, SumNoise, hat_sums, log_tail_factor, mean_interval, weights_of_bet

STEPS = 2**16
GRID = noisy_means._GRID
BETS = {True: noisy_means._LOWER_BETS, False: noisy_means._UPPER_BETS}


def exact_chance(values, chances, rows, claimed, true, *, upwards, failure=0.1):
    """The exact probability that some bet wrongly shows that the mean of `values` is beyond the next value of the grid.

    Added up over the bets, each with its own sum of weights.
    """
    mean = float(np.dot(values, chances))
    place = int(np.searchsorted(GRID, mean)) - (0 if upwards else 1)
    of_each = np.array([hat_sums(np.array([value]), STEPS) / STEPS for value in values])
    found = 0.0
    for bet in BETS[upwards]:
        weights, least = weights_of_bet(bet, rows, claimed, failure, upwards=upwards)
        given, tau = of_each @ weights[place], true * float(np.linalg.norm(weights[place]))
        for counts in itertools.product(range(rows + 1), repeat=len(values) - 1):
            rest = rows - sum(counts)
            if rest >= 0:
                every = np.array([*counts, rest])
                chance = math.exp(
                    math.lgamma(rows + 1)
                    + sum(n * math.log(c) - math.lgamma(n + 1) for n, c in zip(every, chances, strict=True))
                )
                missing = least[place] - float(every @ given)
                found += chance * (norm.sf(missing / tau) if tau > 0.0 else float(missing <= 0.0))
    return found


POPULATIONS = [
    ([0.0, 1.0], [0.9, 0.1]),
    ([0.02, 1.0], [0.97, 0.03]),
    ([0.0, 0.3, 1.0], [0.5, 0.3, 0.2]),
    ([0.05, 0.07], [0.5, 0.5]),
]


@pytest.mark.theorem("docs/theory/intervals-of-means.md, Lemma 1", exact=True, loose="Markov's inequality")
@pytest.mark.parametrize(("values", "chances"), POPULATIONS)
@pytest.mark.parametrize("upwards", [True, False], ids=["lower end", "upper end"])
@pytest.mark.parametrize("deviation", [0.0, 1.43, 10.0])
def test_a_mean_is_shown_wrongly_as_seldom_as_is_said_by_the_exact_law(values, chances, upwards, deviation):
    noise = SumNoise(deviation, 0.0)
    assert exact_chance(values, chances, 12, noise, deviation, upwards=upwards) <= 0.1


def test_the_exact_law_comes_near_what_is_said():
    values, chances = [0.0, 1.0], [0.8, 0.2]
    assert exact_chance(values, chances, 20, SumNoise(1.43), 1.43, upwards=False) > 0.02


@pytest.mark.parametrize(("values", "chances", "upwards"), [(*POPULATIONS[0], True), (*POPULATIONS[1], False)])
def test_ends_that_count_half_of_the_noise_fail(values, chances, upwards):
    assert exact_chance(values, chances, 12, SumNoise(2.0), 2.0, upwards=upwards) <= 0.1
    assert exact_chance(values, chances, 12, SumNoise(1.0), 2.0, upwards=upwards) > 0.1


@pytest.mark.theorem("docs/theory/intervals-of-means.md, Theorem 1", exact=True, loose="a union bound")
@pytest.mark.cases(2)
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_without_noise_the_interval_of_a_share_holds_by_the_exact_law(share):
    """All numbers of right answers among 15, with their chances."""
    missed = 0.0
    for ones in range(16):
        sums = np.array([15.0 - ones, 0, 0, 0, 0, 0, ones])
        low, high = mean_interval(sums, 15.0, SumNoise(), 0.2)
        missed += float(binom.pmf(ones, 15, share)) * (not low <= share <= high)
    assert missed <= 0.2


def test_weights_are_below_the_bets_between_the_nodes():
    """The lemma needs w(x) <= ln((1 + lambda x)/(1 + lambda p)). Its right side has mean 1 at most."""
    x = np.random.default_rng(1).random(400)
    parts = np.array([hat_sums(np.array([each]), STEPS) / STEPS for each in x])
    mean_of = parts @ NODES
    assert np.all((mean_of >= x - 1e-12) & (mean_of <= x + 1.0 / STEPS))
    for upwards in (True, False):
        for bet in BETS[upwards]:
            weights, _ = weights_of_bet(bet, 500.0, SumNoise(1.4), 0.03, upwards=upwards)
            for place in (100, 7000, 9500):
                p, ends = GRID[place], weights[place]
                slope = np.expm1(-ends[0]) / p  # as the first weight is -ln(1 + lambda p)
                bound = np.log1p(slope * mean_of) - np.log1p(slope * p)
                assert np.all(parts @ ends <= bound + 1e-9)


def test_the_tail_factor_is_the_largest_value_of_the_tail_times_the_exponential():
    for tau in (0.01, 0.3, 1.0, 2.5, 9.0, 30.0):
        best = minimize_scalar(lambda u, t=tau: -(log_ndtr(-u) + t * u), bounds=(-9.0, tau + 2.0), method="bounded")
        bound = float(log_tail_factor(np.array([tau]))[0])
        assert -best.fun - 1e-9 <= bound <= -best.fun + 1e-4
        assert bound <= tau * tau / 2.0
    assert float(log_tail_factor(np.array([100.0]))[0]) == 5000.0
    assert abs(float(log_tail_factor(np.array([0.0]))[0])) < 1e-9


def test_sums_of_hat_functions_add_up_to_the_rows_and_round_up():
    numbers = np.random.default_rng(2).random(300)
    sums = hat_sums(numbers, STEPS)
    assert sums.sum() == 300 * STEPS
    assert 0.0 <= float(NODES @ sums) / STEPS - float(np.sum(numbers)) <= 300.0 / STEPS
    assert hat_sums(np.zeros(0), STEPS).tolist() == [0] * len(NODES)


def test_a_thousand_small_errors_have_a_short_interval():
    """Four times shorter than the one that knows their mean alone."""
    errors = np.minimum(np.random.default_rng(3).exponential(0.04, 1000), 1.0)
    low, high = mean_interval(hat_sums(errors, STEPS) / STEPS, 1000.0, SumNoise(1.43, 0.5 / STEPS), 0.05)
    assert low < errors.mean() < high
    assert high - low < 2.5 * 3.92 * errors.std() / math.sqrt(1000)


def test_no_rows_tell_nothing():
    low, high = mean_interval(np.zeros(len(NODES)), 0.0, SumNoise(1.43), 0.05)
    assert (low, high) == (0.0, 1.0)


ADVERSARIES = {
    "a share": np.repeat([0.0, 1.0], [700, 300]),
    "rare ones": np.repeat([0.016, 1.0], [996, 4]),
    "rarer ones": np.repeat([0.01, 1.0], [998, 2]),
    "all ones": np.ones(9),
    "zeros": np.zeros(9),
    "between nodes": np.full(9, 0.7),
    "two scales": np.repeat([0.001, 0.2], [900, 100]),
}


@pytest.mark.full
@pytest.mark.cases(7)
@pytest.mark.parametrize("name", ADVERSARIES)
def test_the_interval_holds_with_noise(name):
    """200 tables of 150 rows at 0.2: 40 fail in expectation at most, 63 by chance once in 10**4."""
    random, numbers, missed = np.random.default_rng(5), ADVERSARIES[name], 0
    for _ in range(200):
        noisy = hat_sums(random.choice(numbers, 150), STEPS) / STEPS + random.normal(0.0, 1.43, len(NODES))
        low, high = mean_interval(noisy, 150.0 + random.normal(0.0, 11.0), SumNoise(1.43, 0.5 / STEPS), 0.2)
        missed += not low <= numbers.mean() <= high
    assert missed <= 63
