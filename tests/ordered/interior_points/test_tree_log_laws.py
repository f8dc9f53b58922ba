"""TreeLog: exact audits of the shipped recursion on tiny domains, and planted defects."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.interior_points.search_tree import heavy_path
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice
from dpselect.ordered.interior_points.tree_log import one_heavy_round
from dpselect.ordered.interior_points.tree_log_price import difference_tail, tree_log_price
from dpselect.ordered.slices.price import swap_of
from dpselect.privacy import approximate_dp
from tests.ordered.enumerated_draws import claims, exact_law, worst_excess
from tests.ordered.interior_points.small_trees import (
    RATIO,
    SMALL,
    UNIT,
    WIDE,
    apart,
    array,
    cumulative_distance,
    embedding,
    law_of,
    multisets,
    random_data,
)


def test_the_audited_price_says_something():
    price = tree_log_price(SMALL, bits=4)
    assert price.epsilon < math.log(WIDE[-1])
    assert price.delta < 0.05


@pytest.mark.cases(1)
@pytest.mark.theorem("Cohen et al. 2022, Theorem 3.8", exact=True, loose="the worst case of every step is added up")
@pytest.mark.parametrize(("kind", "pairs"), [("fixed sizes", 1), ("fixed sizes", 8), ("noisy sizes", 1)])
def test_exact_laws_of_tree_log(kind, pairs):
    """Random neighbours around the sizes where everything happens; base, heavy round and failed choice are reached."""
    parameters = SMALL if kind == "fixed sizes" else replace(SMALL, slice_epsilon=UNIT, border=1)
    # one extra row or none: the price holds for any sizes that are drawn without the data
    caps = {"laplace_cap": 5 if pairs > 1 else 3} if kind == "fixed sizes" else {"geometric_cap": 1, "laplace_cap": 2}
    price = tree_log_price(parameters, bits=4)
    claimed = claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), WIDE)
    rng, seen = random.Random(5), set()
    for _ in range(pairs):
        points = random_data(rng, rng.choice((3, 12, 24, 30)))
        extra = rng.randrange(16)
        pair, places = [], set()
        for data in ([*points, extra], points):
            law, lost, visited = law_of(data, parameters, **caps)
            assert sum(law.values()) + lost == 1
            pair.append((law, lost))
            places |= visited
        seen |= places
        assert worst_excess(tuple(pair), claimed, WIDE) <= 0.0
    if pairs > 1:
        assert seen >= {"level 1", "base case", "one heavy round", "heavy node", "heavy leaf", "no stable choice"}


CUMULATIVE = replace(
    SMALL,
    choice=SupportChoice(4 * UNIT, 8 * UNIT, 0.01, 0.001, 32),
    deepest=32,
    threshold=9,
    promise=5,
)


@pytest.mark.cases(1)
@pytest.mark.theorem("Cohen et al. 2022, Theorem B.1", exact=True, loose="the worst case of every step is added up")
@pytest.mark.parametrize("count", [6, 44, pytest.param(50, marks=pytest.mark.slow)])
def test_exact_laws_of_the_cumulative_algorithm(count):
    """Algorithm 8 where all points may move: random pairs at cumulative distance one, at the corrected price."""
    price = tree_log_price(CUMULATIVE, bits=4, distance=1)
    factors = tuple(Fraction(2) ** k for k in range(0, 40, 3))
    assert price.epsilon < math.log(factors[-1])
    assert price.delta < 0.07
    rng = random.Random(count)
    first, second = [], []
    while cumulative_distance(first, second, 16) != 1:
        first = sorted(random_data(rng, count))
        second = sorted(min(15, max(0, x + rng.choice((-1, 0, 0, 0, 1)))) for x in first)
    pair = [law_of(points, CUMULATIVE, laplace_cap=14 if count >= 44 else 4) for points in (first, second)]
    claimed = claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), factors)
    assert worst_excess(tuple(part[:2] for part in pair), claimed, factors) <= 0.0
    if count >= 44:
        assert pair[0][2] >= {"level 1", "base case", "one heavy round", "heavy node"}


AMPLE = replace(SMALL, choice=StableChoice(UNIT, 1e-6), promise=7, threshold=13, deepest=40)
"""Wider margins: the price of two steps still says something."""


@pytest.mark.full
def test_exact_laws_when_a_point_is_replaced():
    """Two steps of the price of one added point, (2 epsilon, (1 + exp(epsilon)) delta)."""
    swapped = swap_of(approximate_dp(epsilon=(p := tree_log_price(AMPLE, bits=4)).epsilon, delta=p.delta))
    factors = tuple(Fraction(2) ** k for k in range(0, 28, 3))
    assert swapped.failure < 0.3
    assert swapped.pure_epsilon < math.log(factors[-1])
    rng, seen = random.Random(10), set()
    for count in (50, 56):
        points = sorted(random_data(rng, count))
        pair = [law_of(data, AMPLE, laplace_cap=12) for data in (points, [rng.randrange(16), *points[1:]])]
        seen |= pair[0][2]
        assert worst_excess(tuple(part[:2] for part in pair), claims(swapped, factors), factors) <= 0.0
    assert "level 1" in seen


@pytest.mark.cases(1)
@pytest.mark.parametrize("bits", [2, 3])
def test_exact_laws_of_the_heavy_round(bits):
    """All small multisets that keep the promise, with every point that can be added: 2 epsilon and the tail."""
    p = replace(SMALL, heavy_threshold=1, promise=2)
    laws = {}
    for size in (4, 5, 6) if bits == 2 else (4, 5):
        for points in multisets(1 << bits, size):
            if points[0] == 0 and heavy_path(array(points), bits)[1] >= p.promise:
                laws[points] = exact_law(
                    lambda draws, points=points: one_heavy_round(array(points), bits, p, draws), RATIO, laplace_cap=4
                )[:2]
    claimed = claims(approximate_dp(epsilon=6 * UNIT, delta=difference_tail(3 * UNIT, p.promise - p.heavy_threshold)))
    checked, worst = 0, -math.inf
    for points in laws:
        for extra in range(1 << bits):
            larger = tuple(sorted((*points, extra)))
            if larger in laws:
                checked += 1
                worst = max(worst, worst_excess((laws[larger], laws[points]), claimed))
    assert checked > 20
    assert worst <= 0.0


def test_without_its_promise_the_heavy_round_is_not_private():
    """Two tied children: one point turns the path, and nothing above it covers that."""
    p = replace(SMALL, heavy_threshold=6, promise=9)
    pair = tuple(
        exact_law(lambda draws, data=data: one_heavy_round(array(data), 4, p, draws), RATIO, laplace_cap=5)[:2]
        for data in ([0, 0, 15, 15, 15], [0, 0, 15, 15])
    )
    claimed = claims(approximate_dp(epsilon=6 * UNIT, delta=difference_tail(3 * UNIT, p.promise - p.heavy_threshold)))
    assert worst_excess(pair, claimed) > 0.5


def small_claim():
    price = tree_log_price(SMALL, bits=4)
    return claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), WIDE)


class PathNode:
    """Takes the heaviest node without noise: among the deepest points that is the path's."""

    def choose(self, weights, *, level, draws):
        return int(np.argmax(weights)) if len(weights) else None


