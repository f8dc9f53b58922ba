"""Conditional sampling: the distribution of the answer."""

import numpy as np
import pytest

from dpselect.repetitions import Geometric, Tabulated
from dpselect.selection.conditional import first_acceptable_run
from tests.selection.algorithms_cases import assert_law, levels
from tests.selection.selection_laws import (
    first_above_law,
)

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
