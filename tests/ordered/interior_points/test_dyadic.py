"""The dyadic method: its exact distributions on all neighbouring columns, and its scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.ordered.interior_points.dyadic import DyadicParameters, depth_scores, draw_dyadic
from dpselect.ordered.interior_points.stable_choice import StableChoice
from dpselect.privacy import approximate_dp
from tests.ordered.enumerated_draws import claims, exact_law, worst_excess
from tests.ordered.interior_points.draws_cases import neighbours
from tests.ordered.interior_points.small_trees import array, multisets

UNIT, RATIO = math.log(2.0), Fraction(1, 2)
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
