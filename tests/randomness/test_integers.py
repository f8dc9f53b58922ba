"""Integer draws: exponential coins, geometric, discrete Laplace and discrete Gaussian numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.randomness import discrete_gaussian_array, integers, keyed_source
from dpselect.randomness.integers import (
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_array,
    exponential_coin,
    geometric,
)
from dpselect.randomness.lazy import LazyUniform
from tests.randomness.lazy_cases import chi_square

FALSE_ALARM = 1e-6


def laplace_law(scale: float, reach: int) -> dict[int, float]:
    return {k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-reach, reach + 1)}


def gaussian_law(variance: float, reach: int) -> dict[int, float]:
    weights = {k: math.exp(-k * k / (2 * variance)) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: w / total for k, w in weights.items()}


@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(1), Fraction(5, 2)])
def test_exponential_coin(exponent: Fraction) -> None:
    random, draws = keyed_source(str(exponent)), 5000
    heads = sum(exponential_coin(exponent, random) for _ in range(draws))
    assert stats.binomtest(heads, draws, math.exp(-exponent)).pvalue > FALSE_ALARM


@pytest.mark.cases(2)
@pytest.mark.parametrize("probability", [Fraction(1, 3), 0.9, Fraction(1, 50)])
def test_geometric(probability: Fraction | float) -> None:
    random, p = keyed_source(str(probability)), float(probability)
    drawn = np.array([geometric(probability, random) for _ in range(4000)])
    assert drawn.min() == 1
    assert chi_square(drawn, {k: p * (1 - p) ** (k - 1) for k in range(1, 400)}) > FALSE_ALARM


@pytest.mark.full
def test_geometric_of_a_tiny_probability() -> None:
    """No loop over trials: a success in 2**60 trials on average is found at once."""
    random = keyed_source("tiny")
    drawn = [geometric(Fraction(1, 2**60), random) / 2**60 for _ in range(500)]
    assert stats.kstest(drawn, "expon").pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_discrete_laplace(scale: float) -> None:
    one = np.array([discrete_laplace(scale, keyed_source(f"{scale} {i}")) for i in range(1500)])
    many = discrete_laplace_array(scale, (500, 400), keyed_source(str(scale)))
    assert many.shape == (500, 400)
    for drawn in (one, many.ravel()):
        assert chi_square(drawn, laplace_law(scale, 200)) > FALSE_ALARM


@pytest.mark.cases(2)
@pytest.mark.parametrize("variance", [0.12, 1.0, 30.0])
def test_discrete_gaussian(variance: float) -> None:
    one = np.array([discrete_gaussian(variance, keyed_source(f"{variance} {i}")) for i in range(1500)])
    many = discrete_gaussian_array(variance, (500, 400), keyed_source(str(variance)))
    assert many.shape == (500, 400)
    for drawn in (one, many.ravel()):
        assert chi_square(drawn, gaussian_law(variance, 200)) > FALSE_ALARM


def test_bulk_samplers_at_large_scales() -> None:
    drawn = discrete_laplace_array(2.0**20, 20_000, keyed_source("large"))
    assert stats.kstest(drawn / 2.0**20, "laplace").pvalue > FALSE_ALARM
    for exponent in (19, 58):
        drawn = discrete_gaussian_array(4.0**exponent, 20_000, keyed_source("large"))
        assert stats.kstest(drawn / 2.0**exponent, "norm").pvalue > FALSE_ALARM


@pytest.mark.full
def test_close_calls_are_settled_exactly() -> None:
    """Every place of a block goes through the exact path and comes out as double precision had it."""
    random = keyed_source("settle")
    for scale in (Fraction(1, 3), Fraction(5), Fraction(1000)):
        for word in random.words(25):
            bits = int(word) >> 1
            u = (bits + 0.5) / 2.0**63
            c = 2 * math.exp(-1 / scale) / (1 + math.exp(-1 / scale))
            position = 1 + float(scale) * (math.log(c) - math.log(u))
            for guess in (0, max(int(position), 0), max(int(position), 0) + 2):
                got = integers._settle(scale, LazyUniform(random, bits, 63), guess)
                assert got == max(math.floor(position), 0)


def test_parameters_out_of_range() -> None:
    for scale in (0.0, -1.0, math.nan, 2.0**21):
        with pytest.raises(ArgumentError, match="scale"):
            discrete_laplace_array(scale, 3)
    with pytest.raises(ArgumentError, match="variance"):
        discrete_gaussian_array(0.0, 3)
    with pytest.raises(ArgumentError, match="probability"):
        geometric(0.0)
    with pytest.raises(ArgumentError, match="exponent"):
        exponential_coin(-1)
