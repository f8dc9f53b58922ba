"""Conditional sampling: the distribution of the answer."""

import numpy as np
import pytest

from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Geometric, Tabulated
from dpselect.selection.conditional import SelectAcceptable, first_acceptable_run
from tests.selection.algorithms_cases import assert_law, levels
from tests.selection.selection_laws import (
    first_above_law,
)

BASE = pure_dp(epsilon=0.5)
MASSES = [0.2, 0.3, 0.4, 0.1]


@pytest.mark.statistical
def test_law_of_conditional_sampling():
    """The coin comes before each run: "none" also when the first run would have been acceptable."""
    floor, coins = 0.3, Geometric(gamma=0.3)
    masses = floor * (1 - floor) ** np.arange(200)
    law = first_above_law(MASSES, [False, True, True, False], Tabulated(probabilities=(masses / masses.sum()).tolist()))
    assert law[-1] == pytest.approx(floor / (floor + (1 - floor) * 0.7))

    def select(source):
        found = first_acceptable_run(levels(MASSES), lambda score, output: output in (1, 2), coins, source)
        return found.output if found else None

    assert_law(select, dict(zip([1, 2, None], law, strict=True)))


def test_only_an_acceptable_run_ends_it_and_one_coin_more_than_runs_is_tossed():
    ran = []

    def candidate(random):
        ran.append(len(ran))
        if len(ran) == 2:
            raise ValueError
        return 0.5, len(ran)

    def acceptable(score, output):
        return output == 4 if output != 3 else 1 / 0

    found = first_acceptable_run(candidate, acceptable, Fixed(count=9), keyed_source(1))
    assert (found.score, found.output, len(ran)) == (0.5, 4, 4)
    ran.clear()
    assert first_acceptable_run(candidate, acceptable, Fixed(count=4), keyed_source(1)) is None
    assert len(ran) == 3  # the last coin stops before its run


def test_the_guarantee_is_that_of_the_accounting_and_the_floor_is_named():
    select = SelectAcceptable(acceptable=lambda score, output: True, floor=0.2, base=BASE)
    assert select.guarantee.epsilon(0) == conditional_sampling(BASE, floor=0.2).epsilon(0)
    for floor in (0.0, 1.0):
        with pytest.raises(ArgumentError, match="floor"):
            SelectAcceptable(acceptable=lambda score, output: True, floor=floor, base=BASE)
    with pytest.raises(TypeError, match="acceptable must be callable"):
        SelectAcceptable(acceptable=1, floor=0.2, base=BASE)
