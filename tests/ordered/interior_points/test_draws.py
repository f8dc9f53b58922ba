"""Interior points: exact laws of their methods, audited over all neighbouring columns."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.dyadic import DyadicParameters, depth_scores, draw_dyadic
from dpselect.ordered.interior_points.search_tree import draw_binary_search, interior_scores
from dpselect.ordered.interior_points.stable_choice import StableChoice
from dpselect.privacy import Adjacency, approximate_dp, pure_dp
from dpselect.randomness import keyed_source
from tests.ordered.enumerated_draws import claims, exact_law, worst_excess
from tests.ordered.interior_points.small_trees import array, multisets

UNIT, RATIO = math.log(2.0), Fraction(1, 2)
ADD, SWAP = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE

# ---------------------------------------------------------------- exact audits


def neighbours(laws, size, *, replace):
    for points in laws:
        for extra in range(size):
            larger = tuple(sorted((*points, extra)))
            if not replace and larger in laws:
                yield larger, points
            if replace:
                for gone in range(len(points)):
                    other = tuple(sorted((*points[:gone], extra, *points[gone + 1 :])))
                    if other > points and other in laws:
                        yield other, points


@pytest.mark.full
def test_exact_laws_of_the_exponential_mechanism():
    laws = {}
    for count in range(4):
        for points in multisets(5, count):
            laws[points] = exact_law(lambda d, p=points: d.interior(array(p), 5, UNIT), RATIO)[:2]
    for replace, epsilon in ((False, UNIT), (True, 2 * UNIT)):
        claimed = claims(pure_dp(epsilon=epsilon))
        pairs = list(neighbours(laws, 5, replace=replace))
        assert len(pairs) > 100
        assert max(worst_excess((laws[a], laws[b]), claimed) for a, b in pairs) <= 1e-12
    # one unit less is not enough: the rate is not doubled for nothing
    pairs = list(neighbours(laws, 5, replace=True))
    claimed = claims(pure_dp(epsilon=UNIT))
    assert max(worst_excess((laws[a], laws[b]), claimed) for a, b in pairs) > 0.01


DYADIC = DyadicParameters(epsilon_depth=UNIT, choice=StableChoice(UNIT, 0.05), epsilon_point=UNIT)


def dyadic_laws(parameters, bits, most):
    laws, seen = {}, set()
    for count in range(most + 1):
        for points in multisets(1 << bits, count):
            law, lost, places = exact_law(lambda d, p=points: draw_dyadic(array(p), bits, parameters, d), RATIO)
            assert sum(law.values()) + lost == 1
            laws[points] = law, lost
            seen |= places
    return laws, seen


@pytest.mark.full
def test_exact_laws_of_the_dyadic_method():
    laws, seen = dyadic_laws(DYADIC, 2, 4)
    assert "no stable choice" in seen
    for replace, epsilon, delta in ((False, 3 * UNIT, 0.05), (True, 6 * UNIT, 0.1)):
        claimed = claims(approximate_dp(epsilon=epsilon, delta=delta))
        pairs = list(neighbours(laws, 4, replace=replace))
        assert len(pairs) > 100
        assert max(worst_excess((laws[a], laws[b]), claimed) for a, b in pairs) <= 1e-9


def test_an_unprivate_node_is_caught():
    class Heaviest(StableChoice):
        def choose(self, weights, *, level, draws):
            return int(np.argmax(weights)) if len(weights) else None

    broken = DyadicParameters(epsilon_depth=UNIT, choice=Heaviest(UNIT, 0.05), epsilon_point=UNIT)
    laws = [
        exact_law(lambda d, p=p: draw_dyadic(array(p), 4, broken, d), RATIO)[:2]
        for p in ([0] * 6 + [8] * 7, [0] * 6 + [8] * 6)
    ]
    claimed = claims(approximate_dp(epsilon=3 * UNIT, delta=0.05))
    assert worst_excess(tuple(laws), claimed) > 0.1


def literal_depth_scores(points, bits):
    heaviest = []
    for j in range(bits + 1):
        prefixes = [x >> (bits - j) for x in points]
        heaviest.append(max((prefixes.count(p) for p in prefixes), default=0))
    heaviest.append(0)
    return [min(heaviest[j], len(points) - heaviest[j + 1]) for j in range(bits + 1)]


@given(st.integers(1, 70), st.lists(st.integers(0, 2**70 - 1), max_size=25), st.integers(0, 2**70 - 1))
def test_depth_scores(bits, values, extra):
    points = sorted(v >> (70 - bits) for v in values)
    codes = points if bits > 64 else array(points)
    scores = depth_scores(codes, bits)
    assert scores.tolist() == literal_depth_scores(points, bits)
    assert 2 * max(scores) >= len(points)
    more = sorted([*points, extra >> (70 - bits)])
    assert set((depth_scores(more if bits > 64 else array(more), bits) - scores).tolist()) <= {0, 1}


def test_scores_under_insertion():
    """min(#{x <= z}, #{x >= z}) rises by 0 or 1 at every z, and is at least half at its best."""
    for count in range(6):
        for points in multisets(4, count):
            before = interior_scores(array(points), range(4))
            assert 2 * max(before) >= count
            for extra in range(4):
                after = interior_scores(array([*points, extra]), range(4))
                assert {b - a for a, b in zip(before, after, strict=True)} <= {0, 1}


def test_the_binary_search_is_one_gaussian_mechanism():
    """All answers together have noise_multiplier at sensitivity one: the deviation of each, and how far each moves."""
    seen = []

    class Watched(SecretDraws):
        def majority(self, difference, deviation):
            seen.append((difference, deviation))
            return len(seen) % 3 > 0

    runs = []
    for points in ([1, 4, 4, 9], [1, 4, 4, 9, 12]):
        seen.clear()
        draw_binary_search(array(points), 4, 5.0, Watched(keyed_source(1)))
        runs.append(list(seen))
    assert len(runs[0]) == 4
    assert all(deviation >= 10.0 for _, deviation in runs[0])
    assert all(abs(a - b) == 1 for (a, _), (b, _) in zip(*runs, strict=True))


def test_combinations_are_many():
    """The audits above compare what they say: all neighbours of all small data sets."""
    laws = {p: None for count in range(4) for p in multisets(3, count)}
    assert len(list(neighbours(laws, 3, replace=False))) == sum(math.comb(n + 2, 2) * 3 for n in range(3))
    assert all(len(a) == len(b) for a, b in itertools.islice(neighbours(laws, 3, replace=True), 50))
