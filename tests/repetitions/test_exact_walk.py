"""Probabilities as integers: how many bits a walk takes, exact fractions, and draws from a tail by rejection."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.repetitions import Geometric, Harmonic
from dpselect.repetitions.exact_walk import bits_for, draw_decreasing_tail, power_of_two_fraction


def test_bits_of_a_walk_cover_its_first_probability():
    assert bits_for(0.0) == 321
    assert bits_for(math.log(2.0**-10)) == 331
    assert bits_for(math.log(2.0**-10) - 1e-6) == 332


@pytest.mark.parametrize("value", [0.0, 1.0, 0.75, 6.0, 0.1, 5e-324])
def test_a_number_is_an_exact_fraction_with_a_power_of_two_below(value):
    numerator, shift = power_of_two_fraction(value)
    assert shift >= 0
    assert Fraction(numerator, 1 << shift) == Fraction(value)


def test_a_walk_goes_by_the_exact_ratio_and_ends_at_the_limit():
    bits, weights = Harmonic(limit=3)._exact_pmf()
    found = list(weights)
    assert found[0] == 0
    assert len(found) == 4
    first = (6 << bits) // 11
    assert found[1:] == [first, first // 2, first // 2 * 2 // 3]
    bits, endless = Geometric(gamma=0.25)._exact_pmf()
    for weight, exact in zip(islice(endless, 3), (0, Fraction(1, 4), Fraction(3, 16)), strict=True):
        assert abs(Fraction(weight, 1 << bits) - exact) <= Fraction(1, 1 << 300)


def test_a_tail_is_drawn_by_its_weights():
    """Weights 2**-k from 3: P(K = 3) = 1/2, P(K = 4) = 1/4, and 6 or more in 1/8 of 400 draws (5 deviations)."""
    source = keyed_source("tail")
    drawn = [
        draw_decreasing_tail(start=3, log_weight=lambda context, k: -k * context.log(2), random=source)
        for _ in range(400)
    ]
    counts = np.bincount(drawn, minlength=6)
    assert counts[:3].tolist() == [0, 0, 0]
    for got, share in ((counts[3], 1 / 2), (counts[4], 1 / 4), (counts[6:].sum(), 1 / 8)):
        assert abs(got - 400 * share) < 5 * math.sqrt(400 * share * (1 - share))
