"""Exact laws of the private medians and of the choice, against enumeration of all small data sets, and exact audits."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

import dpselect.ordered.order_statistics.intervals as intervals
from dpselect.adaptive import integer_grid, plan_blocks
from dpselect.adaptive.choosing import choice_epsilon, choice_error, choice_guarantee, summed_ranks
from dpselect.adaptive.grids import float_grid
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.ordered.domains import Domain
from dpselect.privacy import gaussian
from dpselect.randomness import RandomSource, keyed_source
from dpselect.testing.exact import hockey_stick
from tests.adaptive.adaptive_laws import data_sets, exponential_law, neighbours, search_law
from tests.audits.score_laws import exponential_law as law_of_scores

BITS = 30


class Scripted(RandomSource):
    """A uniform real that the test sets, a third of the last of its `BITS` bits above it, since a bound may be a binary
    fraction and is never decided then. An integer below a bound is zero, and the bound is kept."""

    def __init__(self) -> None:
        super().__init__(bytes(32))
        self.point, self.bound = 0, 0
        self.fresh = True

    def bits(self, count: int) -> int:
        third = (1 << count) // 3
        if not self.fresh:
            return third
        self.fresh = False
        rest = count - BITS
        return self.point << rest | (1 << rest) // 3

    def below(self, bound: int) -> int:
        self.bound = bound
        return 0


def pieces_of(values: Any, grid: Domain, epsilon: float) -> list[tuple[int, int, float]]:
    """(first code, codes, probability) of what `ExponentialMedian` draws from, by its answers to all uniform reals."""
    source = Scripted()

    def at(point: int) -> tuple[int, int]:
        source.point, source.fresh = point, True
        value = ExponentialMedian(epsilon=epsilon)(values, grid, random=source).value
        return int(grid.encode(np.array([value]))[0]), source.bound

    found, start = [], 0
    while start < 1 << BITS:
        piece, low, high = at(start), start, 1 << BITS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle) == piece else (low, middle)
        found.append((*piece, (high - start) / (1 << BITS)))
        start = high
    return found


@pytest.mark.full
@pytest.mark.parametrize(("size", "blocks", "epsilon"), [(5, 3, 1.0), (4, 4, 0.7), (11, 1, 2.0)])
def test_the_drawn_law_of_the_exponential_median_on_all_data(size: int, blocks: int, epsilon: float) -> None:
    """Every probability to the 30 bits that are asked, a piece being uniform over its codes."""
    for values in data_sets(size, blocks):
        law = np.zeros(size)
        for first, count, probability in pieces_of(values, integer_grid(0, size - 1), epsilon):
            law[first : first + count] += probability / count
        assert np.abs(law - exponential_law(values, size, epsilon)).max() < 3e-9


def test_pieces_of_equal_badness() -> None:
    """Groups (0-1), 2, 3, (4-6), 7, 8, 9, 10 of the worked example; the gap 4-6 has 0.3499787."""
    found = pieces_of((2, 3, 3, 7, 9), integer_grid(0, 10), 1.0)
    assert [(first, count) for first, count, _ in found] == [
        (0, 2), (2, 1), (3, 1), (4, 3), (7, 1), (8, 1), (9, 1), (10, 1)
    ]  # fmt: skip
    assert math.isclose(found[3][2], 0.3499787, rel_tol=1e-6)


def test_pieces_of_a_huge_grid_are_whole_numbers() -> None:
    """All doubles: nearly 2**64 codes, and not one of them is lost to rounding. The four values themselves are single
    codes, of probability 2**-64, which 30 bits do not find; the gaps between them are all the others."""
    grid = float_grid(-1.7e308, 1.7e308)
    assert grid.size > 0.99 * 2**64
    values = [-3.5, 1e-300, 2.0, 2.0, 7e100]
    found = pieces_of(values, grid, 1e-3)
    edges = [-1, *np.unique(np.asarray(grid.encode(np.array(values)))).tolist(), grid.size]
    assert [(first, count) for first, count, _ in found] == [(a + 1, b - a - 1) for a, b in itertools.pairwise(edges)]


def test_the_exact_sampler_agrees_with_the_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rational arithmetic takes over when double precision is too close to call; here it decides every draw."""
    grid, rng = float_grid(-1e300, 1e300), np.random.default_rng(0)
    data = [rng.standard_cauchy(12) for _ in range(60)]
    fast = [ExponentialMedian(epsilon=0.8)(one, grid, random=keyed_source(i)).value for i, one in enumerate(data)]
    monkeypatch.setattr(intervals, "_choose_fast", lambda *_: None)
    exact = [ExponentialMedian(epsilon=0.8)(one, grid, random=keyed_source(i)).value for i, one in enumerate(data)]
    # the same bits lead to the same piece; within it the next bits may be read elsewhere
    for one, a, b in zip(data, fast, exact, strict=True):
        assert np.count_nonzero(one < a) == np.count_nonzero(one < b)


