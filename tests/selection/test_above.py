"""The first run above a threshold: its distribution, and thresholds that are infinite."""

import math

import pytest

from dpselect.accounting import threshold_stopping
from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Geometric
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


def test_the_threshold_is_reached_by_a_tie_and_the_coin_limits_the_tries():
    ran = []

    def candidate(random):
        ran.append(1)
        return 1.0, "found"

    def tried(threshold, most):
        ran.clear()
        return output_of(first_above(candidate, threshold, Fixed(count=most), keyed_source(1))), len(ran)

    assert tried(1.0, 5) == ("found", 1)
    assert tried(math.nextafter(1.0, 2.0), 5) == (None, 5)


def test_the_guarantee_is_that_of_the_accounting_and_numbers_are_named():
    select = SelectAbove(threshold=0.5, stop_probability=0.1, base=BASE, max_runs=4)
    assert select.guarantee.epsilon(0) == threshold_stopping(BASE, stop_probability=0.1, max_runs=4).epsilon(0)
    for wrong in ({"stop_probability": 1.5}, {"threshold": math.nan}, {"max_runs": 0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            _ = SelectAbove(**{"threshold": 0.5, "stop_probability": 0.1, "base": BASE, **wrong}).guarantee
