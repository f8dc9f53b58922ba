"""Means of bounded functions: plans, failure probabilities, answers, and one row that never decides."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dpselect.adaptive.means import AdaptiveMeans, plan_means
from dpselect.errors import ArgumentError, BudgetError
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_sessions import Recorder, normal_rows


@pytest.mark.parametrize(("queries", "rows"), [(10, 28_000), (100, 96_000), (1000, 330_000), (10000, 1_100_000)])
def test_bounded_means(queries: int, rows: int) -> None:
    """Gaussian answers to 0.1 on [-1, 1] take about these rows with a union bound on the noise, and fewer with its
    expected shortfall: far fewer than the median of concentrated blocks."""
    plan = plan_means(queries=queries, rows=rows, failure_probability=0.05)
    assert 0.04 < plan.error < 0.046
    assert plan.certified
    assert not replace(plan, error=plan.error * 0.99).certified
    assert not replace(plan, deviation=plan.deviation * 0.99).certified
    assert not replace(plan, deviation=plan.deviation * 1.01).certified
    with pytest.raises(ArgumentError, match="rows"):
        plan_means(queries=queries, rows=50, failure_probability=0.05)


@pytest.mark.theorem(
    "docs/theory/generalisation.md, Theorem 4", exact=True, loose="one question asked again: the worst event adapts"
)
@pytest.mark.parametrize(("queries", "rows"), [(1, 400), (20, 4000)])
def test_the_failure_of_bounded_means(queries: int, rows: int) -> None:
    """The mean of fair coins, asked again and again: its exact law is a binomial one with normal noise."""
    plan = plan_means(queries=queries, rows=rows, failure_probability=0.05)
    heads = np.arange(rows + 1)
    within = ndtr((0.5 + plan.error - heads / rows) / plan.deviation) - ndtr(
        (0.5 - plan.error - heads / rows) / plan.deviation
    )
    failed = float(np.sum(binom.pmf(heads, rows, 0.5) * (1.0 - within**queries)))
    assert 0.0 < failed <= 0.05


@pytest.mark.full
def test_means() -> None:
    spender = Recorder()
    means = AdaptiveMeans(
        normal_rows(200_000), queries=3, failure_probability=0.05, spender=spender, random=keyed_source(1)
    )
    assert abs(means.mean(np.sin, lower=-1, upper=1).value - math.sin(0.3) * math.exp(-0.5)) < 2 * means.plan.error
    assert means.mean(lambda rows: 1 / 0, lower=2, upper=4).value < 2 + 2 * means.plan.error
    assert means.mean(lambda rows: np.full(len(rows), np.nan), lower=2, upper=4).value < 2 + 2 * means.plan.error
    with pytest.raises(BudgetError):
        means.mean(np.sin, lower=-1, upper=1)
    assert len(spender.reserved) == len(spender.settled) == 3
    assert math.isclose(means.guarantee.gaussian_mu or 0, means.plan.answer_mu)


@pytest.mark.full
@pytest.mark.parametrize("fails", ["raises", "drops"])
def test_one_row_never_decides_over_the_others(fails: str) -> None:
    """A function of all rows that fails because of one of them: that row counts as the lower bound, no other does."""
    rows = np.ones(20_000)
    rows[7] = -1.0

    def fragile(values: np.ndarray) -> np.ndarray:
        if fails == "drops":
            return values[values > 0]
        if np.any(values < 0):
            raise ValueError
        return values

    means = AdaptiveMeans(rows, queries=1, failure_probability=0.05, random=keyed_source(1))
    assert means.mean(fragile, lower=0, upper=1).value > 0.9
