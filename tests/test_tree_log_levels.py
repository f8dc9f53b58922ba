"""TreeLog at two levels: what runs, measured line by line; exact laws of the whole recursion; planted defects."""

from __future__ import annotations

import dis
import inspect
import itertools
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import CodeType

import numpy as np
import pytest

from dpselect.ordered.interior_points import dyadic, search_tree, stable_choice, tree_log
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.interior_point import InteriorPoint, interior_point
from dpselect.ordered.interior_points.rows import plan_method
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice, laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import TreeLogParameters, one_heavy_round
from dpselect.ordered.interior_points.tree_log_price import (
    difference_tail,
    iterated_logarithm,
    printed_rows,
    tree_log_price,
)
from dpselect.ordered.interior_points.tree_log_tuning import affordable_printed, tree_log_rows
from dpselect.privacy import Adjacency, approximate_dp, pure_dp
from dpselect.randomness import keyed_source
from tests.enumerated_draws import EnumeratedDraws, Lost, claims, exact_law, noise_tail, worst_excess
from tests.test_tree_log import RATIO, UNIT, array, embedded_parts, multisets, shapes
from tests.test_tree_log_laws import law_of, random_data

TWO = TreeLogParameters(
    epsilon_threshold=3 * UNIT,
    epsilon_heavy=3 * UNIT,
    epsilon_border=2 * UNIT,
    rate_base=UNIT,
    choice=StableChoice(UNIT, 0.004),
    border=2,
    deepest=22,
    threshold=7,
    heavy_threshold=1,
    promise=4,
    base_bits=1,
)
"""Sixteen codes, then four, then two: two levels above a base of two codes."""

FACTORS = tuple(4**k for k in range(11))
PRINTED = {"domain_size": 2**64, "epsilon": 9.0, "delta": 1e-3, "method": "tree_log_printed"}


# ---------------------------------------------------------------- what runs


def lines_of(module):
    """Every line of a module that belongs to the body of a function."""

    def inside(code):
        yield from (line for _, line in dis.findlinestarts(code) if line is not None and line != code.co_firstlineno)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from inside(constant)

    source = inspect.getsource(module)
    protocols = {k for k, line in enumerate(source.splitlines(), 1) if line.strip() == "..."}
    whole = compile(source, module.__file__, "exec")
    functions = [c for c in whole.co_consts if isinstance(c, CodeType)]
    found = set()
    for code in functions:
        methods = [c for c in code.co_consts if isinstance(c, CodeType)]
        is_class = "__module__" in code.co_names and "__qualname__" in code.co_names
        for part in methods if is_class else [code]:
            found.update(inside(part))
    return found - protocols


class Coverage:
    """The lines of some modules that ran inside the `with` block."""

    def __init__(self, *modules):
        self.lines = {module.__file__: set() for module in modules}

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.enter)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    def enter(self, frame, event, argument):
        lines = self.lines.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)

        def line(frame, event, argument):
            lines.add(frame.f_lineno)
            return line

        return line


def test_lines_are_counted():
    """The measure itself: a function that was not called is missing, and one that was is not."""
    with Coverage(tree_log) as seen:
        tree_log.level_bits(9)
    missed = lines_of(tree_log) - seen.lines[tree_log.__file__]
    body = {line for _, line in dis.findlinestarts(tree_log.level_bits.__code__)} - {
        tree_log.level_bits.__code__.co_firstlineno
    }
    assert body
    assert not body & missed
    assert len(missed) > 30


