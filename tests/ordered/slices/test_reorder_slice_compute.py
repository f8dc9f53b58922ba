"""Reorder-Slice-Compute: the constants of its price, exact audits of the shipped class, and broken variants caught.

Golden numbers are facts about the synchronisation maps and the holder's transcript of Cohen et al. (2022), computed
independently of this code from their definitions.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError, BudgetError
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.slices.price import (
    SlicePrice,
)
from dpselect.ordered.slices.reorder_slice_compute import EachRow, Kept, Ordered, ReorderSliceCompute, Steps
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import keyed_source
from tests.ordered.enumerated_draws import EnumeratedDraws, claims, exact_law, worst_excess

# ---------------------------------------------------------------- the class, exactly

RATIO = Fraction(1, 2)
UNIT = math.log(2)


def session_on(rows, draws, *, slices=None, slice_epsilon=UNIT, **more):
    session = ReorderSliceCompute(
        list(rows), slice_epsilon=slice_epsilon, computation=pure_dp(epsilon=UNIT), slices=slices, **more
    )
    session._draws = draws
    return session


def first_bit(draws):
    """Randomised response on whether the slice's first row is odd; the answer to an empty slice is that of an even."""
    return lambda rows: draws.response(len(rows) > 0 and rows[0] % 2, UNIT)


def peel(rows, draws, *, slices, orders, size=1):
    """Slice after slice with the orders in turn, the second depending on the first answer; all answers."""
    session, answers = session_on(rows, draws, slices=slices), []
    for step in range(slices):
        order = orders[(step + (1 if answers and answers[0] else 0)) % len(orders)]
        answers.append(session.slice_and_compute(size, order, first_bit(draws)))
    return tuple(answers)


ORDERS = (
    Ordered(),
    Ordered(descending=True),
    Steps((Kept(lambda row: row != 2), EachRow(lambda row: row + 1 if row == 1 else row), Ordered())),
)


@pytest.mark.cases(1)
@pytest.mark.theorem(
    "Cohen et al. 2022, Theorem 2.1",
    "docs/theory/reorder-slice-compute.md, Theorem A",
    "docs/theory/reorder-slice-compute.md, Theorem B",
    exact=True,
    loose="every failed query is charged in full, and their number by its tail",
)
@pytest.mark.parametrize("slices", [1, 2, 3])
def test_exact_laws_are_within_the_guarantee(slices):
    """All multisets of up to four of four values and all rows that can be added, three rational orders, adaptively."""
    noisy = SlicePrice(slice_epsilon=UNIT, insertion=pure_dp(epsilon=UNIT), slices=slices).numeric()
    claimed = np.minimum(claims(session_on([], None, slices=slices).guarantee), claims(noisy))
    most = 4 if slices < 3 else 2
    laws = {}
    for size in range(most + 1):
        for rows in itertools.combinations_with_replacement(range(4), size):
            law, lost, _ = exact_law(
                lambda draws, rows=rows: peel(rows, draws, slices=slices, orders=ORDERS), RATIO, geometric_cap=most + 1
            )
            assert lost == 0
            assert sum(law.values()) == 1
            laws[rows] = law
    worst, total = -math.inf, 0.0
    for rows in laws:
        for extra in range(4):
            larger = tuple(sorted((*rows, extra)))
            if larger in laws:
                pair = (laws[larger], 0), (laws[rows], 0)
                worst = max(worst, worst_excess(pair, claimed))
                total = max(total, max(abs(math.log(laws[rows][o] / laws[larger][o])) for o in laws[rows]))
    assert worst <= 1e-12
    assert total > UNIT / 2  # the audit sees a loss at all


@pytest.mark.full
def test_replacing_a_row_is_within_the_guarantee():
    claimed = claims(session_on([], None, slices=2, adjacency="replace_one").guarantee)
    laws = {}
    for rows in itertools.combinations_with_replacement(range(3), 3):
        laws[rows], _, _ = exact_law(
            lambda draws, rows=rows: peel(rows, draws, slices=2, orders=ORDERS[:2]), RATIO, geometric_cap=4
        )
    for rows, other in itertools.combinations(laws, 2):
        if sum(min(rows.count(v), other.count(v)) for v in range(3)) == 2:
            assert worst_excess(((laws[rows], 0), (laws[other], 0)), claimed) <= 1e-12


