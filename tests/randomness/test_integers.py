"""Integer draws: exponential coins, geometric, discrete Laplace and discrete Gaussian numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.randomness import RandomSource, discrete_gaussian_array, integers, keyed_source
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


def plain_coin(exponent: Fraction, random: RandomSource) -> bool:
    """Canonne, Kamath, Steinke (2020), Algorithm 1, word by word."""
    whole = math.floor(exponent)
    return all(plain_small_coin(Fraction(1), random) for _ in range(whole)) and plain_small_coin(
        exponent - whole, random
    )


def plain_small_coin(exponent: Fraction, random: RandomSource) -> bool:
    k = 1
    while random.below(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1


def plain_laplace(scale: Fraction, random: RandomSource) -> int:
    """Algorithm 2."""
    t, s = scale.numerator, scale.denominator
    while True:
        low = random.below(t)
        if not plain_coin(Fraction(low, t), random):
            continue
        high = 0
        while plain_coin(Fraction(1), random):
            high += 1
        magnitude = (low + t * high) // s
        negative = random.bits(1)
        if not negative or magnitude:
            return -magnitude if negative else magnitude


def plain_gaussian(variance: Fraction, random: RandomSource) -> int:
    """Algorithm 3."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        proposal = plain_laplace(Fraction(t), random)
        distance = abs(proposal) - variance / t
        if plain_coin(distance * distance / (2 * variance), random):
            return proposal


@pytest.mark.parametrize("size", [Fraction(1, 3), 1, 2.0, 3.3, Fraction(7, 2), 2.0**-30, 2.0**40, np.int64(5)])
def test_draws_take_the_random_bits_of_the_algorithms(size: float) -> None:
    """Number by number, and the bits after them are the same: a key gives what it gave before."""
    exact, here, there = Fraction(int(size) if isinstance(size, np.int64) else size), keyed_source(1), keyed_source(1)
    for _ in range(60):
        assert discrete_laplace(size, here) == plain_laplace(exact, there)
        assert discrete_gaussian(size, here) == plain_gaussian(exact, there)
        if size < 9:
            assert exponential_coin(size, here) == plain_coin(exact, there)
    assert here.bits(64) == there.bits(64)