def test_every_line_of_the_recursion_runs(monkeypatch):
    """Two levels, both endings of the heavy round and both failures of a choice, through `interior_point` itself.

    Every line of the four modules is run; the places visited are counted besides, so that none of them is run at the
    first level only.
    """
    visits = Counter()
    monkeypatch.setattr(SecretDraws, "visit", lambda self, place: visits.update([place]))
    rng = random.Random(3)
    rows = InteriorPoint(**PRINTED).rows
    with Coverage(tree_log, search_tree, stable_choice, dyadic) as seen:
        for name, points in shapes(rows + rows % 2, 64, rng).items():
            release = interior_point(points, **PRINTED, random=keyed_source(name))
            assert min(points) <= release.value <= max(points), name
        assert visits.keys() >= {"level 1", "level 2", "base case", "one heavy round", "heavy node"}
        assert visits["base case"] == visits["level 2"] - (visits["one heavy round"] - heavy_at_first(visits))
        for method in ("tree_log", "dyadic", "cumulative"):
            for points in ([7] * 4, [2**255 + 3**k for k in range(60)], []):
                # a failed choice at the second level ends the first one too
                assert interior_point(points[:4], **PRINTED, random=keyed_source("few")).value is None
                asked = {"domain_size": 2**256, "epsilon": 1, "delta": 1e-6, "method": method}
                interior_point(points, **asked, adjacency="replace_one", random=keyed_source("few"))
        assert visits["no stable choice"] > 0
        points = [2**255 + k for k in range(200)]
        interior_point(points, domain_size=2**256, epsilon=4, delta=1e-6, method="dyadic", random=keyed_source("one"))
        ends = [2**64 - 1] * 400
        interior_point(ends, domain_size=2**64, epsilon=4, delta=1e-6, method="dyadic", random=keyed_source("ends"))
        asked = {"domain_size": 2**64, "epsilon": 4, "delta": 1e-6, "method": "cumulative", "adjacency": "replace_one"}
        assert interior_point([5] * InteriorPoint(**asked).rows, **asked, random=keyed_source("many")).value == 5
        # the leaf is left over where no sibling fires although the round began: rare, so it is enumerated
        _, _, places = exact_law(
            lambda draws: one_heavy_round(array([0, 1, 9]), 4, replace(TWO, gate=0), draws), RATIO, laplace_cap=2
        )
        assert places >= {"heavy node", "heavy leaf"}
        assert TWO.levels(4) == 2
        # a mass just below a tail needs one step more than its logarithm says to nine digits
        assert laplace_tail_steps(UNIT, 1 / 12 * (1 - 2e-10)) == 4
    for module in (tree_log, search_tree, stable_choice, dyadic):
        missed = lines_of(module) - seen.lines[module.__file__]
        assert not missed, f"{module.__name__}: lines {sorted(missed)} were not run"


def heavy_at_first(visits):
    """Heavy rounds at the first level: runs that never reached the second."""
    return visits["level 1"] - visits["level 2"]


# ---------------------------------------------------------------- the algorithm as printed