@pytest.mark.full
def test_delayed_and_repeated_computations():
    """Two computations on each of two slices, after both were cut, in an order that an answer decides."""

    def program(draws, rows):
        session = session_on(rows, draws, slices=2, computations=2)
        low, high = session.slice(1, Ordered()), session.slice(1, Ordered(descending=True))
        answers = [session.compute(low, first_bit(draws))]
        for part in (low, high, high) if answers[0] else (high, high, low):
            answers.append(session.compute(part, first_bit(draws)))
        return tuple(answers)

    claimed = claims(session_on([], None, slices=2, computations=2).guarantee)
    for rows, extra in (((0, 1), 1), ((1,), 0), ((0, 3), 3), ((), 1)):
        pair = [
            (exact_law(lambda d, data=data: program(d, data), RATIO, geometric_cap=4)[0], 0)
            for data in (sorted((*rows, extra)), rows)
        ]
        assert worst_excess(tuple(pair), claimed) <= 1e-12


DOMINO = [0, 1] * 12


class WithoutNoise(EnumeratedDraws):
    def geometric(self, epsilon):
        return 0


def answers_of_dominoes(rows, draws, slices):
    session = session_on(rows, draws, maps_grow=True)
    return tuple(session.slice_and_compute(1, lambda left: left, first_bit(draws)) for _ in range(slices))


def law_without_noise(rows, slices):
    """Every slice is known, so the answers are independent: the law of the shipped code with its noise removed."""
    law = {}
    for output in itertools.product((False, True), repeat=slices):
        draws = WithoutNoise(RATIO, [])
        session = session_on(rows, draws, maps_grow=True)
        mass = Fraction(1)
        for answer in output:
            seen = session.slice_and_compute(1, lambda left: left, lambda part: bool(part and part[0] % 2))
            mass *= Fraction(2, 3) if seen == answer else Fraction(1, 3)
        law[output] = mass
    return law


@pytest.mark.full
def test_dominoes_without_noise_are_caught():
    """Example 1.5: without noise the loss is the number of slices; the price without limit does not cover that."""
    short = [law_without_noise(rows, 4) for rows in (DOMINO, DOMINO[1:])]
    ratios = [short[0][o] / short[1][o] for o in short[0]]
    assert max(ratios) == RATIO**-4
    pair = tuple((law_without_noise(rows, 11), 0) for rows in (DOMINO, DOMINO[1:]))
    guarantee = SlicePrice(slice_epsilon=UNIT, insertion=pure_dp(epsilon=UNIT)).guarantee()
    assert worst_excess(pair, claims(guarantee)) > 0.01


def domino_law(slices, epsilon, start, noise=None):
    """The answers' law with noise on an endless list of alternating bits, through the parity of the start position."""
    even = 1.0 / (1.0 + math.exp(-epsilon)) if noise is None else noise
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    law = {}
    for output in itertools.product((0, 1), repeat=slices):
        state = [1.0, 0.0] if start == 0 else [0.0, 1.0]
        for answer in output:
            seen = [state[b] * (keep if answer == b else 1.0 - keep) for b in (0, 1)]
            # a slice of 1 + G rows: an even G moves to the other bit
            state = [seen[0] * (1 - even) + seen[1] * even, seen[1] * (1 - even) + seen[0] * even]
        law[output] = Fraction(sum(state))
    return law


@pytest.mark.full
@pytest.mark.parametrize(
    ("epsilon", "two", "twelve"),
    [(0.1, 0.104991689, 0.105253455), (0.5, 0.620114507, 0.655299523), (1.0, 1.433780830, 1.647525284)],
)
def test_dominoes_with_noise(epsilon, two, twelve):
    for slices, expected in ((2, two), (12, twelve)):
        pair = [domino_law(slices, epsilon, start) for start in (0, 1)]
        loss = max(abs(math.log(pair[0][o] / pair[1][o])) for o in pair[0])
        assert loss == pytest.approx(expected, abs=1e-8)
        guarantee = SlicePrice(slice_epsilon=epsilon, insertion=pure_dp(epsilon=epsilon)).guarantee()
        assert worst_excess(tuple((law, 0) for law in pair), claims(guarantee)) <= 0.0


@pytest.mark.full
def test_dominoes_with_noise_by_the_class():
    """The forward recursion is the shipped class: both laws for three slices of a list long enough."""
    for start in (0, 1):
        law, _, _ = exact_law(
            lambda draws, start=start: answers_of_dominoes(DOMINO[start:], draws, 3), RATIO, geometric_cap=7
        )
        recursion = domino_law(3, UNIT, start)
        for output, mass in law.items():
            assert float(mass) == pytest.approx(float(recursion[tuple(int(a) for a in output)]), abs=2 * 2.0**-7)


def test_published_sizes_are_caught():
    def program(draws, rows):
        session = session_on(rows, draws, slices=1)
        return session.slice_and_compute(2, Ordered(), len)

    pair = tuple((exact_law(lambda d, n=n: program(d, [0] * n), RATIO, geometric_cap=6)[0], 0) for n in (4, 3))
    assert worst_excess(pair, claims(session_on([], None, slices=1).guarantee)) > 0.05


