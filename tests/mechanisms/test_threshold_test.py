"""The exact comparison with a noisy threshold: probabilities are enclosed, however rare."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpselect.mechanisms import threshold_test
from dpselect.randomness import keyed_source
from tests.mechanisms.sparse_vector_cases import session


def test_probabilities_are_enclosed_without_rounding() -> None:
    """The test's probability is the Laplace tail of exactly value - threshold, huge values and tiny gaps included."""
    sv = session("enclosure", sensitivity=3.0, max_positives=2)
    test = sv._test
    low, high = test._noise.enclosure(200)
    for value, threshold in ((2.0**60, 2.0**60 - 2.0**9), (0.1, 0.3), (1e300, 1e300), (-5.0, 40.0)):
        below, above = test._probability(value, threshold, 150)
        assert 0 <= above - below <= Fraction(1, 2**140)
        gap = Fraction(value) - Fraction(threshold)
        excess = float((low + high) / 2 * 3 - gap) / 6.0  # noise scales 3/1 and 2*2*3/2
        expected = 0.5 * math.exp(-excess) if excess >= 0 else 1 - 0.5 * math.exp(excess)
        assert float(below) == pytest.approx(expected, rel=1e-12)


def test_the_coin_of_a_rare_query_is_enclosed(monkeypatch):
    """2**k times the probability of a positive, from both sides: more bits stay within what fewer said."""
    seen = []
    monkeypatch.setattr(threshold_test, "coin", lambda probability, _random: seen.append(probability) or False)
    test = threshold_test.ThresholdTest(ratio=Fraction(1, 2), rate=Fraction(1, 4), random=keyed_source("rare"))
    assert not test._kept(-100.0, 0.0, 20)
    (probability,) = seen
    exact = [2**20 * end for end in test._probability(-100.0, 0.0, 200)]
    for bits in (4, 16, 64):
        low, high = probability(bits)
        assert 0 <= low <= exact[0] <= exact[1] <= high <= low + Fraction(4, 2**bits)