def test_the_printed_algorithm_is_priced_at_its_depth():
    for bits, levels in ((3, 0), (8, 1), (64, 2), (256, 2), (1024, 3)):
        p = affordable_printed(bits, 1.0, 1e-6)
        price = tree_log_price(p, bits=bits)
        assert p.levels(bits) == levels
        assert 0.999 < price.epsilon <= 1.0
        assert price.delta <= 1e-6
        assert (p.gate, p.promise, p.deepest) == (p.border // 10, math.ceil(p.border / 2), 2 * p.border)
        assert p.border == math.ceil(100 / p.epsilon_border * math.log(1 / p.choice.delta))
    for adjacency in Adjacency:
        printed = {"domain_size": 2**64, "epsilon": 1, "delta": 1e-6, "method": "tree_log_printed"}
        g = InteriorPoint(**printed, adjacency=adjacency).guarantee
        assert 0.99 < g.epsilon(1e-6) <= 1.0
    assert InteriorPoint(method="tree_log_printed", domain_size=2**64, epsilon=1, delta=1e-6).rows < 1.8e5
    assert plan_method("tree_log_printed", 2**64, 1.0, 0.0, 0.01, Adjacency.ADD_OR_REMOVE_ONE) is None
    # what ten times log* times t would be, at this t: ten times log* levels of which two are there
    p = affordable_printed(64, 1.0, 1e-6)
    assert tree_log_rows(p, 64, 0.01) < 10 * iterated_logarithm(2**64) * p.border


@pytest.mark.parametrize(
    ("bits", "epsilon", "delta", "rows"),
    [
        (16, 1.0, 1e-6, 1.79e7),
        (32, 1.0, 1e-6, 2.26e7),
        (64, 1.0, 1e-6, 2.26e7),
        (256, 1.0, 1e-6, 2.26e7),
        (1024, 1.0, 1e-6, 2.26e7),
        (65536, 1.0, 1e-6, 2.26e7),
        (64, 1.0, 1e-9, 4.54e7),
        (64, 0.1, 1e-6, 2.26e8),
    ],
)
def test_rows_of_the_theorem_with_its_constants(bits, epsilon, delta, rows):
    assert printed_rows(domain_size=2**bits, epsilon=epsilon, delta=delta) == pytest.approx(rows, rel=3e-3)


def test_iterated_logarithms():
    found = [iterated_logarithm(1 << bits) for bits in (0, 1, 2, 3, 4, 16, 20, 32, 64, 65536)]
    assert found == [0, 1, 2, 3, 3, 4, 5, 5, 5, 5]
    assert iterated_logarithm(3) == 2


def exact_tail(ratio, least):
    """P(N - N' >= least), summed."""
    at_zero = (1 - ratio) / (1 + ratio)
    return float(sum(at_zero * ratio ** abs(n) * noise_tail(ratio, least + n) for n in range(-60, 61)))


def test_the_price_of_two_levels_term_by_term():
    """The statement in `tree_log_price`, written out: one term for each test, choice, draw and bad event."""
    tail = exact_tail(Fraction(1, 8), 3)
    price = tree_log_price(TWO, bits=4)
    # test 6, two levels of border 2 and choice 2; the heavy round at the second level is dearer than that level's own
    # border and choice with the base
    assert price.epsilon == pytest.approx((6 + 4 + 6) * UNIT)
    # two choices of 2 * 0.004; too large a Gamma passes (22/2 - 1 - 7 = 3), a round without its promise at either level
    # (7 - 4 = 3), a round that misses its node (4 - 1 = 3)
    assert price.delta == pytest.approx(2 * 2 * 0.004 + tail + 2 * tail + tail, rel=1e-9)
    gated = replace(TWO, gate=0, heavy_threshold=2)
    more = exact_tail(Fraction(1, 8), 2) + exact_tail(Fraction(1, 8), 1)
    assert tree_log_price(gated, bits=4).delta == pytest.approx(0.016 + 3 * tail + more, rel=1e-9)


def test_the_price_of_two_levels_at_cumulative_distance():
    """The distance doubles from level to level, and what Gamma and the siblings move is twice that of the last."""
    choice = SupportChoice(4 * UNIT, 8 * UNIT, 0.01, 0.001, 60)
    p = replace(TWO, choice=choice, deepest=60, threshold=16, promise=9, heavy_threshold=2)
    price = tree_log_price(p, bits=4, distance=1)
    first, second = (d * 2 * UNIT + choice.epsilon for d in (1, 2))
    base, queries = 2 * UNIT * 4, 6 * 2 * 3 * UNIT
    assert price.epsilon == pytest.approx(queries + max(first + second + base, first + queries))
    ratio = Fraction(1, 8)
    # 60/2 - 8 - 16, 16 - 9 - 4 + 1, (9 - 4 + 1) - 2
    events = exact_tail(ratio, 6) + 2 * exact_tail(ratio, 4) + exact_tail(ratio, 4)
    assert price.delta == pytest.approx(2 * choice.delta + events, rel=1e-9)


# ---------------------------------------------------------------- exact laws at two levels


def two_level_data(rng, count):
    return [x if rng.random() < 0.8 else rng.randrange(16) for x in random_data(rng, count)]


@pytest.mark.full
def test_exact_laws_of_two_levels():
    """The whole recursion in rationals: every draw of both levels enumerated, at the price of two levels."""
    price = tree_log_price(TWO, bits=4)
    assert price.epsilon < math.log(FACTORS[-1])
    assert price.delta < 0.06
    claimed = claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), FACTORS)
    rng, seen, worst = random.Random(8), set(), -math.inf
    for count in (30, 56, 60):
        points = two_level_data(rng, count)
        pair = []
        for data in ([*points, rng.randrange(16)], points):
            law, lost, places = law_of(data, TWO, laplace_cap=4)
            assert sum(law.values()) + lost == 1
            pair.append((law, lost))
            seen |= places
        worst = max(worst, worst_excess(tuple(pair), claimed, FACTORS))
    assert worst <= 0.0
    assert seen >= {"level 1", "level 2", "base case", "one heavy round", "no stable choice"}


