"""How many blocks a verification needs, by our bounds and by the constants of the paper."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace

import pytest

from dpselect.adaptive import (
    plan_verification,
)
from dpselect.adaptive.generalisation import verification_blocks
from dpselect.adaptive.runs import runs_guarantee
from dpselect.errors import ArgumentError
from dpselect.privacy import compose, pure_dp


@pytest.mark.cases(1)
@pytest.mark.parametrize(("rank", "margin", "refusals", "queries", "known"), [
    (0.2, 0.1, 1, 100, 12_343), (0.2, 0.1, 10, 100, 55_200), (0.2, 0.1, 10, 10_000, 72_100),
    (0.2, 0.1, 40, 10_000, 140_000), (0.2, 0.15, 10, 10_000, 25_100), (0.1, 0.05, 10, 10_000, 158_600),
])  # fmt: skip
def test_verification_blocks(rank: float, margin: float, refusals: int, queries: int, known: int) -> None:
    plan = plan_verification(queries=queries, refusals=refusals, failure_probability=0.05, rank=rank, margin=margin)
    assert math.isclose(plan.blocks, known, rel_tol=5e-3)
    assert plan.certified
    assert plan.at(2 * plan.blocks).certified
    assert not replace(plan, blocks=int(0.97 * plan.blocks)).certified
    assert not replace(plan, epsilon_queries=plan.epsilon_queries * 1.2).certified
    assert not replace(plan, refusals=refusals + max(1, refusals // 5)).certified
    with pytest.raises(ArgumentError, match="blocks"):
        plan.at(plan.blocks - 1)


@pytest.mark.full
def test_a_verification_needs_half_of_the_blocks():
    plan = plan_verification(queries=1000, refusals=10, failure_probability=0.05)
    assert plan.blocks < 50_000  # 94,863 with runs taken for randomised responses
    assert plan.certified
    assert all(plan.at(math.ceil(plan.blocks * growth)).certified for growth in (1.0, 1.001, 1.01))
    assert not dataclasses.replace(plan, epsilon_queries=1.02 * plan.epsilon_queries).certified
    together = runs_guarantee(plan.epsilon_threshold, plan.epsilon_queries, 10)
    assert together.epsilon(1e-6) < 0.5 * compose(*[pure_dp(epsilon=plan.epsilon)] * 10).epsilon(1e-6) * 1.3
    assert together.epsilon(0.0) == pytest.approx(10 * plan.epsilon)


BETA = 0.05


@pytest.mark.parametrize(("rank", "margin", "refusals", "queries", "first", "second"), [
    (0.2, 0.1, 1, 100, 3.29e5, 7.27e5), (0.2, 0.1, 10, 100, 3.29e5, 2.85e6), (0.2, 0.1, 10, 10_000, 4.74e5, 3.94e6),
    (0.2, 0.1, 100, 10_000, 4.74e5, 1.42e7), (0.2, 0.15, 10, 10_000, 2.14e5, 1.75e6),
    (0.1, 0.05, 10, 10_000, 9.49e5, 8.12e6),
])  # fmt: skip
def test_verification_with_the_constants_of_the_paper(
    rank: float, margin: float, refusals: int, queries: int, first: float, second: float
) -> None:
    found = verification_blocks(rank=rank, margin=margin, queries=queries, refusals=refusals, failure_probability=BETA)
    assert math.isclose(found[0], first, rel_tol=4e-3)
    assert math.isclose(found[1], second, rel_tol=4e-3)
