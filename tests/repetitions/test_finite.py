"""Distributions of K that are computed from a table of log weights."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.repetitions.finite import WeightedLaw
from tests.repetitions.exact_tables import agrees_with_table


class Weighted(WeightedLaw):
    """P(K = k) in proportion to 3, 0, 1, 4."""

    minimum = 0
    limit = 3

    def _log_weights(self):
        with np.errstate(divide="ignore"):
            return np.log([3.0, 0.0, 1.0, 4.0]) + 700.0  # a constant that overflows if it is not taken out

    def _exact_weights(self):
        return 320, [3, 0, 1, 4]


def test_all_follows_from_the_weights():
    agrees_with_table(Weighted(), [Fraction(n, 8) for n in (3, 0, 1, 4)])


def test_outside_of_the_table_nothing_is_possible():
    law = Weighted()
    assert law.pmf(np.array([-1, 1, 4, 99])).tolist() == [0.0] * 4
    assert law.survival(np.array([-1, 3, 99])).tolist() == [1.0, 0.0, 0.0]
    assert law.size_biased_survival(99) == 0.0


def test_beyond_one_the_generating_function_is_the_sum_and_overflows_late():
    assert Weighted().pgf(2.0) == pytest.approx((3 + 4 + 32) / 8, rel=1e-14)
    assert Weighted().pgf(1e100) == pytest.approx(5e299, rel=1e-12)


def test_tilting_is_by_powers():
    tilted = Weighted().tilted(0.5)
    assert tilted.pmf(np.arange(4)) == pytest.approx(np.array([3, 0, 0.25, 0.5]) / 3.75, rel=1e-14)
    assert math.isclose(tilted.mean, (0.5 + 1.5) / 3.75, rel_tol=1e-12)