def test_exact_laws_of_the_heavy_round_when_a_point_is_replaced():
    """Two steps: 4 epsilon and (1 + exp(2 epsilon)) tail; all pairs of small multisets that keep the promise."""
    p, bits = replace(TWO, heavy_threshold=1, promise=2), 2
    laws = {}
    for points in multisets(4, 6):
        if search_tree.heavy_path(array(points), bits)[1] >= p.promise:
            laws[points] = exact_law(
                lambda draws, points=points: one_heavy_round(array(points), bits, p, draws), RATIO, laplace_cap=4
            )[:2]
    step = 6 * UNIT
    tail = difference_tail(3 * UNIT, p.promise - p.heavy_threshold)
    # the middle data set, with the point left out, need not keep the promise: then nothing is claimed
    factors = tuple(2**k for k in range(0, 16, 3))
    delta = min(1.0, (1 + math.exp(step)) * tail)
    claimed = claims(approximate_dp(epsilon=2 * step, delta=delta) if delta < 1 else pure_dp(epsilon=20.0), factors)
    checked = 0
    for points in laws:
        for gone in range(6):
            middle = tuple(points[:gone] + points[gone + 1 :])
            if search_tree.heavy_path(array(middle), bits)[1] < p.promise:
                continue
            for extra in range(4):
                other = tuple(sorted((*middle, extra)))
                if other > points and other in laws:
                    checked += 1
                    assert worst_excess((laws[points], laws[other]), claimed, factors) <= 0.0
    assert checked > 20


# ---------------------------------------------------------------- planted defects


def test_the_tail_of_the_heavy_round_is_needed():
    """Priced without its failure: two paths that part show leaves that the other never gives."""
    p = replace(TWO, heavy_threshold=1, promise=2)
    data = [0, 0, 2, 2, 2], [0, 0, 2, 2]
    pair = tuple(
        exact_law(lambda draws, points=points: one_heavy_round(array(points), 2, p, draws), RATIO, laplace_cap=7)[:2]
        for points in data
    )
    tail = difference_tail(3 * UNIT, p.promise - p.heavy_threshold)
    assert worst_excess(pair, claims(approximate_dp(epsilon=6 * UNIT, delta=tail))) <= 0.0
    assert worst_excess(pair, claims(pure_dp(epsilon=6 * UNIT))) > 0.0


class WithoutThresholdNoise(EnumeratedDraws):
    """Planted: the threshold is compared to as it is."""

    def laplace(self, epsilon):
        return 0


class FreshThresholdNoise(WithoutThresholdNoise):
    """Planted: the threshold's noise is drawn anew for every node."""

    def reaches(self, value, limit, epsilon):
        return self.coin(difference_law(int(limit) - int(value)))


@cache
def difference_law(least):
    """P(N - N' >= least) for exp(-epsilon) = 1/2, up to 2**-60."""
    return sum(Fraction(1, 3) * RATIO ** abs(n) * noise_tail(RATIO, least + n) for n in range(-60, 61))