@dataclass(frozen=True)
class Given(SearchNoise):
    """Noise that the test sets, in halves of a count."""

    values: tuple[int, ...] = ()

    @property
    def scale(self) -> int:
        return 2

    def draw(self, random: RandomSource | None = None) -> NDArray[np.int64]:
        return np.array(self.values, dtype=np.int64)


def plain_search(values: tuple[int, ...], size: int, noise: tuple[float, ...]) -> int:
    low, high = 0, size - 1
    for step in noise:
        if low < high:
            middle = (low + high) // 2
            if sum(value <= middle for value in values) + step >= len(values) / 2:
                high = middle
            else:
                low = middle + 1
    return low


@pytest.mark.full
def test_the_search_follows_its_noise_on_all_data() -> None:
    """With the law of the noise (tested by itself) that is the law of the search: all data, all noise on a lattice of
    half counts, ties included."""
    size, blocks, steps = 6, 3, 3
    lattice = list(itertools.product(range(-4, 5, 2), repeat=steps)) + list(itertools.product((-1, 1, 3), repeat=steps))
    grid = integer_grid(0, size - 1)
    for values in data_sets(size, blocks):
        for noise in lattice:
            given = Given(steps, 0.5, 0.5, noise)
            found = SearchMedian(noise=given)(values, grid, random=keyed_source(1)).value
            assert found == plain_search(values, size, tuple(step / 2 for step in noise))


@pytest.mark.parametrize("sharing", [0.0, None])
def test_the_audit_of_the_search_finds_planted_defects(sharing: float | None) -> None:
    """Noise of half the deviation that is claimed; and only one of three steps charged."""
    size, blocks, epsilons = 5, 3, np.array([0.0, 0.5, 1.0])

    def worst(noise: SearchNoise) -> NDArray[np.float64]:
        laws = {values: search_law(values, size, noise.fresh, noise.shared) for values in data_sets(size, blocks)}
        pairs = [(law, laws[other]) for values, law in laws.items() for other in neighbours(values, size)]
        first, second = (np.array(side)[:, None, :] for side in zip(*pairs, strict=True))
        return np.asarray(hockey_stick(first, second, epsilons).max(axis=0))

    noise = SearchNoise.of_deviation(3, 1.2, sharing=sharing)
    half = replace(noise, fresh=noise.fresh / 2, shared=noise.shared / 2)
    claimed = SearchMedian(noise=noise).guarantee.delta(epsilons)
    assert np.all(worst(noise) <= claimed)
    assert np.any(worst(half) > claimed * 1.05)
    one_step = gaussian(noise_multiplier=noise.deviation).delta(epsilons)
    if not noise.shared:
        assert np.any(worst(noise) > one_step * 1.05)


