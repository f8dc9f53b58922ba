"""Quantiles by slicing: the exact law of the shipped code against its guarantee, planted defects, stated errors."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.ordered import Quantiles, quantiles
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.order_statistics import by_slices as module
from dpselect.ordered.order_statistics.by_slices import Slicing, _geometric_error, plan_slices, slice_codes
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.enumerated_draws import claims, exact_law, worst_excess

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
RATIO = Fraction(9, 10)
UNIT = -math.log(RATIO)
SIZE = 3


def slicing_of(qs, steps):
    """The slices have noise UNIT, the computations `steps` of it, which makes all exponents whole multiples."""
    return Slicing(tuple(map(Fraction, qs)), 1.0, UNIT, steps * UNIT, 1e-6)


CASES = [(("1/4", "3/4"), 2), (("1/4", "1/2"), 8)]


def law_of(rows, slicing, steps, count, monkeypatch, taken=slice_codes):
    """The exact law of the codes given the noisy count."""

    def program(draws):
        def draw(column, *, size, target, rate, random):
            window = column.window(1, column.total)
            places = np.repeat(window.codes, window.counts)
            assert len(places) == column.total
            scores = [
                min(Fraction(int(np.sum(places <= z))) - target, target - int(np.sum(places < z))) for z in range(size)
            ]
            powers = [Fraction(rate) / Fraction(slicing.computation_epsilon) * steps * score for score in scores]
            assert all(power.denominator == 1 for power in powers)
            weights = [(1 / RATIO) ** int(power) for power in powers]
            return draws.pick([(z, w / sum(weights)) for z, w in enumerate(weights)])

        monkeypatch.setattr(module, "draw_code", draw)
        monkeypatch.setattr(module, "noisy_count", lambda total, epsilon, random: count)
        column = SortedColumn(np.array(rows, dtype=np.int64), WholeNumbers(0, SIZE - 1))
        # what is drawn before sorting says more than what is released
        return tuple(taken(column, slicing, size=SIZE, random=None, draws=draws)[0])

    law, lost, _ = exact_law(program, RATIO, geometric_cap=len(rows) + 1)
    assert lost == 0
    assert sum(law.values()) == 1
    return law


def neighbours(rows, adjacency):
    if adjacency is ADD:
        return {tuple(sorted((*rows, x))) for x in range(SIZE)}
    return {tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows)) for x in range(SIZE)} - {rows}


def worst(slicing, steps, adjacency, monkeypatch, most, taken=slice_codes, guarantee=None):
    """The most by which a divergence exceeds the claim for the slices alone, over counts, data sets and neighbours."""
    # the count is composed with the slices; given it, they must keep their own promise
    alone = guarantee or replace(slicing, count_epsilon=1e-9).guarantee(adjacency)
    claimed, found = claims(alone), -math.inf
    for count in (1, 3):
        laws = {
            rows: law_of(rows, slicing, steps, count, monkeypatch, taken)
            for n in range(most + 1)
            for rows in itertools.combinations_with_replacement(range(SIZE), n)
        }
        for rows, law in laws.items():
            for other in neighbours(rows, adjacency) & set(laws):
                found = max(found, worst_excess(((law, 0), (laws[other], 0)), claimed))
    return found


@pytest.mark.full
@pytest.mark.parametrize(("qs", "steps"), CASES)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_exact_laws_are_within_the_guarantee(qs, steps, adjacency, monkeypatch):
    slicing = slicing_of(qs, steps)
    # the claim has a count of epsilon 1e-9 too much, which is below this
    assert worst(slicing, steps, adjacency, monkeypatch, 3 if steps == 2 else 2) <= 1e-8


@pytest.mark.full
def test_a_rate_that_is_too_large_is_caught(monkeypatch):
    slicing = slicing_of(("1/4", "3/4"), 2)
    greedy = slicing_of(("1/4", "3/4"), 12)
    claimed = replace(slicing, count_epsilon=1e-9).guarantee(ADD)
    assert worst(greedy, 12, ADD, monkeypatch, 2, guarantee=claimed) > 0.01


@pytest.mark.full
def test_slices_that_are_not_disjoint_are_caught(monkeypatch):
    """Every computation on all rows that are left, not on its slice: each row pays in all of them."""
    steps = 8
    qs = tuple(Fraction(k, 12) for k in (1, 3, 5, 11))
    slicing = slicing_of(qs, steps)

    def overlapping(column, slicing, *, size, random, draws):
        return [
            module.draw_code(column, size=size, target=Fraction(column.total, 2), rate=slicing.rates[0], random=random)
            for _ in range(4)
        ], 0

    claimed = claims(replace(slicing, count_epsilon=1e-9).guarantee(ADD))
    laws = [law_of(rows, slicing, steps, 1, monkeypatch, overlapping) for rows in ((0, 0), (0, 0, 0))]
    assert worst_excess(((laws[0], 0), (laws[1], 0)), claimed) > 1e-4


def test_every_slice_but_the_last_has_secret_rows_more():
    class Fixed:
        def __init__(self):
            self.asked = []

        def geometric(self, epsilon):
            self.asked.append(epsilon)
            return 7

    slicing = Slicing((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), 50.0, math.log(2.0), 20.0, 1e-6)
    draws, column = Fixed(), SortedColumn(np.arange(80), WholeNumbers(0, 79))
    codes, count = slice_codes(column, slicing, size=80, random=keyed_source(1), draws=draws)
    assert count == 80
    assert draws.asked == [math.log(2.0)] * 2
    # slices end at 29 + 7 and 36 + 19 + 7 rows; quantiles are at 2/3, 1/2 and 1/3 of them
    for code, rank in zip(codes, (24, 49, 68), strict=True):
        assert abs(code - rank) <= 2


def test_planned_sizes_lose_the_mean_of_the_noise():
    slicing = Slicing((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), 1.0, math.log(2.0), 0.5, 1e-6)
    assert slicing.edges == [0, Fraction(3, 8), Fraction(5, 8), 1]
    assert slicing.shares == [Fraction(2, 3), Fraction(1, 2), Fraction(1, 3)]
    assert slicing.sizes(80) == [29, 19]  # 30 and 50, less 1 and 2
    assert slicing.sizes(0) == [0, 0]
    assert slicing.sizes(-3) == [0, 0]


@pytest.mark.full
def test_the_plan_spends_its_epsilon_and_no_more():
    qs = [k / 9 for k in range(1, 9)]
    for adjacency in (ADD, REPLACE):
        price = Quantiles(epsilon=1.0, qs=qs, method="slice", delta=1e-6, adjacency=adjacency).guarantee.epsilon(1e-6)
        assert 0.9 < price <= 1.0
    many = Quantiles(epsilon=1.0, qs=[k / 13 for k in range(1, 13)], method="slice", delta=1e-6)
    few = Quantiles(epsilon=1.0, qs=qs, method="slice", delta=1e-6)
    assert many.slicing.computation_epsilon > 0.8 * few.slicing.computation_epsilon
    with pytest.raises(ArgumentError, match="delta"):
        quantiles([1.0], qs=qs, lower=0, upper=1, epsilon=1.0, method="slice")
    with pytest.raises(ArgumentError, match="delta"):
        quantiles([1.0], qs=qs, lower=0, upper=1, epsilon=1.0, delta=1e-6)
    with pytest.raises(BoundUnavailableError, match="slice"):
        few.rank_errors(100)
    assert plan_slices.cache_info().currsize > 0


@pytest.mark.parametrize(("count", "epsilon"), [(1, 0.05), (10, 0.3), (3, 1.5)])
def test_sums_of_geometric_numbers_stay_within_the_bound(count, epsilon):
    failure = 0.01
    bound, mean = _geometric_error(count, epsilon, failure), count / math.expm1(epsilon)
    # negative binomial: successes of probability 1 - exp(-epsilon)
    from scipy.stats import nbinom

    law = nbinom(count, -math.expm1(-epsilon))
    outside = law.cdf(math.ceil(mean - bound) - 1) + law.sf(math.floor(mean + bound))
    assert outside <= failure
    assert law.sf(math.floor(mean + bound / 3.0)) > failure  # and it is not idle


def test_draws_in_order_share_the_worst_error():
    """The middle quantile is drawn at a higher rate, but in order its value may be one of the others."""
    plan = Quantiles(epsilon=1.0, qs=[0.01, 0.5], method="independent")
    assert plan.rates[0] < plan.rates[1]
    assert plan.rank_errors(1000)[0] == plan.rank_errors(1000)[1]
