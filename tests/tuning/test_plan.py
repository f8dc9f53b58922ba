"""The plan of a search: its slots, and what a resume compares."""

from __future__ import annotations

import math

import pytest

from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed, Geometric, Harmonic
from dpselect.tuning import Execution, LogUniform, SearchStore, Space
from dpselect.tuning.options import SearchRequest
from dpselect.tuning.plan import make_plan
from tests.tuning.tuner_cases import BASE, SPACE

pytestmark = pytest.mark.usefixtures("state")


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Harmonic(limit=6), 6),
        # Geometric: the smallest k with 1 - 0.8**k >= 0.999
        (Geometric(gamma=0.2), math.ceil(math.log(0.001) / math.log(0.8))),
        # Harmonic above 10,000: the smallest k with H_k >= 0.999 H_20000, by mpmath's harmonic numbers
        (Harmonic(limit=20_000), 19_792),
    ],
)
def test_slots_are_a_public_quantile_of_the_law(law, expected):
    request = SearchRequest(space=SPACE, base=BASE, repetitions=law)
    plan = make_plan(request, SearchStore(), Execution(), has_ledger=False)
    assert plan.shape.slots == expected


def test_the_order_of_a_space_is_part_of_what_tune_compares():
    law = LogUniform(0.1, 1.0)

    def fingerprint(space):
        request = SearchRequest(space=Space(space), base=pure_dp(epsilon=1.0), repetitions=Fixed(count=2))
        return make_plan(request, SearchStore(), Execution(), has_ledger=True).fingerprint

    orders = ({"a": law, "b": law}, {"b": law, "a": law}, {"a": law, "b": law})
    first, other, again = map(fingerprint, orders)
    assert first == again
    assert first != other
