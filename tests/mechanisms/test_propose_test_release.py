"""Propose-test-release: distances against brute force, and exact audits over all small data sets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms import InterquantileRange, TrimmedMean
from dpselect.mechanisms.instability import sensitivity_of_middle, sorted_units
from dpselect.mechanisms.propose_test_release import answered
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.calculus import coarsen
from dpselect.privacy.output.oracle import output_delta
from tests.audits.propose_test_laws import (
    BROKEN,
    interquantile_range_law,
    pass_probability,
    stages_law,
    trimmed_mean_law,
)
from tests.ledger.test_accounting import Mechanism, Record, advantage

ROUNDING = 1e-12
FAR = 1000


def multisets(universe, count):
    return list(itertools.combinations_with_replacement(universe, count))


def neighbours(rows, universe):
    """Sorted data with one row replaced."""
    return {tuple(sorted((*rows[:i], v, *rows[i + 1 :]))) for i in range(len(rows)) for v in universe} - {rows}


def changes(one, other):
    """How many rows must be replaced to turn one multiset into the other."""
    rest = list(other)
    for row in one:
        if row in rest:
            rest.remove(row)
    return len(rest)


def needed_delta(law, other, guarantee):
    """The oracle in both directions: the delta that the prices of a guarantee need."""
    outputs = list({**law, **other})
    cells = [guarantee.cell(output) for output in outputs]
    prices = {cell: guarantee.price(cell) for cell in cells}
    p, q = ([side.get(output, 0.0) for output in outputs] for side in (law, other))
    return max(output_delta(p, q, cells=cells, epsilons=prices), output_delta(q, p, cells=cells, epsilons=prices))


def audited_delta(law, mechanism, universe, count, reach, guarantee=None):
    """The largest delta needed over all pairs of neighbours."""
    priced = guarantee or mechanism.guarantee
    laws = {rows: law(mechanism, np.array(rows), reach) for rows in multisets(universe, count)}
    return max(needed_delta(laws[x], laws[y], priced) for x in laws for y in neighbours(x, universe) if x < y)


# ---- distances -------------------------------------------------------------------------------------------------------


def trimmed_mean(**changes_):
    fixed = {"width": 1, "granularity": 1, "epsilon_test": 0.6, "epsilon_answer": 0.5, "delta": 0.15}
    return TrimmedMean(**{**fixed, **changes_})


@pytest.mark.cases(2)
@pytest.mark.theorem("Nissim, Raskhodnikova, Smith 2007, Proposition 3.4", exact=True, sharp=True)
@pytest.mark.parametrize(("count", "trim", "width"), [(5, 0.5, 1), (6, 0.5, 2), (7, 0.3, 3), (6, 0.2, 4), (3, 0.1, 2)])
def test_the_sensitivity_of_the_middle_and_its_distance_by_brute_force(count, trim, width):
    """All data over a small universe with two far ends: replace any row by anything, and count the changes."""
    universe = (-FAR, 0, 1, 2, 4, FAR)
    mechanism = trimmed_mean(width=width, trim=trim)
    trimmed = mechanism.trimmed(count)
    everything = multisets(universe, count)

    def middle(rows):
        return sum(rows[trimmed : count - trimmed])

    local = {x: max(abs(middle(x) - middle(y)) for y in neighbours(x, universe)) for x in everything}
    unstable = [x for x in everything if local[x] > width]
    for x in everything:
        rows = np.array(x)
        assert min(sensitivity_of_middle(rows, trimmed, 0), FAR // 2) == min(local[x], FAR // 2)
        assert mechanism.distance(rows) == min(changes(x, y) for y in unstable)


@pytest.mark.parametrize(("count", "ratio"), [(5, 1.5), (6, 2.0), (4, 3.0)])
@pytest.mark.parametrize("shifted", [False, True])
def test_the_distance_to_another_bin_by_brute_force(count, ratio, shifted):
    """The bins are intervals of real numbers here, and integers in the mechanism."""
    universe = (-FAR, *range(9), FAR)
    mechanism = interquantile_range(ratio=ratio)
    low, high = mechanism.ranks(count)
    everything = multisets(universe, count)

    def place(rows):
        width = rows[high - 1] - rows[low - 1]
        return None if width == 0 else math.floor(math.log(width) / math.log(ratio) + 0.5 * shifted + 1e-9)

    places = {x: place(x) for x in everything}
    table = np.array([[x.count(v) for v in universe] for x in everything])
    held = np.array([-1 if p is None else p for p in places.values()])
    for x in everything[:: max(len(everything) // 150, 1)]:
        if max(map(abs, x)) == FAR:
            continue
        distance, level = mechanism.examined(np.array(x), shifted=shifted)
        own = -1 if places[x] is None else places[x]
        moved = count - np.minimum(table, [x.count(v) for v in universe]).sum(axis=1)
        assert distance == moved[held != own].min() - 1
        assert (level is None) == (places[x] is None)
        if level is not None:
            assert (level + 0.5 * shifted * mechanism.steps) // mechanism.steps == own


def test_rows_are_rounded_one_by_one():
    assert sorted_units([0.3, math.nan, -math.inf, 1e300, -0.74], 0.5).tolist() == [-1, 0, 0, 1, 1 << 52]
    for wrong in ([], [[1.0]], ["a"], [1j]):
        with pytest.raises(ArgumentError, match="values"):
            sorted_units(wrong, 0.5)


# ---- exact audits ----------------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize(("count", "trim", "width"), [(5, 0.5, 1), (6, 0.5, 2), (7, 0.3, 1)])
def test_trimmed_means_need_their_delta_and_no_more(count, trim, width):
    """All pairs of neighbours over a universe with an outlier, by the exact laws: delta is attained within 1 %.

    Data with distance 0, whose middle jumps to the outlier, need all of it.
    """
    mechanism = trimmed_mean(width=width, trim=trim)
    found = audited_delta(trimmed_mean_law, mechanism, (0, 1, 2, 60), count, (0, 60 * count))
    assert 0.99 * mechanism.delta <= found <= mechanism.delta + ROUNDING


@pytest.mark.parametrize("variant", BROKEN, ids=lambda v: v.__name__)
def test_zoo_broken_tests_are_caught(variant):
    mechanism = trimmed_mean(width=2)
    assert audited_delta(variant, mechanism, (0, 1, 2, 60), 5, (0, 60)) > 1.2 * mechanism.delta


def stable_delta(law, mechanism, rows, reach, guarantee, stable):
    """The delta needed over pairs of neighbours that are both admissible: none, if the prices are right."""
    laws = {x: law(mechanism, np.array(x), reach) for x in rows if stable(np.array(x))}
    pairs = [(x, y) for x in laws for y in laws if x < y and changes(x, y) == 1]
    assert len(pairs) > 20
    return max(needed_delta(laws[x], laws[y], guarantee) for x, y in pairs)


def cheaper_versions(guarantee):
    """Every price lowered by a tenth, one at a time."""
    for cell, price in guarantee.table.items():
        prices = {**guarantee.table, cell: 0.9 * price}
        yield OutputGuarantee(cell=guarantee.cell, epsilons=prices, delta=guarantee.delta, adjacency="replace_one")


def test_zoo_smaller_prices_are_caught():
    mechanism = trimmed_mean(width=2)
    rows = multisets((0, 1, 2, 3), 7)

    def needed(guarantee):
        reach = (0, 3)
        return stable_delta(trimmed_mean_law, mechanism, rows, reach, guarantee, lambda x: mechanism.distance(x) >= 1)

    assert needed(mechanism.guarantee) <= ROUNDING
    for wrong in cheaper_versions(mechanism.guarantee):
        assert needed(wrong) > 1e-3


def interquantile_range(**changes_):
    fixed = {"granularity": 1, "epsilon_test": 0.6, "epsilon_answer": 0.5, "delta": 0.3, "ratio": 2.0, "steps": 2}
    return InterquantileRange(**{**fixed, **changes_})


@pytest.mark.parametrize(("count", "ranks"), [(2, (1, 2)), (3, (1, 3)), (4, (2, 3)), (5, (2, 4)), (100, (26, 75))])
def test_the_ranks_of_the_quartiles(count, ranks):
    """floor(n/4) + 1 from either end, and never past the middle."""
    assert interquantile_range().ranks(count) == ranks


@pytest.mark.cases(1)
@pytest.mark.parametrize(("count", "ratio", "steps"), [(4, 2.0, 2), (5, 1.5, 4), (6, 3.0, 3)])
def test_the_interquantile_range_keeps_its_guarantee(count, ratio, steps):
    mechanism = interquantile_range(ratio=ratio, steps=steps)
    universe = (0, 1, 2, 3, 40)
    levels = [round(math.log(w) / math.log(ratio) * steps) for w in (1, 40)]
    reach = (levels[0] - 2 * steps, levels[1] + 2 * steps)
    laws = {x: interquantile_range_law(mechanism, np.array(x), reach) for x in multisets(universe, count)}
    for law in itertools.islice(laws.values(), 0, None, 7):
        assert sum(law.values()) == pytest.approx(1, abs=ROUNDING)
    found = audited_delta(interquantile_range_law, mechanism, universe, count, reach)
    assert 0.4 * mechanism.delta <= found <= mechanism.guarantee.delta + ROUNDING
    merged = coarsen(mechanism.guarantee, merge=bool, cell=answered)
    assert dict(merged.epsilons) == {False: 1.2, True: pytest.approx(1.7)}
    found = audited_delta(interquantile_range_law, mechanism, universe, count, reach, merged)
    assert found <= merged.delta + ROUNDING


def test_zoo_smaller_prices_of_two_stages_are_caught():
    """From distances and levels as larger data have them: a distance moves by one, a level by less than a bin."""
    mechanism = interquantile_range(steps=4, delta=0.04)
    places = [(1, 0), (2, 3), (9, 0), (10, 3)]

    def needed(guarantee):
        games = [
            [stages_law(mechanism, stages, (-1, 4)) for stages in ((a, c), (b, d))]
            for a, b, c, d in itertools.product(places, repeat=4)
            if abs(a[0] - b[0]) <= 1 and abs(c[0] - d[0]) <= 1
        ]
        return max(needed_delta(*pair, guarantee) for pair in games)

    assert needed(mechanism.guarantee) <= ROUNDING
    for wrong in cheaper_versions(mechanism.guarantee):
        assert needed(wrong) > 1e-4


class Laws(Mechanism):
    """A real mechanism on one pair of neighbours, for the games of the ledger's audit."""

    def __init__(self, mechanism, law, pair, reach):
        one, other = (law(mechanism, np.array(rows), reach) for rows in pair)
        outputs = list({**one, **other})
        # outputs with one ratio and one cell are one: the game is shorter and the same
        merged = {}
        for output in outputs:
            p, q = one.get(output, 0.0), other.get(output, 0.0)
            ratio = round(math.log(p / q), 9) if p and q else (p > 0, q > 0)
            key = (mechanism.guarantee.cell(output), ratio)
            merged[key] = tuple(map(sum, zip(merged.get(key, (0.0, 0.0)), (p, q), strict=True)))
        cells = [cell for cell, _ in merged]
        upper, lower = zip(*merged.values(), strict=True)
        super().__init__(upper, lower, cells, {}, mechanism.guarantee)