@pytest.mark.full
def test_the_path_in_place_of_a_private_node_is_caught():
    """The remnant "v = the q-th vertex of the path": between two even nodes one point decides where it leads."""
    data = [0] * 5 + [2] * 6, [0] * 5 + [2] * 5
    for choice, caught in ((SMALL.choice, False), (PathNode(), True)):
        pair = tuple(law_of(points, replace(SMALL, border=0, choice=choice), laplace_cap=8)[:2] for points in data)
        excess = worst_excess(pair, small_claim(), WIDE)
        assert excess > 0.05 if caught else excess <= 0.0


def test_labels_kept_among_the_deepest_points_are_caught():
    """Chosen by (label, node) the slices of neighbours are far apart: a turned path renames all labels."""
    first, second = [0, 0, 0, 8, 8, 8, 8], [0, 0, 0, 8, 8, 8]
    taken = 7
    with_labels = [embedding(d, 4)[2][:taken] for d in (first, second)]
    assert apart([x for _, x in with_labels[0]], [x for _, x in with_labels[1]]) == (1, 0)
    assert min(apart(*with_labels)) >= 6
    # by node alone every count moves by one at most; by label all of them do, and the choice gives it away
    choice = StableChoice(3 * UNIT, 1e-2)
    laws = []
    for found in with_labels:
        weights = Counter(found)
        keys = sorted({*with_labels[0], *with_labels[1]})
        law, lost, _ = exact_law(
            lambda draws, weights=weights, keys=keys: (
                (place := choice.choose(np.array([weights[k] for k in keys if weights[k]]), level=1, draws=draws))
                is None
                or [k for k in keys if weights[k]][place]
            ),
            RATIO,
        )
        laws.append((law, lost))
    claimed = claims(approximate_dp(epsilon=6 * UNIT, delta=2e-2), WIDE)
    assert worst_excess(tuple(laws), claimed, WIDE) > 0.3


@pytest.mark.full
def test_a_slice_too_small_for_gamma_is_caught():
    """The embedding without the test of Gamma: a turned path changes the deepest points altogether."""
    data = [0] * 10 + [8] * 11, [0] * 10 + [8] * 10
    broken = replace(SMALL, border=0, threshold=100, deepest=2, choice=StableChoice(3 * UNIT, 0.2))
    for parameters, caught in ((SMALL, False), (broken, True)):
        pair = tuple(law_of(points, parameters, laplace_cap=8)[:2] for points in data)
        excess = worst_excess(pair, small_claim(), WIDE)
        assert excess > 0.1 if caught else excess <= 0.0


def test_threshold_noise_drawn_again_is_caught():
    """At cumulative distance every sibling may move by 2d: one noise costs 6 d epsilon, fresh ones ever more."""
    ratio, limit, noises = 0.5, 6, range(-60, 61)
    mass = {n: (1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in noises}

    def quiet(k):
        return 1 - ratio**k / (1 + ratio) if k > 0 else ratio ** (1 - k) / (1 + ratio)

    def never_fires(weights, redraw):
        if redraw:
            return math.prod(sum(mass[n] * quiet(limit + n - w) for n in noises) for w in weights)
        return sum(mass[n] * math.prod(quiet(limit + n - w) for w in weights) for n in noises)

    # moved boundaries: what one node gains its neighbour on the path loses
    first, second = [6, 0] * 16, [4, 2] * 16
    losses = [math.log(never_fires(second, redraw) / never_fires(first, redraw)) for redraw in (False, True)]
    assert losses[0] <= 6 * math.log(2) < losses[1]
