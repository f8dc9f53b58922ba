"""A few scores are drawn from in plain Python: the same choice and the same random bits as from many."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpselect.mechanisms import exponential, flipping, noisy_max
from dpselect.mechanisms.scores import CHUNK, FEW, ScoreChunks, read_scores
from dpselect.randomness import keyed_source
from dpselect.randomness.lazy import exponential_enclosure

DRAWS = [exponential.draw_exponential, flipping.draw_permute_and_flip, noisy_max._draw_laplace]


def some_scores(generator: np.random.Generator, turn: int) -> np.ndarray:
    """Ties, close and far scores, infinities and NaN."""
    scores = 10.0 ** generator.integers(-8, 4) * np.round(
        generator.normal(size=generator.integers(1, FEW + 1)), turn % 5
    )
    for value, every in ((-math.inf, 3), (math.nan, 5), (math.inf, 7)):
        if turn % every == 0:
            scores[generator.random(len(scores)) < 0.3] = value
    return scores * 1e300 if turn % 11 == 0 else scores


def same_draws(turns: int) -> None:
    generator = np.random.default_rng(turns)
    for turn in range(turns):
        few = read_scores(some_scores(generator, turn))
        many = replace(few, few=None)
        rate = Fraction(int(generator.integers(1, 1000)), int(generator.integers(1, 1000)))
        here, there = keyed_source(turn), keyed_source(turn)
        for draw in DRAWS:
            assert draw(few, rate, here) == draw(many, rate, there)
        assert here.bits(64) == there.bits(64)


def test_the_choice_and_the_random_bits_are_those_of_many_scores() -> None:
    same_draws(300)


@pytest.mark.full
def test_a_hundred_thousand_choices_are_those_of_many_scores() -> None:
    same_draws(34_000)


def test_which_scores_are_few() -> None:
    """And that they are read as in an array of many: integers are clipped, NaN is -inf, +inf the largest float64."""
    given = [2.0, 3, 10**400, -(1 << 60), np.float64(4.5), math.nan, math.inf, -math.inf]
    read = read_scores(given)
    assert read.few == [2.0, 3.0, 2.0**53, -(2.0**53), 4.5, -math.inf, float(np.finfo(float).max), -math.inf]
    assert (read.count, read.best) == (8, float(np.finfo(float).max))
    assert read.vector().tolist() == read.few == read_scores(ScoreChunks(lambda: [given])).vector().tolist()
    assert read_scores(tuple(given)).few == read.few
    for array in (np.arange(FEW, dtype=np.float64), list(range(FEW))):
        assert read_scores(array).few == list(range(FEW))
    for other in (np.zeros(FEW + 1), np.zeros(3, dtype=np.float32), [1.0, None], [1.0, True]):
        assert read_scores(other).few is None
    assert len(read_scores(np.zeros(CHUNK)).vector()) == CHUNK


class Words:
    """A source with a script of words and zeros after them. It tells how many candidates it chose among."""

    def __init__(self, *words: int) -> None:
        self.script, self.among = list(words), []

    def words(self, size: int) -> np.ndarray:
        return np.array([self.bits(64) for _ in range(size)], dtype="<u8")

    def bits(self, count: int) -> int:
        assert count == 64
        return self.script.pop(0) if self.script else 0

    def below(self, bound: int) -> int:
        self.among.append(bound)
        return 0


def near_exponentials(exponent: Fraction, bits: int, factor: Fraction, steps: list[int]) -> list[tuple[int, bool]]:
    """Uniforms of so many bits around factor exp(-exponent), each with whether it is below that."""
    low, high = exponential_enclosure(exponent, 300)
    nearest = math.floor(low * factor * (1 << bits))
    uniforms = [nearest + step for step in steps]
    assert all(uniform <= nearest or uniform >= high * factor * (1 << bits) for uniform in uniforms)
    return [(uniform, uniform < low * factor * (1 << bits)) for uniform in uniforms if uniform >= 0]


@pytest.mark.parametrize("weight", [1, 3, (1 << 37) + (1 << 8)])
def test_a_proposal_near_its_probability_is_kept_as_in_real_arithmetic(weight: int) -> None:
    """128 bits of a uniform that agree with the probability to 53 bits or more: float64 alone is wrong on many."""
    rate, wrong = Fraction(7, 3), 0
    for score in (-0.1, -1.3, -5.7, -11.9, -14.0, -40.0):
        exponent, factor = rate * -Fraction(score), Fraction(1 << 37, weight)
        if factor * exponential_enclosure(exponent, 300)[1] > 1:
            continue
        steps = [0, 1, -1, *(sign * 3 << k for k in range(58, 80) for sign in (1, -1))]
        for uniform, below in near_exponentials(exponent, 128, factor, steps):
            source: Any = Words(uniform >> 64, uniform & (1 << 64) - 1)
            assert exponential._kept(rate, 0.0, score, weight, source) == below
            by_float = uniform >> 64 < math.exp(score * float(rate)) * 2.0**37 / weight * 2.0**64
            wrong += by_float != below
    assert wrong > 5


def test_a_coin_near_its_probability_lands_as_in_real_arithmetic() -> None:
    rate, wrong = Fraction(7, 3), 0
    for whole in np.random.default_rng(1).integers(1 << 20, 1 << 32, 40).tolist():
        score = math.log(whole / 2.0**32) / float(rate)  # 2**32 times the probability is hardly off a whole number
        steps = [0, 1, -1, *(sign * 3 << k for k in range(50, 68, 3) for sign in (1, -1))]
        for uniform, below in near_exponentials(rate * -Fraction(score), 96, Fraction(1), steps):
            # the first 32 bits are the coin's of the second candidate; the best one's are 0
            source: Any = Words(uniform >> 64 << 32, uniform & (1 << 64) - 1)
            flipping._drawn_of_few([0.0, score], 0.0, rate, source)
            assert source.among[0] == 1 + below
            wrong += (uniform >> 64 < math.floor(math.exp(score * float(rate)) * 2.0**32)) != below
    assert wrong > 5


def test_exponentials_and_logarithms_of_this_machine_are_as_near_as_is_assumed() -> None:
    """Within a factor 1 +- 2**-44, against 100 bits."""
    mpmath.mp.prec = 100
    for x in np.random.default_rng(1).uniform(-700.0, 0.0, 500).tolist():
        assert abs(mpmath.mpf(math.exp(x)) / mpmath.exp(x) - 1) <= 2.0**-44
        y = math.exp(x)
        assert abs(mpmath.mpf(math.log(y)) / mpmath.log(y) - 1) <= 2.0**-44