@pytest.mark.full
def test_a_map_that_is_not_adjacency_preserving_is_caught():
    """Ranks in place of values: adding the smallest row rewrites all others, so a count of odd rows is anything."""

    def ranks(rows):
        return list(range(len(rows)))[::-1]

    def program(draws, rows, order):
        session = session_on(rows, draws, slices=1, maps_grow=True)

        def count(part):
            noise = draws.laplace(UNIT)
            return sum(part) + noise if order is ranks else len([r for r in part if r % 2]) + noise

        return session.slice_and_compute(4, order, count)

    guarantee = session_on([], None, slices=1).guarantee
    for order, bad in ((ranks, True), (Ordered(), False)):
        pair = tuple(
            exact_law(
                lambda d, rows=rows, order=order: program(d, rows, order), RATIO, geometric_cap=8, laplace_cap=24
            )[:2]
            for rows in ([0, 2, 4, 6, 8, 10], [2, 4, 6, 8, 10])
        )
        excess = worst_excess(pair, claims(guarantee))
        assert (excess > 0.05) if bad else (excess <= 1e-5)


# ---------------------------------------------------------------- behaviour


@pytest.mark.full
def test_the_sampler_of_sizes():
    """P(G >= k) = exp(-epsilon k): mean, variance and a tail, each within five standard errors (1e-6 each way)."""
    draws, count, epsilon = SecretDraws(keyed_source("sizes")), 5000, 0.1
    drawn = np.array([draws.geometric(epsilon) for _ in range(count)])
    mean, variance, tail = 9.50833194, 99.9167083, 0.00673794700
    assert drawn.min() == 0
    assert abs(drawn.mean() - mean) < 5 * math.sqrt(variance / count)
    assert abs(drawn.var() - variance) < 5 * variance * math.sqrt(8 / count)
    assert abs(np.mean(drawn >= 50) - tail) < 5 * math.sqrt(tail / count)


def test_budgets_and_secrets():
    session = ReorderSliceCompute(range(10), slice_epsilon=1, computation=pure_dp(epsilon=1), slices=1)
    part = session.slice(3, Ordered())
    with pytest.raises(BudgetError):
        session.slice(3, Ordered())
    assert session.compute(part, lambda rows: 7) == 7
    with pytest.raises(BudgetError):
        session.compute(part, len)
    with pytest.raises(ArgumentError):
        session.compute(part + 1, len)
    assert repr(session) == "<ReorderSliceCompute>"
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copier(session)
    assert session.release(7).value == 7


def test_a_failed_computation_is_used_up():
    session = ReorderSliceCompute([1, 2], slice_epsilon=0.5, computation=pure_dp(epsilon=1), slices=1)
    part = session.slice(1, Ordered())
    with pytest.raises(ZeroDivisionError):
        session.compute(part, lambda rows: 1 / 0)
    with pytest.raises(BudgetError):
        session.compute(part, len)


def test_short_data_are_taken_silently_and_arrays_agree_with_lists():
    rows = np.random.default_rng(1).integers(0, 4, size=(30, 2))
    for order in (Ordered(column=1), Ordered(column=0, descending=True), Kept(lambda row: row[0] > 1)):
        assert [tuple(r) for r in order(rows)] == [tuple(r) for r in order([tuple(r) for r in rows])]
    session = ReorderSliceCompute(rows, slice_epsilon=None, computation=pure_dp(epsilon=1), slices=3)
    sizes = [session.slice_and_compute(20, Ordered(column=0), len) for _ in range(3)]
    assert sizes == [20, 10, 0]


def test_maps_preserve_adjacency():
    """Over all small lists and every insertion: the results are equal or differ by one inserted row."""
    maps = (*ORDERS, Ordered(key=lambda row: row % 2), Kept(lambda row: row % 2 == 0))
    for size in range(4):
        for rows in itertools.product(range(3), repeat=size):
            for place, extra in itertools.product(range(size + 1), range(3)):
                larger = [*rows[:place], extra, *rows[place:]]
                for step in maps:
                    a, b = step(list(rows)), step(larger)
                    assert a == b or any(b[:i] + b[i + 1 :] == a for i in range(len(b)))


def test_adjacency_must_fit():
    with pytest.raises(AdjacencyError):
        ReorderSliceCompute([], slice_epsilon=1, computation=pure_dp(epsilon=1, adjacency=Adjacency.REPLACE_ONE))
    with pytest.raises(ArgumentError):
        ReorderSliceCompute([], slice_epsilon=None, computation=pure_dp(epsilon=1))
