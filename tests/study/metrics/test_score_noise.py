"""The noise of scores: what is drawn, what is said of it, and that parts of it add up to the whole."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from dpselect.errors import ArgumentError
from dpselect.privacy import compose, gaussian
from dpselect.randomness import keyed_source
from dpselect.study.metrics import ScoreNoise
from dpselect.study.metrics.score_noise import Reach
from tests.study.metrics.metrics_cases import ADD

UNIT = Reach(1, 1)


def rounded_gaussian(deviation):
    """The exact law of Gaussian noise that is rounded to integers."""
    most = math.ceil(12 * deviation) + 2
    values = np.arange(-most, most + 1)
    return values, ndtr((values + 0.5) / deviation) - ndtr((values - 0.5) / deviation)


def discrete_laplace(rate):
    values = np.arange(-1500, 1501)
    masses = np.exp(-rate * np.abs(values))
    return values, masses / np.sum(masses)


def test_one_of_epsilon_and_multiplier_is_given():
    for wrong in ({"epsilon": None}, {"epsilon": 1.0, "multiplier": 2.0}):
        with pytest.raises(ArgumentError, match=r"takes epsilon \(Laplace noise\) or multiplier"):
            ScoreNoise(adjacency=ADD, **wrong)


def test_gaussian_noise_has_the_deviation_that_is_said_and_a_row_at_least():
    noise = ScoreNoise(None, ADD, 3.0)
    assert noise.deviation(2) >= 3.0 * math.sqrt(2)
    assert noise.deviation(2) == pytest.approx(3.0 * math.sqrt(2), rel=1e-12)
    assert ScoreNoise(None, ADD, 0.01).deviation(1) == 1.0
    drawn = noise.added(np.full(20_000, 7), Reach(3, 2), keyed_source(1)) - 7
    assert drawn.dtype == np.int64
    assert np.std(drawn) == pytest.approx(math.sqrt(18 + 1 / 12), rel=0.03)
    assert abs(np.mean(drawn)) < 6 * 4.3 / math.sqrt(20_000)


@pytest.mark.cases(2)
@pytest.mark.parametrize("noise", [ScoreNoise(None, ADD, 1.0), ScoreNoise(None, ADD, 2.5), ScoreNoise(0.4, ADD)])
def test_cumulants_bound_the_exact_ones_and_are_near_them(noise):
    values, masses = rounded_gaussian(noise.multiplier) if noise.multiplier else discrete_laplace(0.4)
    at = np.array([-0.39, -0.1, 0.0, 0.01, 0.2, 0.39])
    exact = np.log([np.sum(masses * np.exp(t * values)) for t in at])
    found = noise.cumulants(at, UNIT)
    assert np.all(found >= exact)
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-7)


def test_there_is_no_cumulant_of_laplace_noise_beyond_its_rate():
    assert ScoreNoise(0.4, ADD).cumulants(np.array([0.4, -0.5]), UNIT).tolist() == [math.inf, math.inf]


@pytest.mark.cases(1)
@pytest.mark.parametrize("noise", [ScoreNoise(None, ADD, 1.7), ScoreNoise(0.4, ADD)])
def test_no_noise_and_no_partial_sum_is_beyond_its_limit_by_the_exact_law(noise):
    values, masses = rounded_gaussian(1.7) if noise.multiplier else discrete_laplace(0.4)
    masses, values = masses[np.abs(values) <= 150], values[np.abs(values) <= 150]
    beyond = np.sum(masses[np.abs(values) > noise.most(3, UNIT, 0.05)])
    assert 0.0 < 3 * beyond <= 0.05
    middle, limit = len(values) // 2, noise.most_partial(3, UNIT, 0.05)
    inside = np.where(values == 0, 1.0, 0.0)
    for _ in range(3):
        inside = np.convolve(inside, masses)[middle : middle + len(values)] * (np.abs(values) <= limit)
    assert 0.0 < 1.0 - np.sum(inside) <= 0.05


def test_parts_of_the_noise_cost_what_the_whole_does():
    shares = (Fraction(1, 4), Fraction(3, 4))
    parts = ScoreNoise(None, ADD, 2.0).split(shares)
    spent = compose(*[gaussian(noise_multiplier=each.multiplier) for each in parts])
    assert spent.gaussian_mu <= 0.5
    assert spent.gaussian_mu == pytest.approx(0.5, rel=1e-9)
    pure = ScoreNoise(1.0, ADD).split(shares)
    assert sum(each.a_step(1) for each in pure) == 1


def test_a_cell_hardly_ever_has_more_noise_than_its_size():
    assert ScoreNoise(0.5, ADD).size(Reach(2, 4)) == pytest.approx(16.0)
    assert 2 * norm.sf(ScoreNoise(None, ADD, 5.0).size(UNIT) / 5.0) < 0.003