def law_with(kind, program, **caps):
    """`exact_law` with other draws."""
    law, prefix = {}, []
    while True:
        draws = kind(RATIO, prefix, **caps)
        try:
            output = program(draws)
            law[output] = law.get(output, Fraction(0)) + draws.weight
        except Lost:
            pass
        taken = draws.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return law, 1 - sum(law.values())
        prefix = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "caught"), [(EnumeratedDraws, False), (WithoutThresholdNoise, True), (FreshThresholdNoise, True)]
)
def test_threshold_noise_of_the_heavy_round_is_drawn_once(kind, caught):
    """Cumulative distance one moves every sibling: 6, 0, 6, 0, ... against 4, 2, 4, 2, ... on a path of 33 nodes.

    One noise for all of them costs 6 epsilon; without it, or with a fresh one for each node, the loss adds up.
    """
    bits, leaf = 33, [0] * 200
    inside = [[1 << k, 1 << k, 1 << k, *[(2 << k) - 1] * 3] for k in range(2, 33, 2)]
    first = sorted([*leaf, *itertools.chain(*inside)])
    # of every second interval the lowest point moves down and the highest up, one place each
    moved = [[(1 << k) - 1, 1 << k, 1 << k, *[(2 << k) - 1] * 2, 2 << k] for k in range(2, 33, 2)]
    moved[-1][-1] = (2 << 32) - 1
    second = sorted([*leaf, *itertools.chain(*moved)])
    places = sorted({*first, *second})
    assert max(abs(sum(x <= y for x in first) - sum(x <= y for x in second)) for y in places) == 1
    siblings = [[weight for weight, _ in search_tree.heavy_path(array(d), bits)[2]] for d in (first, second)]
    assert siblings[0][2:6] == [6, 0, 6, 0]
    assert siblings[1][2:6] == [4, 2, 4, 2]
    p = replace(TWO, epsilon_heavy=UNIT, heavy_threshold=6, promise=6)
    pair = tuple(
        law_with(kind, lambda draws, d=d: one_heavy_round(array(d), bits, p, draws), laplace_cap=24)
        for d in (first, second)
    )
    claimed = claims(pure_dp(epsilon=6 * UNIT))
    excess = worst_excess(pair, claimed)
    assert excess > 1e-5 if caught else excess <= 0.0


def test_one_threshold_for_the_whole_recursion():
    """Gamma is compared to the same noisy threshold at both levels, and each comparison has its own noise."""
    limits, noises = [], []

    class Recording(SecretDraws):
        def laplace(self, epsilon):
            noises.append(epsilon)
            return super().laplace(epsilon)

        def reaches(self, value, limit, epsilon):
            before = len(noises)
            found = super().reaches(value, limit, epsilon)
            assert noises[before:] == [epsilon]
            limits.append((limit, epsilon))
            return found

    seen = set()
    for key in range(40):
        limits.clear()
        noises.clear()
        tree_log.draw_tree_log(array([5] * 80), 4, TWO, Recording(keyed_source(key)))
        gammas = [limit for limit, epsilon in limits if epsilon == TWO.epsilon_threshold]
        assert len(set(gammas)) == 1
        assert noises[0] == TWO.epsilon_threshold
        assert len(noises) == len(limits) + 1
        seen.add((len(gammas), gammas[0]))
    assert {count for count, _ in seen} == {2}
    assert len({limit for _, limit in seen}) > 1


