"""Propose-test-release: distances against brute force, and exact audits over all small data sets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms.instability import sensitivity_of_middle, sorted_units
from tests.audits.propose_test_laws import (
    interquantile_range_law,
    trimmed_mean_law,
)
from tests.ledger.test_accounting import Mechanism, Record, advantage
from tests.mechanisms.propose_test_release_cases import (
    Laws,
    changes,
    interquantile_range,
    multisets,
    neighbours,
    trimmed_mean,
)

ROUNDING = 1e-12
FAR = 1000


@pytest.mark.cases(2)
@pytest.mark.theorem("Nissim, Raskhodnikova, Smith 2007, Proposition 3.4", exact=True, sharp=True)
@pytest.mark.parametrize(("count", "trim", "width"), [(5, 0.5, 1), (6, 0.5, 2), (7, 0.3, 3), (6, 0.2, 4), (3, 0.1, 2)])
def test_the_sensitivity_of_the_middle_and_its_distance_by_brute_force(count, trim, width):
    """All data over a small universe with two far ends: replace any row by anything, and count the changes."""
    universe = (-FAR, 0, 1, 2, 4, FAR)
    mechanism = trimmed_mean(width=width, trim=trim)
    trimmed = mechanism.trimmed(count)
    everything = multisets(universe, count)

    def middle(rows):
        return sum(rows[trimmed : count - trimmed])

    local = {x: max(abs(middle(x) - middle(y)) for y in neighbours(x, universe)) for x in everything}
    unstable = [x for x in everything if local[x] > width]
    for x in everything:
        rows = np.array(x)
        assert min(sensitivity_of_middle(rows, trimmed, 0), FAR // 2) == min(local[x], FAR // 2)
        assert mechanism.distance(rows) == min(changes(x, y) for y in unstable)


def test_rows_are_rounded_one_by_one():
    assert sorted_units([0.3, math.nan, -math.inf, 1e300, -0.74], 0.5).tolist() == [-1, 0, 0, 1, 1 << 52]
    for wrong in ([], [[1.0]], ["a"], [1j]):
        with pytest.raises(ArgumentError, match="values"):
            sorted_units(wrong, 0.5)


PAIRS = [
    ((0, 0, 1, 1, 30), (0, 0, 1, 30, 30)),
    ((0, 0, 0, 0, 1), (0, 0, 0, 1, 1)),
    ((0, 0, 0, 30, 30), (0, 0, 30, 30, 30)),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_adversary_beats_the_ledger_with_them(pair):
    """All adaptive orders of a median and an interquartile range, paid at what came out, on one pair of neighbours."""
    median = Laws(trimmed_mean(delta=0.02), trimmed_mean_law, pair, (0, 30))
    spread = Laws(interquantile_range(delta=0.02), interquantile_range_law, pair, (-4, 14))
    for epsilon, delta, depth in ((1.7, 0.04, 2), (2.8, 0.06, 3)):
        for games in ([median, spread], [flipped(median), flipped(spread)]):
            found = advantage(Record(epsilon, delta, adjacency="replace_one"), games, epsilon, depth)
            assert found <= delta + ROUNDING


def flipped(mechanism):
    return Mechanism(mechanism.lower, mechanism.upper, mechanism.cells, {}, mechanism.guarantee)
