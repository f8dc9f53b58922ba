"""Selection among dummies: weights, and the distribution of the answer."""

import math
from fractions import Fraction

import pytest

from dpselect.errors import NothingFoundWarning
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.selection import (
    SelectWithDummies,
)
from dpselect.selection.dummies import dummy_weight, weight
from tests.selection.algorithms_cases import assert_law, levels
from tests.selection.selection_laws import (
    dummies_law,
)

BASE = pure_dp(epsilon=0.5)
MASSES = [0.2, 0.3, 0.4, 0.1]


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("sharpness", "weights"), [(math.inf, (1, 1, 0, 0)), (2.0, (1, 1, math.exp(-0.5), math.exp(-1)))]
)
def test_law_of_dummies(sharpness, weights):
    law = dummies_law(MASSES, weights, 6, 5.0)
    select = SelectWithDummies(threshold=0.75, runs=6, gamma=0.25, base=BASE, sharpness=sharpness)
    candidate = levels(MASSES)
    assert_law(
        lambda source: select.draw(candidate, random=source),
        {value: p for value, p in zip([0, 1, 2, 3, None], law, strict=True) if p > 0.0},
    )


def test_weights_are_integers_that_fall_below_the_threshold():
    one = 1 << 53
    assert dummy_weight(0.25) == 5 * one
    assert dummy_weight(0.2) >= Fraction(6) * one - one // 10**15  # 0.2 is a little above a fifth
    assert dummy_weight(0.2) == math.ceil((1 + 1 / Fraction(0.2)) * one)
    assert [weight(score, 0.5, math.inf) for score in (0.5, 2.0, math.inf, 0.49, -math.inf)] == [one, one, one, 0, 0]
    assert weight(0.25, 0.5, 4.0) == int(math.exp(-1) * one)
    assert weight(math.nan, 0.5, 4.0) == weight(math.nan, 0.5, math.inf) == 0


def test_the_number_of_runs_is_fixed_and_none_is_the_dummy():
    ran = []

    def failing(random):
        ran.append(1)
        raise ValueError

    select = SelectWithDummies(threshold=0.5, runs=7, gamma=0.2, base=BASE)
    with pytest.warns(NothingFoundWarning):
        assert select(failing).value is None
    assert len(ran) == 7
    assert select.guarantee.epsilon(delta=0) <= 1.0
    many = SelectWithDummies(threshold=0.5, runs=1000, gamma=0.2, base=BASE)
    assert many(lambda random: (0.5, "found"), random=keyed_source(1)).value == "found"
