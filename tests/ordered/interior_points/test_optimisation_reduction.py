"""The reduction of quasi-concave optimisation to interior points: distances, rates, errors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from dpselect.errors import ArgumentError
from dpselect.ordered.interior_points import ScoreRuns, maximize_quasi_concave, quasi_concave_hull
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.optimisation_reduction import QuasiConcaveByInteriorPoint, interior_point_instance
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.interior_points.quasi_concave_cases import (
    cumulative_distance,
    depth,
    neighbouring_scores,
)

quasi_concave_scores = st.tuples(
    st.lists(st.integers(0, 4), min_size=0, max_size=8), st.lists(st.integers(0, 4), min_size=1, max_size=8)
).map(lambda parts: [*sorted(parts[0]), *sorted(parts[1], reverse=True)])


@pytest.mark.theorem("Cohen et al. 2022, Theorem 4.2", exact=True)
@given(scores=quasi_concave_scores, error=st.integers(1, 6), moves=st.data())
def test_neighbouring_scores_give_instances_at_cumulative_distance_two(scores, error, moves):
    n = len(scores)
    instance = interior_point_instance(range(n), scores, error)
    assert len(instance) == error
    for z in range(instance[0], instance[-1] + 1):
        assert scores[z] > max(scores) - error
    # the same instance from f'(z) - f'(z-1), as the paper has it
    raised = [max(0, score - max(scores) + error) for score in scores]
    steps = [max(0, b - a) for a, b in itertools.pairwise([0, *raised])]
    assert instance == [z for z in range(n) for _ in range(steps[z])]
    other = [score + moves.draw(st.integers(-1, 1)) for score in scores]
    moved = interior_point_instance(range(n), quasi_concave_hull(other).astype(int), error)
    # the hull of neighbours is a neighbour
    assert cumulative_distance(instance, moved, n) <= 2


@pytest.mark.theorem("Cohen et al. 2022, Theorem 4.2", sharp=True)
def test_the_distance_two_is_attained():
    one, other = (interior_point_instance(range(2), scores, 4) for scores in ([3, 4], [2, 5]))
    assert (one, other) == ([0, 0, 0, 1], [0, 1, 1, 1])
    assert cumulative_distance(one, other, 2) == 2


def instance_law(scores, error, base):
    instance = interior_point_instance(range(len(scores)), scores, error)
    weights = [base ** depth(instance, z) for z in range(len(scores))]
    return [weight / sum(weights) for weight in weights]


def test_the_rate_of_the_reduction_in_rational_arithmetic():
    """epsilon = 4 rate: exp(epsilon) = base**4. A rate for distance one (epsilon/2) would claim base**2 and break."""
    base, worst = Fraction(60), Fraction(0)
    for one, other in neighbouring_scores(4, 3):
        laws = instance_law(one, 4, base), instance_law(other, 4, base)
        worst = max([worst, *(p / q for p, q in zip(*laws, strict=True))])
    assert base**2 < worst <= base**4


def test_the_reduction_is_drawn_at_that_rate(monkeypatch):
    asked = []

    def spy(_, points, size, rate):
        asked.append((set(points), size, rate))
        return points[0]

    monkeypatch.setattr(SecretDraws, "interior", spy)
    release = QuasiConcaveByInteriorPoint(epsilon=2.0)(ScoreRuns([5, 8, 9], [0, 300, 2], upper=20))
    assert asked == [({3}, 16, Fraction(2, 4))]
    assert release.value == 8


def test_errors_from_the_derivations():
    # exponential mechanism on the score itself: 2 log(T/b)/epsilon
    for bits, error in ((16, 31), (64, 98), (1024, 1429)):
        assert (
            math.floor(2 * (bits * math.log(2) + math.log(100))) == error
            or math.ceil(2 * (bits * math.log(2) + math.log(100))) == error
        )
        found = QuasiConcaveByInteriorPoint(places=2**bits, epsilon=1.0, failure_probability=0.01).error
        assert found == math.ceil(8 * (bits * math.log(2) + math.log(100)))
    assert QuasiConcaveByInteriorPoint(places=1, epsilon=1.0, failure_probability=0.5).error == 6


@pytest.mark.statistical
def test_the_reduction_is_within_its_error_and_the_direct_way_within_a_quarter():
    """200 draws that may fail with probability 0.05 each: more than 28 failures have probability 1e-6 if the claim
    holds, and at most 28 have probability 2e-4 if a draw fails with probability 0.25."""
    error = QuasiConcaveByInteriorPoint(places=2**16, epsilon=1.0).error
    score = [0, error + 200, 0]
    narrow = score[1] - error
    starts, scores = [0, 3000, 3010, 3020, 9000], [0, narrow, score[1], narrow, 0]
    source = keyed_source(55)
    runs = ScoreRuns(starts, scores, upper=2**16 - 1)
    direct = [maximize_quasi_concave(runs, epsilon=1.0, random=source).value for _ in range(200)]
    reduced = [QuasiConcaveByInteriorPoint(epsilon=1.0)(runs, random=source).value for _ in range(200)]
    for found in (direct, reduced):
        assert sum(not 3010 <= z < 3020 for z in found) <= 28
    # the direct way with a quarter of the gap
    gap = math.ceil(2 * math.log(2**16 / 0.05))
    assert gap <= error / 4 + 1
    runs = ScoreRuns([0, 3000, 3001], [0, gap, 0], upper=2**16 - 1)
    near = [maximize_quasi_concave(runs, epsilon=1.0, random=source).value for _ in range(200)]
    assert sum(z != 3000 for z in near) <= 28


def test_the_cumulative_mechanism_as_the_finder():
    # the derivation's table of tuned sizes (epsilon 1, delta 1e-6, failure 0.01), which ours may undercut a little
    for bits, error in ((16, 4560), (64, 4710), (1024, 4980)):
        options = {"epsilon": 1.0, "delta": 1e-6, "failure_probability": 0.01, "method": "cumulative"}
        assert 0.97 * error <= QuasiConcaveByInteriorPoint(places=2**bits, **options).error <= error
    for adjacency in Adjacency:
        options = {"epsilon": 1.0, "delta": 1e-6, "method": "cumulative", "adjacency": adjacency}
        error = QuasiConcaveByInteriorPoint(places=2**64, epsilon=1.0, delta=1e-6, method="cumulative").error
        starts, scores = [7, 2**40, 2**40 + 50, 2**41], [0, 10, 10 + error, 5]
        # fails with probability 0.05
        release = QuasiConcaveByInteriorPoint(**options)(
            ScoreRuns(starts, scores, upper=2**64 + 6), random=keyed_source(59)
        )
        assert 2**40 + 50 <= release.value < 2**41
        assert release.guarantee.adjacency is adjacency
        assert 0.9 < release.guarantee.epsilon(delta=1e-6) <= 1.0
    for wrong in ({"delta": 0.0}, {"delta": 0.2}, {"method": "guess"}):
        arguments = {"epsilon": 1.0, "delta": 1e-6, "method": "cumulative"} | wrong
        with pytest.raises(ArgumentError, match=r"delta|method"):
            QuasiConcaveByInteriorPoint(places=100, **arguments).error
