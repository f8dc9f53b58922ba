"""TreeLog at two levels: its price term by term, exact laws of the whole recursion, planted defects."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpselect.ordered.interior_points import search_tree, tree_log
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice, laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import one_heavy_round
from dpselect.ordered.interior_points.tree_log_price import (
    difference_tail,
    difference_tail_steps,
    iterated_logarithm,
    printed_parameters,
    tree_log_price,
)
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.randomness import keyed_source
from tests.ordered.enumerated_draws import EnumeratedDraws, Lost, claims, exact_law, noise_tail, worst_excess
from tests.ordered.interior_points.small_trees import (
    RATIO,
    TWO,
    UNIT,
    array,
    embedded_parts,
    law_of,
    multisets,
    random_data,
)

FACTORS = tuple(4**k for k in range(11))


# ---------------------------------------------------------------- the price


def exact_tail(ratio, least):
    """P(N - N' >= least), summed."""
    at_zero = (1 - ratio) / (1 + ratio)
    return float(sum(at_zero * ratio ** abs(n) * noise_tail(ratio, least + n) for n in range(-60, 61)))


def test_the_price_of_two_levels_term_by_term():
    """The statement in `tree_log_price`, written out: one term for each test, choice, draw and bad event."""
    tail = exact_tail(Fraction(1, 8), 3)
    price = tree_log_price(TWO, bits=4)
    # test 6, two levels of border 2 and choice 2; the heavy round at the second level is more expensive than that
    # level's own border and choice with the base
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
    """Planted: the threshold's noise is drawn again for every node."""

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
    """Depths 1 .. 5 need eight codes; no matter what depth comes back, the node is one of the tree's."""
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


# ---------------------------------------------------------------- tails and price


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(4, 5)])
def test_the_difference_of_two_noises(ratio):
    at_zero, reach = (1 - ratio) / (1 + ratio), 400
    masses = {k: float(at_zero * ratio ** abs(k)) for k in range(-reach, reach + 1)}
    for z in (0, 1, 2, 5, 11):
        tail = sum(masses[a] * sum(masses[b] for b in range(-reach, a - z + 1)) for a in range(z - reach, reach + 1))
        assert difference_tail(-math.log(ratio), z) == pytest.approx(tail, rel=1e-9)
        assert difference_tail(-math.log(ratio), z) >= tail * (1 - 1e-12)


def test_the_difference_at_small_epsilon_is_the_continuous_one():
    facts = {1: 0.2759095809, 5: 0.01179140725, 10: 1.361997893e-4, 15: 1.300084862e-6, 20: 1.133634492e-8}
    for u, tail in facts.items():
        assert difference_tail(1e-5, u * 1e5) == pytest.approx(tail, rel=2e-5)
        assert (2 + u) / 4 * math.exp(-u) == pytest.approx(tail, rel=1e-9)
    for mass, u in ((1e-3, 7.80428), (1e-6, 15.27869), (1e-9, 22.53716), (1e-12, 29.70108)):
        steps = difference_tail_steps(1e-4, mass)
        assert steps * 1e-4 == pytest.approx(u, abs=3e-4)
        assert difference_tail(1e-4, steps) <= mass < difference_tail(1e-4, steps - 1)


def test_printed_constants():
    p = printed_parameters(0.99, 1e-3)
    assert p.border == 698
    price = tree_log_price(p, bits=64)
    # two levels: test 2, and twice (border 1, choice 2), base 1
    assert price.epsilon == pytest.approx(9 * 0.99)
    assert price.delta == pytest.approx(4e-3, rel=1e-9)
    bad = difference_tail(1e-6, 25 * math.log(1e6) / 1e-6)
    assert bad == pytest.approx(8.7e-149, rel=0.01)


def test_iterated_logarithms():
    found = [iterated_logarithm(1 << bits) for bits in (0, 1, 2, 3, 4, 16, 20, 32, 64, 65536)]
    assert found == [0, 1, 2, 3, 3, 4, 5, 5, 5, 5]
    assert iterated_logarithm(3) == 2
