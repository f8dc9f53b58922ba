"""The first run above a threshold: its distribution, and thresholds that are infinite."""

import math

import pytest

from dpselect.repetitions import Geometric
from dpselect.selection import (
    SelectAbove,
)
from dpselect.selection.above import first_above
from tests.selection.best_cases import assert_law, die, frequencies, output_of
from tests.selection.test_algorithms import BASE


@pytest.mark.full
@pytest.mark.statistical
def test_the_law_of_the_first_above():
    """Each try succeeds with probability 2/3; after each failure the coin stops with probability 1/4."""
    tries = Geometric(gamma=0.25)
    found = frequencies(lambda s: output_of(first_above(die, 1.0, tries, s)))
    success = (2 / 3) / (2 / 3 + 1 / 4 * 1 / 3)
    assert_law(found, {None: 1 - success, 1: success / 2, 2: success / 2})


def test_a_threshold_may_be_infinite():
    for threshold in (-math.inf, math.inf):
        select = SelectAbove(threshold=threshold, stop_probability=0.5, base=BASE, max_runs=3)
        assert (select(lambda random: (0.0, "a")).value == "a") == (threshold < 0)
