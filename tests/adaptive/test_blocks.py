"""Required blocks: the table of the paper against ours, certificates, planners."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dpselect.adaptive import plan_blocks, plan_verification
from dpselect.adaptive.blocks import break_even, required_samples
from dpselect.adaptive.transfer import (
    largest_mu,
    largest_rho,
)
from dpselect.errors import ArgumentError

TABLE = [
    # grid, queries, paper, exponential, search with independent noise, splitting
    (21, 10, 70_293, 2_152, 1_516, 270),
    (21, 100, 220_514, 8_215, 5_373, 4_300),
    (21, 1000, 838_934, 30_375, 18_630, 57_000),
    (21, 10000, 3_100_749, 109_841, 63_646, 730_000),
    (1001, 10, 100_354, 2_916, 2_225, 270),
    (1001, 100, 295_666, 10_601, 7_827, 4_300),
    (1001, 1000, 1_076_585, 37_858, 27_002, 57_000),
    (1001, 10000, 3_852_267, 133_354, 91_922, 730_000),
    (2**64, 10, 391_707, 9_834, 6_145, 270),
    (2**64, 100, 1_024_047, 32_422, 21_265, 4_300),
    (2**64, 1000, 3_379_930, 106_717, 72_556, 57_000),
    (2**64, 10000, 11_136_083, 350_713, 245_015, 730_000),
]


@pytest.mark.cases(4)
@pytest.mark.parametrize(("size", "queries", "paper", "exponential", "search", "split"), TABLE)
def test_required_blocks(size: int, queries: int, paper: int, exponential: int, search: int, split: int) -> None:
    """Within 0.5 % of an independent optimisation; with shared noise and shortfalls at most 0.64 of it for a
    search, with shortfalls at most 0.91 for the exponential mechanism."""
    public = {"queries": queries, "grid_size": size, "failure_probability": 0.05}
    assert required_samples(**public, accounting="paper") == paper
    by_exponential = plan_blocks(**public, mechanism="exponential", refined=False)
    assert math.isclose(by_exponential.blocks, exponential, rel_tol=5e-3)
    assert plan_blocks(**public, mechanism="exponential").blocks <= 0.91 * exponential
    independent = plan_blocks(**public, mechanism="binary_search", refined=False)
    assert math.isclose(independent.blocks, search, rel_tol=5e-3)
    shared = plan_blocks(**public)
    assert shared.mechanism == "binary_search"
    assert shared.blocks <= 0.64 * search
    by_splitting = plan_blocks(**public, mechanism="splitting")
    assert by_splitting.blocks == split
    for plan in (by_exponential, independent, shared, by_splitting, plan_blocks(**public, accounting="paper")):
        assert plan.certified
        assert plan.at(3 * plan.blocks).certified


def test_the_noise_that_is_drawn_is_the_noise_of_the_table() -> None:
    found = [required_samples(queries=k, failure_probability=0.05, grid_size=1001) for k in (10, 100, 1000, 10000)]
    assert all(ours <= 1.001 * known for ours, known in zip(found, (1210, 4383, 15441, 53391), strict=True))
    assert required_samples(queries=10, subsample_size=7, failure_probability=0.05, grid_size=1001) == 7 * found[0]


def test_worked_configurations() -> None:
    """k = 100 on 1,001 points: c = 0.36746, deviation 215.448 certify 7,827 blocks but not 7,826."""
    plan = plan_blocks(queries=100, grid_size=1001, failure_probability=0.05, mechanism="binary_search", refined=False)
    assert plan.blocks == 7827
    assert plan.noise is not None
    assert math.isclose(plan.noise.deviation, 215.448, rel_tol=2e-3)
    assert math.isclose(plan.sample_rank, 0.36746, rel_tol=2e-3)
    assert math.isclose(largest_mu(sample_rank=0.36746, rank=0.25, failure_probability=0.05,
                                   accuracy_failure=0.000737), 0.146778, rel_tol=1e-4)  # fmt: skip
    rho = largest_rho(sample_rank=0.36784, rank=0.25, failure_probability=0.05, accuracy_failure=0.000993)
    assert math.isclose(rho, 0.00801190, rel_tol=1e-4)
    assert plan.mu < largest_mu(
        sample_rank=plan.sample_rank, rank=0.25, failure_probability=0.05, accuracy_failure=plan.accuracy_failure
    )


def test_a_certificate_is_refused_when_anything_in_it_is_too_small() -> None:
    for mechanism in ("binary_search", "exponential"):
        plan = plan_blocks(queries=50, grid_size=500, failure_probability=0.05, mechanism=mechanism)
        assert plan.certified
        assert not replace(plan, blocks=int(plan.blocks * 0.95)).certified
        assert not replace(plan, queries=60).certified
        assert not replace(plan, failure_probability=0.04).certified
        assert not replace(plan, rank=0.27).certified
        assert not replace(plan, grid_size=1000).certified
        with pytest.raises(ArgumentError, match="blocks"):
            plan.at(plan.blocks - 1)
    split = plan_blocks(queries=50, grid_size=500, failure_probability=0.05, mechanism="splitting")
    assert not replace(split, blocks=split.blocks - 1).certified
    paper = plan_blocks(queries=50, grid_size=500, failure_probability=0.05, accounting="paper")
    assert not replace(paper, epsilon=paper.epsilon / 2).certified


@pytest.mark.full
@pytest.mark.parametrize(("size", "paper", "exponential", "search"), [
    pytest.param(21, 160_000, 312, 148, marks=pytest.mark.slow), (1001, 230_000, 474, 277),
    pytest.param(2**64, 1_330_000, 2_790, 1_450, marks=pytest.mark.slow),
])  # fmt: skip
def test_break_even_against_splitting(size: int, paper: int, exponential: int, search: int) -> None:
    """Splitting grows by whole blocks, so the crossing is known to one or 2 %."""
    common = {"grid_size": size, "failure_probability": 0.05}
    assert math.isclose(break_even(**common, mechanism="paper"), paper, rel_tol=0.02)
    assert math.isclose(break_even(**common, mechanism="exponential", refined=False), exponential, rel_tol=0.02)
    independent = break_even(**common, mechanism="binary_search", refined=False)
    assert math.isclose(independent, search, rel_tol=0.02)
    assert break_even(**common) < 0.6 * independent


@pytest.mark.cases(2)
@pytest.mark.parametrize(("low", "high"), [(0.6, 0.95), (0.01, 0.5), (0.25, 0.751)])
def test_quantiles_other_than_the_median(low: float, high: float) -> None:
    public = {"queries": 20, "grid_size": 101, "failure_probability": 0.05}
    plan = plan_blocks(**public, rank=low, upper_rank=high)
    assert plan.certified
    assert plan.interval == (low, high)
    assert plan.sample_rank > low
    assert 2 * float(plan.quantile) - plan.sample_rank < high
    assert not replace(plan, blocks=int(0.95 * plan.blocks)).certified
    assert not replace(plan, quantile=plan.quantile + Fraction(1, 8)).certified
    assert not replace(plan, upper_rank=high - 0.05).certified
    assert plan.at(3 * plan.blocks).certified
    if high == 0.751:
        assert math.isclose(plan.blocks, plan_blocks(**public).blocks, rel_tol=0.01)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="accounting"):
        required_samples(queries=1, failure_probability=0.05, grid_size=10, accounting="best")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mechanism"):
        plan_blocks(queries=1, failure_probability=0.05, grid_size=10, mechanism="median")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="grid_size"):
        plan_blocks(queries=1, failure_probability=0.05, grid_size=1)
    with pytest.raises(ArgumentError, match="margin"):
        plan_verification(queries=1, refusals=1, failure_probability=0.05, rank=0.2, margin=0.2)
    with pytest.raises(ArgumentError, match="rank"):
        plan_blocks(queries=1, failure_probability=0.05, grid_size=10, rank=0.3, accounting="paper")


def test_splitting_is_not_compared_with_itself():
    with pytest.raises(ArgumentError, match="mechanism must be one of 'best'"):
        break_even(grid_size=100, failure_probability=0.05, mechanism="splitting")