def test_a_planned_exponential_median_keeps_its_accuracy_on_the_worst_data() -> None:
    """The plan's own numbers, on the two kinds of data that are worst: everything else at the least bad badness."""
    plan = plan_blocks(queries=5, grid_size=40, failure_probability=0.1, mechanism="exponential")
    assert plan.certified
    assert not replace(plan, epsilon=plan.epsilon * 0.97).certified
    assert not replace(plan, epsilon=plan.epsilon * 1.03).certified
    m, c = plan.blocks, plan.sample_rank
    worst = 0.0
    for level in range(m // 2, m + 1):
        for others, good in ((plan.grid_size - 2, [m // 2, m - m // 2]), (plan.grid_size - 1, [m - level])):
            bad = np.array([*good, *[level] * others])
            weights = np.exp(-plan.epsilon / 2 * (bad - bad.min()))
            worst = max(worst, float(weights @ np.maximum(c - 1 + bad / m, 0)) / float(weights.sum()))
    assert 5 * worst <= plan.accuracy_failure * c < 1.2 * 5 * worst


def weak_orders(candidates: int) -> list[tuple[int, ...]]:
    """All ways to rank candidates with ties."""
    return sorted(
        {tuple(sorted(set(way)).index(x) for x in way) for way in itertools.product(range(3), repeat=candidates)}
    )


def test_an_exact_audit_of_the_choice() -> None:
    """Three candidates on two blocks, all rankings and all replaced blocks; half of the sensitivity is not enough."""
    plan = plan_blocks(queries=1, grid_size=2, failure_probability=0.5)
    epsilon, ways = choice_epsilon(plan), weak_orders(3)
    epsilons = np.linspace(0.0, epsilon, 5)
    claimed = choice_guarantee(plan).delta(epsilons)

    def law(pair: tuple[tuple[int, ...], ...], sensitivity: float) -> NDArray[np.float64]:
        return law_of_scores(summed_ranks(np.array(pair, dtype=float).T), epsilon / (2.0 * sensitivity))

    worst = {}
    for sensitivity in (4.0, 2.0):
        pairs = [
            hockey_stick(law((a, b), sensitivity), law((a, c), sensitivity), epsilons)
            for a, b, c in itertools.product(ways, repeat=3)
        ]
        worst[sensitivity] = np.max(pairs, axis=0)
    assert np.all(worst[4.0] <= claimed * (1 + 1e-9) + 1e-15)
    assert np.any(worst[2.0] > claimed * 1.05)


@pytest.mark.theorem(
    "docs/theory/generalisation.md, Theorem 10",
    exact=True,
    loose="all other candidates are counted as if they were just so far behind",
)
def test_the_choice_is_as_good_as_stated_on_all_data() -> None:
    """Three candidates on three blocks: the chance to be further behind than `on_blocks` is within the failure."""
    plan = plan_blocks(queries=1, grid_size=2, failure_probability=0.3)
    plan = replace(plan.at(plan.blocks), blocks=3, epsilon=4.0, noise=None, mechanism="exponential")
    error = choice_error(plan, candidates=3)
    assert 0.0 < error.on_blocks < 1.0
    worst = 0.0
    for data in itertools.combinations_with_replacement(weak_orders(3), 3):
        ranks = summed_ranks(np.array(data, dtype=float).T)
        law = law_of_scores(ranks, 4.0 / (2.0 * 4.0))
        behind = (ranks.max() - ranks) / (4.0 * 3)
        worst = max(worst, float(law[behind > error.on_blocks].sum()))
    assert 0.05 < worst <= 0.3
    more = choice_error(plan, candidates=30)
    assert more.on_blocks > error.on_blocks


def test_the_choice_on_fresh_rows() -> None:
    """The stated error solves c beta - shortfall = h(r beta); more blocks lessen it, and it is never below the one on
    the blocks without their failure."""
    plan = plan_blocks(queries=20, grid_size=1001, failure_probability=0.05)
    errors = [choice_error(plan.at(times * plan.blocks), candidates=5).on_fresh_rows for times in (1, 4, 16)]
    assert errors == sorted(errors, reverse=True)
    assert 0.1 < errors[-1] < errors[0] < 0.5
    rank = (1 - errors[0]) / 2
    limit = float(ndtri(0.5 * 0.05) - ndtri(rank * 0.05))  # without any loss on the blocks
    assert plan.mu < limit
    split = plan_blocks(queries=20, grid_size=1001, failure_probability=0.05, mechanism="splitting")
    assert choice_error(split, candidates=5).on_blocks == 0.0
