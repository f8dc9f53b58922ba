"""The binomial distribution and a fixed number of runs, against tables computed by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpselect.repetitions import (
    Binomial,
    Fixed,
)
from tests.repetitions.exact_tables import agrees_with_table


def test_binomial_by_bits_is_exact():
    """The bitwise sampler, fed every possible stream of bits, against the binomial law: probability 3/8, two trials."""

    class Stream:
        def __init__(self, number: int) -> None:
            self.number = number

        def bits(self, count: int) -> int:
            drawn, self.number = self.number & ((1 << count) - 1), self.number >> count
            return drawn

    law = Binomial(trials=2, probability=0.375)
    counts = [0, 0, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.repetitions.binomial.resolve", lambda random: random)
        for number in range(1 << 6):
            counts[law.sample(Stream(number))] += 1
    assert counts == [25, 30, 9]


def test_three_trials():
    agrees_with_table(Binomial(trials=3, probability=0.25), [Fraction(n, 64) for n in (27, 27, 9, 1)])


def test_a_fixed_number():
    agrees_with_table(Fixed(count=2), [Fraction(0), Fraction(0), Fraction(1)])
    assert Fixed(count=2).tilted(0.5) == Fixed(count=2)


def test_tilting_one_half_by_one_half_gives_one_third():
    # p s / (1 - p + p s)
    tilted = Binomial(trials=4, probability=0.5).tilted(0.5)
    assert tilted.trials == 4
    assert tilted.probability == pytest.approx(1 / 3, rel=1e-15)


def test_the_pure_shift_is_that_of_the_middle():
    # (n - 1) log((1 - p + e) / (1 + (1 - p) e)) with e = exp(epsilon); of a fixed number it is composition
    e = math.exp(0.5)
    want = 4 * math.log((0.75 + e) / (1 + 0.75 * e))
    assert Binomial(trials=5, probability=0.25).pure_shift(0.5) == pytest.approx(want, rel=1e-14)
    assert Fixed(count=5).pure_shift(0.5) == 2.0


@pytest.mark.parametrize("law", [Binomial(trials=9, probability=0.5), Fixed(count=9)])
def test_plans_try_integer_numbers(law):
    for family in type(law).families():
        assert family.whole
        assert family.at(9.0).limit == 9