PAIRS = [
    ((0, 0, 1, 1, 30), (0, 0, 1, 30, 30)),
    ((0, 0, 0, 0, 1), (0, 0, 0, 1, 1)),
    ((0, 0, 0, 30, 30), (0, 0, 30, 30, 30)),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_adversary_beats_the_ledger_with_them(pair):
    """All adaptive orders of a median and an interquartile range, paid at what came out, on one pair of neighbours."""
    median = Laws(trimmed_mean(delta=0.02), trimmed_mean_law, pair, (0, 30))
    spread = Laws(interquantile_range(delta=0.02), interquantile_range_law, pair, (-4, 14))
    for epsilon, delta, depth in ((1.7, 0.04, 2), (2.8, 0.06, 3)):
        for games in ([median, spread], [flipped(median), flipped(spread)]):
            found = advantage(Record(epsilon, delta, adjacency="replace_one"), games, epsilon, depth)
            assert found <= delta + ROUNDING


def flipped(mechanism):
    return Mechanism(mechanism.lower, mechanism.upper, mechanism.cells, {}, mechanism.guarantee)


class ChargesAnswersOnly(Record):
    """Broken: "none" gives its delta back."""

    def settled(self, mechanism, output):
        twin = super().settled(mechanism, output)
        if mechanism.cells[output] is False:
            twin.books.accounts["b"].buckets[""]["delta"] -= Fraction(str(mechanism.guarantee.delta))
        return twin


@pytest.mark.full
def test_zoo_a_delta_for_answers_only():
    """On inadmissible data a retry leaks again: three rounds of a median for the delta of one."""
    pair = ((0, 0, 0, FAR, FAR), (0, 0, FAR, FAR, FAR))
    median = Laws(trimmed_mean(epsilon_test=0.1, epsilon_answer=0.1, delta=0.05), trimmed_mean_law, pair, (0, FAR))
    assert pass_probability(trimmed_mean(delta=0.05).test, 0) == pytest.approx(0.05, rel=1e-9)
    sound = advantage(Record(0.4, 0.05, adjacency="replace_one"), [median], 0.4, 3)
    assert 0.04 < sound <= 0.05
    broken = advantage(ChargesAnswersOnly(0.4, 0.05, adjacency="replace_one"), [median], 0.4, 3)
    assert broken > 0.08
