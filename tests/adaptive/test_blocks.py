"""Required blocks: the table of the paper against ours, certificates, planners."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom

from dpselect.adaptive import (
    break_even,
    certifies,
    plan_blocks,
    plan_verification,
    required_samples,
    splitting_blocks,
    trade_off_bound,
    transfer_bound,
)
from dpselect.adaptive.blocks import normal_loss
from dpselect.adaptive.means import plan_means
from dpselect.adaptive.multiplicative_weights import plan_multiplicative_weights
from dpselect.adaptive.planner import plan_analysis, plan_concentrated
from dpselect.adaptive.runs import response_trade_off
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.adaptive.spread import hoeffding_subsample
from dpselect.adaptive.transfer import (
    certifies_interval,
    gaussian_mu_of_range,
    largest_mu,
    largest_rho,
    range_of_gaussian_mu,
)
from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.privacy import approximate_dp, compose, gaussian, pure_dp, zcdp
from tests.adaptive.adaptive_laws import data_sets, search_law

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


@pytest.mark.cases(5)
@pytest.mark.parametrize("sharing", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("deviation", [0.7, 1.5])
def test_the_noise_of_a_search_costs_what_is_claimed_on_every_data_set(sharing: float, deviation: float) -> None:
    """Both accounts of a search against its exact law, over all data of 5 blocks on 8 points: the probability of a
    share of c or less, and the expected shortfall below c. The worst data come within a factor 30 of both."""
    size, blocks, steps, c = 8, 5, 3, 0.25
    noise = SearchNoise.of_deviation(steps, deviation, sharing=sharing)
    x = (0.5 - c) * blocks / deviation
    noises = steps * (2 if sharing else 1)
    union, shortfall = noises * float(ndtr(-x)), noises * deviation / blocks * float(normal_loss(x))
    worst_probability = worst_shortfall = 0.0
    for values in data_sets(size, blocks):
        data, points = np.array(values)[:, None], np.arange(size)[None, :]
        shares = np.minimum((data <= points).mean(0), (data >= points).mean(0))
        law = search_law(values, size, noise.fresh, noise.shared)
        worst_probability = max(worst_probability, float(law[shares <= c].sum()))
        worst_shortfall = max(worst_shortfall, float(law @ np.maximum(c - shares, 0.0)))
    assert union / 30 < worst_probability <= union
    assert shortfall / 30 < worst_shortfall <= shortfall


def test_the_normal_loss_is_the_integral() -> None:
    for x in (0.0, 0.5, 2.0, 6.0, 11.0):
        exact = float(quad(lambda z, x=x: (z - x) * math.exp(-z * z / 2), x, x + 12, epsabs=0)[0])
        assert math.isclose(float(normal_loss(x)), exact / math.sqrt(2 * math.pi), rel_tol=1e-8)


def test_splitting() -> None:
    assert [splitting_blocks(10**i, 0.05) for i in range(6)] == [13, 27, 43, 57, 73, 89]


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


def test_transfer_bound_inverts_the_conditions() -> None:
    at = {"sample_rank": 0.375, "rank": 0.25, "accuracy_failure": 0.0005}
    mu = largest_mu(**at, failure_probability=0.05)
    rho = largest_rho(**at, failure_probability=0.05)
    for guarantee in (
        gaussian(noise_multiplier=1 / mu * (1 + 1e-4), adjacency="replace_one"),
        zcdp(rho=rho * (1 - 1e-4), adjacency="replace_one"),
    ):
        assert certifies(guarantee, **at, failure_probability=0.05)
        assert math.isclose(transfer_bound(guarantee, **at), 0.05, rel_tol=3e-3)
    pure = pure_dp(epsilon=0.3, adjacency="replace_one")
    closed = 0.375 * 0.0005 / (0.375 - math.exp(0.3) * 0.25)
    assert math.isclose(transfer_bound(pure, **at), closed, rel_tol=1e-3)
    approximate = approximate_dp(epsilon=0.3, delta=1e-4, adjacency="replace_one")
    assert math.isclose(
        transfer_bound(approximate, **at), (1e-4 + 0.375 * 0.0005) / (0.375 - math.exp(0.3) * 0.25), rel_tol=1e-3
    )
    assert transfer_bound(pure_dp(epsilon=1.0, adjacency="replace_one"), **at) == 1.0
    with pytest.raises(ArgumentError, match="replace_one"):
        transfer_bound(pure_dp(epsilon=0.1), **at)


def test_any_profile_transfers() -> None:
    """A composition that has a profile only: the bound is between that of its Gaussian limit and that of its rho."""
    together = compose(*[bounded_range(epsilon=0.02, adjacency="replace_one")] * 100)
    at = {"sample_rank": 0.37, "rank": 0.25, "accuracy_failure": 0.0005}
    found = transfer_bound(together, **at)
    assert found <= transfer_bound(zcdp(rho=100 * 0.02**2 / 8, adjacency="replace_one"), **at) * (1 + 1e-6)
    assert found >= transfer_bound(gaussian(noise_multiplier=10.0, adjacency="replace_one"), **at)


def test_the_trade_off_bound_covers_the_exact_laws() -> None:
    for q in (0.0, 1e-9, 0.01, 0.3, 0.9, 1.0):
        exact = float(response_trade_off(0.7, 1, np.array([q]))[0])
        assert exact * (1 - 1e-8) - 1e-200 <= trade_off_bound(pure_dp(epsilon=0.7), q) <= exact * (1 + 1e-8) + 1e-8
    many = compose(*[pure_dp(epsilon=0.2)] * 8)
    for q in (0.01, 0.2, 0.6):
        exact = float(response_trade_off(0.2, 8, np.array([q]))[0])
        assert exact * (1 - 1e-8) <= trade_off_bound(many, q) <= exact + 0.01


def test_the_interval_version_agrees_with_the_median() -> None:
    guarantee = gaussian(noise_multiplier=1 / 0.14, adjacency="replace_one")
    symmetric = certifies_interval(
        guarantee, sample=(0.3675, 0.6325), population=(0.25, 0.75), failure_probability=0.05, accuracy_failure=0.0005
    )
    assert symmetric
    assert certifies(guarantee, sample_rank=0.3675, rank=0.25, failure_probability=0.05, accuracy_failure=0.0005)
    wide = gaussian(noise_multiplier=1 / 0.16, adjacency="replace_one")
    assert not certifies_interval(
        wide, sample=(0.3675, 0.6325), population=(0.25, 0.75), failure_probability=0.05, accuracy_failure=0.0005
    )
    # the 90 % quantile, with a narrow upper side
    assert certifies_interval(
        guarantee, sample=(0.88, 0.92), population=(0.6, 0.97), failure_probability=0.05, accuracy_failure=0.0005
    )
    with pytest.raises(ArgumentError, match="ranks"):
        certifies_interval(guarantee, sample=(0.2, 0.6), population=(0.25, 0.75), failure_probability=0.05)


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0])
def test_a_bounded_range_lies_within_its_gaussian(epsilon: float) -> None:
    """The profile of the range is below that of the Gaussian everywhere, and touches it."""
    mu = gaussian_mu_of_range(epsilon)
    assert math.isclose(range_of_gaussian_mu(mu), epsilon, rel_tol=1e-6)
    epsilons = np.linspace(0, epsilon, 200)
    normal = gaussian(noise_multiplier=1 / mu).delta(epsilons)
    ours = bounded_range(epsilon=epsilon).delta(epsilons)
    assert np.all(ours <= normal * (1 + 1e-9))
    assert normal[0] <= ours[0] * (1 + 1e-6)
    smaller = gaussian(noise_multiplier=1 / (mu * 0.999)).delta(epsilons)
    assert np.any(ours > smaller)


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
def test_planner_for_a_data_set() -> None:
    """A million rows, 100 questions, 1,001 points. Splitting: 232 rows a block; the paper 3 rows, 1.15 deviations."""
    found = plan_analysis(rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001)
    by_name = {one.name: one for one in found.options}
    assert by_name["splitting"].subsample_size == 232
    assert math.isclose(by_name["splitting"].deviations or 0, 0.114, rel_tol=5e-3)
    assert by_name["paper"].subsample_size == 3
    assert found.best is not None
    assert found.best.name == "binary_search"
    assert found.best.subsample_size == 228  # 127 with independent noise
    only = plan_analysis(rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001, validity_only=True)
    assert only.best is not None
    assert only.best.name == "splitting"
    many = plan_analysis(rows=1_000_000, queries=1000, failure_probability=0.05, grid_size=1001, validity_only=True)
    assert many.best is not None
    assert many.best.name == "binary_search"
    assert {one.name: one.subsample_size for one in many.options}["paper"] == 0
    assert plan_analysis(rows=100, queries=100, failure_probability=0.05, grid_size=1001).best is None


@pytest.mark.full
def test_it_chooses_for_means_of_bounded_functions() -> None:
    """Gaussian answers where they are better, new rows for few questions when no row needs privacy; and says why."""
    common = {"failure_probability": 0.05, "grid_size": 1001, "statistic": "bounded_mean"}
    found = plan_analysis(rows=330_000, queries=1000, **common)
    assert found.best is not None
    assert found.best.name == "gaussian_means"
    assert "gaussian_means has the smallest certified error" in found.reason
    assert found.break_even == 105
    concentrated = next(one for one in found.options if one.name == "concentrated")
    again = plan_blocks(queries=1000, grid_size=1001, failure_probability=0.05, rank=concentrated.rank)
    assert again.blocks * concentrated.subsample_size <= 330_000
    assert concentrated.error is not None
    assert concentrated.error >= math.sqrt(-math.log(concentrated.rank) / (2 * concentrated.subsample_size)) * 0.999
    few = plan_analysis(rows=20_000, queries=10, validity_only=True, **common)
    assert few.best is not None
    assert few.best.name == "splitting"
    none = plan_analysis(rows=50, queries=100, **common)
    assert none.best is None
    assert "no way" in none.reason
    with pytest.raises(ArgumentError, match="statistic"):
        plan_analysis(rows=50, queries=1, failure_probability=0.05, grid_size=2, statistic="median")


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


@pytest.mark.cases(1)
@pytest.mark.parametrize(("queries", "known"), [(10, 8.9e4), (100, 3.3e5), (1000, 1.17e6), (10000, 4.05e6)])
def test_concentrated_estimators(queries: int, known: float) -> None:
    """Means of functions into [-1, 1] to 0.1 on 201 points, Hoeffding at 0.95 of that; known to two or three digits."""
    common = {"queries": queries, "grid_size": 201, "failure_probability": 0.05}

    def rows(rank: float) -> int:
        return hoeffding_subsample(rank=rank, error=0.095)

    independent = plan_concentrated(**common, subsample_for=rows, refined=False)
    assert math.isclose(independent.rows, known, rel_tol=0.01)
    ours = plan_concentrated(**common, subsample_for=rows)
    assert ours.rows < 0.7 * known
    assert ours.plan.certified
    assert ours.plan.rank < 1e-4


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
def test_multiplicative_weights_grow_with_the_logarithm_of_the_questions() -> None:
    plans = [
        plan_multiplicative_weights(queries=k, universe=11, grid_size=11, failure_probability=0.05)
        for k in (100, 10_000, 1_000_000)
    ]
    assert all(plan.certified for plan in plans)
    assert plans[2].blocks - plans[1].blocks < 1.01 * (plans[1].blocks - plans[0].blocks)
    assert not replace(plans[0], epsilon=plans[0].epsilon * 1.1).certified
    with pytest.raises(ArgumentError, match="universe"):
        plan_multiplicative_weights(queries=10, universe=10**7, grid_size=11, failure_probability=0.05)


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