def test_every_point_is_used_once_and_the_border_alone_decides():
    """Slices are taken away before the next is cut; the last draw sees the ends, not the points between them."""
    points = array([0, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 7, 14, 15])
    seen = {}

    class Middle:
        def visit(self, branch):
            pass

        def laplace(self, _):
            return 0

        def reaches(self, value, limit, _):
            return value >= limit

        def interior(self, codes, size, _):
            seen["depths"] = (np.sort(codes).tolist(), size)
            return 1

        def heaviest(self, weights, *_):
            seen["weights"] = weights.tolist()
            return int(np.argmax(weights))

        def index(self, scores, _):
            seen["scores"] = scores
            return 2

    p = replace(TWO, border=2, deepest=3, base_bits=2, threshold=50)
    found = tree_log.draw_tree_log(points, 4, p, Middle())
    # between the ends the heavy path leads to 4 by [0, 8), [4, 8) and [4, 6); 4, 4 and 5 are the deepest
    assert seen["depths"] == ([1, 1, 1, 1, 1, 2, 2, 2], 4)
    assert seen["weights"] == [3]
    # depth 2: the node [0, 8) and its leaves 0, 7 and 3, between two of the border's four points
    assert seen["scores"] == [1, 2, 2]
    assert found == 3


def test_the_split_of_a_node_is_the_last_leaf_under_its_left_child():
    assert search_tree.heavy_path(array([0, 0, 1, 4, 6]), 3) == (0, 2, [(2, 3), (0, 1), (1, 0)])


def test_a_promise_that_is_not_checked_is_caught():
    """OneHeavyRound on any data: without Gamma's test below it, a tie that turns tells the new point."""
    p = replace(TWO, heavy_threshold=6, promise=9)
    pair = tuple(
        exact_law(lambda draws, points=points: one_heavy_round(array(points), 4, p, draws), RATIO, laplace_cap=5)[:2]
        for points in ([0, 0, 8, 8, 8], [0, 0, 8, 8])
    )
    tail = difference_tail(3 * UNIT, p.promise - p.heavy_threshold)
    assert worst_excess(pair, claims(approximate_dp(epsilon=6 * UNIT, delta=tail))) > 0.5


@pytest.mark.parametrize("short", [0, 1])
def test_a_slice_one_short_of_twice_gamma_is_caught(short):
    """Six points at 0 and six or seven at 2: with 11 deepest points two of them change, not one, and the choice tells.

    The largest noisy weight, on the slices that the shipped embedding cuts, at the price of a swap.
    """
    laws = []
    for points in ([0] * 6 + [2] * 6, [0] * 6 + [2] * 7):
        found = sorted(embedded_parts(points, 2, 12 - short)[0])
        weights = np.array([found.count(0), found.count(2)], dtype=np.int64)
        law, lost, _ = exact_law(lambda d, w=weights: d.heaviest(w, 3 * UNIT, 2), RATIO)
        laws.append((law, lost))
    excess = worst_excess(tuple(laws), claims(approximate_dp(epsilon=6 * UNIT, delta=1e-9)))
    assert excess > 0.1 if short else excess <= 1e-9


def test_the_padding_of_the_last_domain_is_clipped():
    """Depths 1 .. 5 need eight codes; whatever depth comes back, the node is one of the tree's."""
    p = replace(TWO, base_bits=3, border=0, deepest=2, threshold=50, choice=StableChoice(9 * UNIT, 0.4))
    law, _, _ = exact_law(lambda draws: tree_log.draw_tree_log(array([3] * 6), 5, p, draws), RATIO, laplace_cap=2)
    assert {z for z in law if z is not None} <= set(range(32))
    assert np.array([float(m) for m in law.values()]).sum() <= 1.0


def test_what_a_choice_needs_beside_the_printed_one():
    """Lemma 3.2 asks for 427.4 deepest points (n = 1000, failure 0.01, (1, 1e-6)), continuous noise for 18.03."""
    printed = 16 * math.log(4 * 1000 / (0.01 * 1e-6))
    continuous = 1 + math.log(1 / 2e-6) + math.log(1 / 0.02)
    assert (round(printed, 1), round(continuous, 2)) == (427.4, 18.03)
    needed = StableChoice(1.0, 1e-6).threshold + laplace_tail_steps(1.0, 0.01)
    assert continuous - 1 <= needed <= continuous + 2
