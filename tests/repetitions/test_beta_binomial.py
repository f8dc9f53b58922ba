"""The beta-binomial distribution and the uniform one, against tables computed by hand."""

from __future__ import annotations

from fractions import Fraction

from dpselect.randomness import keyed_source
from dpselect.repetitions import BetaBinomial, Uniform
from tests.repetitions.exact_tables import agrees_with_table


def test_shape_one_half():
    # of three trials with p = U**2: the means of (1 - p)**3, 3 p (1 - p)**2, 3 p**2 (1 - p) and p**3, U uniform
    exact = [Fraction(16, 35), Fraction(8, 35), Fraction(6, 35), Fraction(5, 35)]
    agrees_with_table(BetaBinomial(trials=3, shape=0.5), exact)


def test_shape_two():
    # of two trials with the density 2 p of p
    agrees_with_table(BetaBinomial(trials=2, shape=2.0), [Fraction(1, 6), Fraction(2, 6), Fraction(3, 6)])


def test_uniform():
    agrees_with_table(Uniform(limit=4), [Fraction(1, 5)] * 5)
    source = keyed_source("uniform")
    assert {Uniform(limit=4).sample(source) for _ in range(200)} == {0, 1, 2, 3, 4}


def test_a_plan_tries_integer_numbers_of_trials():
    (beta,), (uniform,) = BetaBinomial.families(), Uniform.families()
    assert beta.whole
    assert uniform.whole
    assert beta.at(7.0) == BetaBinomial(trials=7, shape=0.5)
    assert uniform.at(7.0) == Uniform(limit=7)
