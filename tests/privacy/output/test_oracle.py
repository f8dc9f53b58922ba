"""The delta that two distributions need at prices by output, against its definition over all sets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.oracle import output_delta, satisfies
from tests.privacy.output.guarantee_cases import (
    laws,
    mechanisms,
    randomized_response,
)

ROUNDING = 1e-13  # a handful of operations on masses of at most 1, in double precision


def test_fact_1_the_oracle_on_randomized_response():
    upper, lower = randomized_response(0.7, 0.03)
    assert sum(upper) == pytest.approx(1, abs=ROUNDING)
    assert sum(lower) == pytest.approx(1, abs=ROUNDING)
    assert output_delta(upper, lower, cells="aaaa", epsilons={"a": 0.7}) == pytest.approx(0.03, abs=ROUNDING)


@given(mechanisms())
def test_the_oracle_is_the_definition_over_all_sets(mechanism):
    """Definition 2, by enumerating all 16 sets of outputs."""
    upper, lower, cells, epsilons, _ = mechanism
    worst = 0.0
    for chosen in range(16):
        inside = [y for y in range(4) if chosen >> y & 1]
        worst = max(worst, sum(upper[y] - math.exp(epsilons[cells[y]]) * lower[y] for y in inside))
    assert output_delta(upper, lower, cells=cells, epsilons=epsilons) == pytest.approx(worst, abs=ROUNDING)


def test_satisfies_refuses_a_guarantee_that_is_a_hair_too_small():
    upper, lower = randomized_response(0.7, 0.03)
    for epsilon, delta, holds in ((0.7, 0.03, True), (0.693, 0.03, False), (0.7, 0.0297, False)):
        guarantee = OutputGuarantee(cell=lambda y: 0, epsilons={0: epsilon}, delta=delta)
        assert satisfies(guarantee, laws(upper, lower)) is holds
