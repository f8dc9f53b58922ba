"""Several quantiles: exact audits of the recursive cuts, ties broken at random, stated errors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.ordered import Quantiles, quantiles
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.ordered.order_statistics.recursive import cutting_tree, recursive_codes
from dpselect.ordered.order_statistics.scattered import fine_bits
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
THREE = tuple(Fraction(k, 4) for k in (1, 2, 3))


def score(rows, z, target):
    return min(sum(x <= z for x in rows) - target, target - sum(x < z for x in rows))


def recursive_law(rows, plan, size, weight):
    """{codes: probability} by enumeration; weight(rate * score) stands for exp."""
    outcomes = {(): Fraction(1)}
    for cut, rate in zip(plan.cuts, plan.rates, strict=True):
        longer = {}
        for drawn, chance in outcomes.items():
            place = {c.index: z for c, z in zip(plan.cuts, drawn, strict=False)}
            low = place.get(cut.low, -1)
            last = place.get(cut.high, size - 1)
            origin = min(low + 1, last)
            part = [x for x in rows if low < x and (x <= last or cut.high is None)]
            weights = [weight(rate * score(part, z, cut.share * len(part))) for z in range(origin, last + 1)]
            for step, w in enumerate(weights):
                longer[(*drawn, origin + step)] = chance * w / sum(weights)
        outcomes = longer
    return outcomes


@pytest.mark.cases(4)
@pytest.mark.parametrize("qs", [THREE, (Fraction(1, 10), Fraction(1, 2)), (Fraction(0), Fraction(1, 3), Fraction(1))])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_the_law_of_recursive_cuts_is_within_epsilon_in_rational_arithmetic(qs, adjacency):
    size, base = 3, 2
    plan = Quantiles(epsilon=1.0, qs=qs, method="recursive", adjacency=adjacency)
    units = math.lcm(*((rate * cut.share * Fraction(1)).denominator * rate.denominator for cut, rate in zip(plan.cuts, plan.rates, strict=True)))  # fmt: skip # noqa: E501

    def weight(exponent):
        whole = exponent * units
        assert whole.denominator == 1
        return Fraction(base) ** int(whole)

    multisets = [r for n in range(4) for r in itertools.combinations_with_replacement(range(size), n)]
    laws = {rows: recursive_law(rows, plan, size, weight) for rows in multisets}
    worst = Fraction(0)
    for rows in multisets:
        for x in range(size):
            if adjacency is ADD:
                others = [tuple(sorted((*rows, x)))]
            else:
                others = [tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows))]
            for other in others:
                if other in laws:
                    worst = max(worst, *(laws[rows][z] / laws[other][z] for z in laws[rows]))
                    worst = max(worst, *(laws[other][z] / laws[rows][z] for z in laws[rows]))
    assert worst <= base**units  # exp(epsilon)
    assert worst > 1


@pytest.mark.full
@pytest.mark.statistical
def test_cuts_follow_the_enumerated_law():
    rows, size, draws = np.array([0, 1, 1, 3, 3, 3, 4]), 5, 2500
    plan = Quantiles(epsilon=3.0, qs=THREE, method="recursive")
    law = recursive_law(rows.tolist(), plan, size, lambda exponent: math.exp(exponent))
    order = [cut.index for cut in plan.cuts]
    random = keyed_source(3)
    seen = {}
    for _ in range(draws):
        column = SortedColumn(rows, WholeNumbers(0, 4))
        codes = recursive_codes(column, plan.cuts, size=size, rates=plan.rates, random=random)
        key = tuple(codes[i] for i in order)
        seen[key] = seen.get(key, 0) + 1
    assert set(seen) <= set(law)
    large = [key for key, p in law.items() if p * draws > 5]
    statistic = sum((seen.get(k, 0) - draws * law[k]) ** 2 / (draws * law[k]) for k in large)
    # the 1 - 1e-6 quantile of chi-squared is below its mean plus 4.76 sqrt(2 mean) + 16; swapping two rates adds > 500
    assert statistic < len(large) + 4.76 * math.sqrt(2 * len(large)) + 16


@pytest.mark.parametrize("count", [1, 2, 3, 7, 99])
def test_cutting_trees_are_balanced_and_know_their_ends(count):
    qs = [Fraction(k + 1, count + 1) for k in range(count)]
    cuts = cutting_tree(qs)
    assert sorted(cut.index for cut in cuts) == list(range(count))
    assert max(cut.level for cut in cuts) == math.ceil(math.log2(count + 1)) - 1
    for place, cut in enumerate(cuts):
        start = qs[cut.low] if cut.low is not None else Fraction(0)
        stop = qs[cut.high] if cut.high is not None else Fraction(1)
        assert start + cut.share * (stop - start) == qs[cut.index]
        assert {cut.low, cut.high} - {None} <= {earlier.index for earlier in cuts[:place]}


@pytest.mark.cases(1)
@pytest.mark.statistical
@pytest.mark.parametrize("method", ["recursive", "independent", "joint", "slice", "tree"])
@pytest.mark.parametrize("shape", ["uniform", "atoms"])
def test_stated_errors_hold(method, shape):
    random = keyed_source(9)
    rows = {"uniform": np.arange(6000) % 997, "atoms": np.repeat([5, 300, 301, 900], [3000, 100, 2400, 500])}[shape]
    qs, failures = [0.1, 0.35, 0.5, 0.8, 0.95], 0
    for _ in range(60):
        delta = 1e-6 if method == "slice" else None
        released = quantiles(rows, qs=qs, lower=0, upper=1000, epsilon=2.0, method=method, delta=delta, random=random)
        assert released.value == sorted(released.value)
        for q, value, error in zip(qs, released.value, released.rank_errors(0.05), strict=True):
            short = q * len(rows) - np.sum(rows <= value)
            over = np.sum(rows < value) - q * len(rows)
            if max(short, over) > error:
                failures += 1
                break
    assert failures <= 11  # at a true rate of 0.05 more than 11 of 60 have probability 1e-5


def test_a_single_quantile_and_wrong_arguments():
    assert Quantiles(epsilon=1.0, qs=[0.5, 0.5]).chosen == "independent"
    with pytest.raises(ArgumentError, match="qs"):
        quantiles([1.0], qs=[], lower=0, upper=1, epsilon=1.0)
    with pytest.raises(BoundUnavailableError, match="recursive"):
        quantiles([1.0], qs=[0.5], lower=0, upper=1, epsilon=1.0, method="best")
    with pytest.raises(ArgumentError, match=r"2\*\*64"):
        quantiles(np.array([1, 2]), qs=[0.5, 0.6], lower=0, upper=2**70, epsilon=1.0)
    assert fine_bits(1 << 64) == 0
    assert quantiles([], qs=[0.2, 0.8], lower=0.0, upper=1.0, epsilon=1.0).value[0] <= 1.0
