"""Quasi-concave scores: the law of the optimiser, how little it looks at, and the reductions of Cohen et al. (2022)."""

from __future__ import annotations

import importlib.util
import itertools
import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.ordered import (
    QuasiConcaveByInteriorPoint,
    RisingAndFalling,
    ScoreRuns,
    maximize_quasi_concave,
    quasi_concave_hull,
)
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.optimisation_reduction import interior_point_instance
from dpselect.ordered.interior_points.quasi_concave import QuasiConcave
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.budgets import budget_at
from tests.root import ROOT

EXAMPLES = ROOT / "examples"

quasi_concave_scores = st.tuples(
    st.lists(st.integers(0, 4), min_size=0, max_size=8), st.lists(st.integers(0, 4), min_size=1, max_size=8)
).map(lambda parts: [*sorted(parts[0]), *sorted(parts[1], reverse=True)])


def depth(points, z):
    return min(sum(p <= z for p in points), sum(p >= z for p in points))


def cumulative_distance(one, other, places):
    return max(abs(sum(x <= z for x in one) - sum(x <= z for x in other)) for z in range(places))


def is_quasi_concave(scores):
    return scores == quasi_concave_hull(scores).tolist()


def check_law(found, weights):
    # chi-square at 1e-6: a sound sampler fails so rarely; a probability that is off by 0.12 fails with probability
    # above 1 - 1e-3 for 1500 draws, one that is off by 0.25 for 400
    expected = np.array(weights, dtype=float) / math.fsum(weights) * len(found)
    observed = np.bincount(found, minlength=len(expected))
    kept = expected >= 5
    assert np.all(observed[~kept] <= 40)
    statistic = np.sum((observed[kept] - expected[kept]) ** 2 / expected[kept])
    assert stats.chi2.sf(statistic, max(kept.sum() - 1, 1)) > 1e-6


# --- the optimiser


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(
    "scores",
    [
        [0.0, 1.0, 1.0, 2.5, 4.0, 4.0, 3.0, 0.0],
        [3.0, 3.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0],
        [2.0] * 8,
        [-5.0, 6.0, -5.0, -6.0, -7.0, -7.0, -7.0, -8.0],
    ],
)
def test_places_are_drawn_by_their_scores_however_the_peak_is_known(scores):
    weights = [math.exp(0.5 * score) for score in scores]
    rising = np.maximum.accumulate(scores)
    falling = np.maximum.accumulate(scores[::-1])[::-1]
    two = RisingAndFalling(lambda z: rising[z - 7], lambda z: falling[z - 7])
    source, options = keyed_source(51), {"lower": 7, "upper": 14, "epsilon": 1.0}
    check_law([maximize_quasi_concave(two, random=source, **options).value - 7 for _ in range(1500)], weights)
    for peak in {int(np.argmax(scores)), 7 - int(np.argmax(scores[::-1]))}:
        found = [
            maximize_quasi_concave(lambda z: scores[z - 7], peak=peak + 7, random=source, **options).value - 7
            for _ in range(1500)
        ]
        check_law(found, weights)


@pytest.mark.full
@pytest.mark.statistical
def test_scores_on_runs_and_places_that_are_all_looked_at():
    source, scores = keyed_source(52), [0.0, 3.0, 1.0]
    found = [
        maximize_quasi_concave(ScoreRuns([0, 2, 3], scores, upper=8), epsilon=1.0, monotonic=True, random=source).value
        for _ in range(1500)
    ]
    every = [0.0, 0.0, 3.0, *[1.0] * 6]
    check_law(found, [math.exp(score) for score in every])
    other = [  # not quasi-concave, no peak, and sensitivity two
        maximize_quasi_concave(
            [4, 0, 4].__getitem__, lower=0, upper=2, epsilon=1.0, sensitivity=2.0, random=source
        ).value
        for _ in range(1500)
    ]
    check_law(other, [math.e, 1.0, math.e])


@pytest.mark.parametrize("bits", [16, 64, 256])
def test_few_evaluations_and_a_small_error_on_large_sets(bits):
    rows = sorted(np.random.default_rng(53).integers(0, 2**15, 400).tolist())
    rows = [row << (bits - 15) for row in rows]
    count, source, looks = 0, keyed_source(53), []

    def rising(z):
        nonlocal count
        count += 1
        return bisect_right(rows, z)

    score = RisingAndFalling(rising, lambda z: len(rows) - bisect_left(rows, z))
    error = 2 * math.log(2**bits / 0.001)
    for _ in range(60):
        count = 0
        found = maximize_quasi_concave(score, lower=0, upper=2**bits - 1, epsilon=1.0, random=source).value
        looks.append(count)
        # fails with probability 0.001 a draw, and the score of this data is never that far off in 60 of them
        assert score(found) > 200 - error
    # the bisection takes `bits`, a draw up to 2 log(2) as many again: 1.05 to 2.6 in all measured
    assert np.mean(looks) < 4 * bits
    assert max(looks) < 7 * bits


@pytest.mark.full
@pytest.mark.statistical
def test_the_law_on_a_set_too_large_to_write_down():
    # one place of score 46, its 2**63 neighbours on the left 2.5 and the rest of 2**64 at 0, at rate 1
    top = 2**63

    def score(z):
        return 46.0 if z == top else 2.5 if z < top else 0.0

    source = keyed_source(54)
    found = [
        maximize_quasi_concave(score, lower=0, upper=2**64 - 1, epsilon=2.0, peak=top, random=source).value
        for _ in range(400)
    ]
    weights = [2.0**63 * math.exp(2.5), math.exp(46.0), 2.0**63 - 1]
    check_law([0 if z < top else 1 if z == top else 2 for z in found], weights)
    left = [z >> 61 for z in found if z < top]
    check_law(left, [1, 1, 1, 1])


@given(scores=quasi_concave_scores)
def test_the_peak_is_found_by_bisection(scores):
    rising, falling = np.maximum.accumulate(scores), np.maximum.accumulate(scores[::-1])[::-1]
    two = RisingAndFalling(lambda z: rising[z], lambda z: falling[z])
    assert [two(z) for z in range(len(scores))] == scores
    assert scores[two.find_peak(0, len(scores) - 1)] == max(scores)


@given(scores=st.lists(st.integers(-5, 5), min_size=1, max_size=8), moves=st.data())
def test_the_hull_is_the_least_quasi_concave_score_above_and_keeps_the_sensitivity(scores, moves):
    hull = quasi_concave_hull(scores)
    assert np.all(hull >= scores)
    n = len(scores)
    for a, b, c in itertools.combinations(range(n), 3):
        assert hull[b] >= min(hull[a], hull[c])
    # every quasi-concave score above is at least min(largest on the left, largest on the right) at every place
    assert all(hull[z] == min(max(scores[: z + 1]), max(scores[z:])) for z in range(n))
    other = [score + moves.draw(st.integers(-1, 1)) for score in scores]
    assert np.max(np.abs(quasi_concave_hull(other) - hull)) <= 1


def test_guarantees():
    for adjacency in Adjacency:
        g = QuasiConcave(epsilon=0.5, adjacency=adjacency).guarantee
        assert (g.pure_epsilon, g.adjacency) == (0.5, adjacency)
        for release in (
            maximize_quasi_concave(lambda z: -z, lower=0, upper=9, epsilon=0.5, adjacency=adjacency),
            maximize_quasi_concave(ScoreRuns([0, 3], [1.0, 2.0], upper=9), epsilon=0.5, adjacency=adjacency),
            QuasiConcaveByInteriorPoint(epsilon=0.5, adjacency=adjacency)(ScoreRuns([0, 3], [1, 2], upper=9)),
        ):
            assert (release.guarantee.pure_epsilon, release.guarantee.adjacency) == (0.5, adjacency)
            assert not release.replayable


def test_scores_that_are_no_numbers_do_not_stop_it():
    for odd in (math.nan, math.inf, -math.inf):
        release = maximize_quasi_concave(lambda z, odd=odd: odd if z == 3 else 0.0, lower=0, upper=9, epsilon=1.0)
        assert release.value in range(10)
        assert (release.value == 3) == (odd == math.inf)
        assert maximize_quasi_concave(ScoreRuns([0, 1], [odd, 0.0], upper=1), epsilon=1.0).value == (
            0 if odd == math.inf else 1
        )


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"lower": 5, "upper": 4}, ArgumentError, "lower"),
        ({"lower": 0.5}, ArgumentError, "lower"),
        ({"epsilon": 0.0}, ArgumentError, "epsilon"),
        ({"sensitivity": -1.0}, ArgumentError, "sensitivity"),
        ({"monotonic": "yes"}, ArgumentError, "monotonic"),
        ({"peak": 10}, ArgumentError, "peak"),
        ({"upper": 2**20}, ArgumentError, "peak"),
        ({"score": [1, 2]}, TypeError, "score"),
        ({"random": 3}, TypeError, "random"),
    ],
)
def test_bad_arguments(wrong, error, name):
    arguments = {"score": float, "lower": 0, "upper": 9, "epsilon": 1.0} | wrong
    with pytest.raises(error, match=name):
        maximize_quasi_concave(arguments.pop("score"), **arguments)


@pytest.mark.parametrize("starts", [[], [0, 0], [3, 2], [0, 10]])
def test_bad_runs(starts):
    with pytest.raises(ArgumentError, match="starts"):
        ScoreRuns(starts, [1] * len(starts), upper=9)
    with pytest.raises(ArgumentError, match="score"):
        ScoreRuns([0, 1], [1], upper=9)


# --- the reduction to interior points (proof of Theorem 4.2)


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


def neighbouring_scores(places, most):
    every = [list(s) for s in itertools.product(range(most + 1), repeat=places) if is_quasi_concave(list(s))]
    return [(a, b) for a in every for b in every if max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 1]


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


@pytest.mark.full
def test_every_quasi_concave_pair_keeps_epsilon_in_rational_arithmetic():
    """The exponential mechanism itself: base**score, epsilon = 2 rate, or rate if all scores move one way."""
    base = Fraction(60)
    for one, other in neighbouring_scores(4, 3):
        laws = [[base**s / sum(base**t for t in scores) for s in scores] for scores in (one, other)]
        moves = {y - x for x, y in zip(one, other, strict=True)}
        bound = base if moves <= {0, 1} or moves <= {0, -1} else base**2
        assert all(p <= bound * q for p, q in zip(*laws, strict=True))


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


# --- the worked use


def test_halfspace_1d(capsys):
    specification = importlib.util.spec_from_file_location("halfspace_1d", EXAMPLES / "halfspace_1d.py")
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    release = example.main(keyed_source(60))
    # 100,000 nanograms hold one row on average; 52 rows are claimed with probability 0.99
    assert abs(release.value - example.TRUE_LIMIT) < 100 * 100_000
    assert release.guarantee.pure_epsilon == example.EPSILON
    printed = capsys.readouterr().out
    assert f"{release.value:,}" in printed
    assert "fewer than 52 rows" in printed
    score = example.score_of(example.synthetic_patients(rows=200))
    asked = [score(limit) for limit in range(0, example.DOSES, example.DOSES // 50)]
    assert is_quasi_concave([float(s) for s in asked])
    assert score(example.TRUE_LIMIT) == 0


# --- the other direction, and the lower bound


def test_an_optimiser_finds_interior_points():
    """min(#{x <= z}, #{x >= z}) is quasi-concave, moves by the cumulative distance at most, and is at least n + 1 at
    its best on 2n + 1 points: with error n the optimiser's place is interior."""
    multisets = list(itertools.combinations_with_replacement(range(4), 3))
    for one in multisets:
        scores = [depth(one, z) for z in range(4)]
        assert is_quasi_concave([float(s) for s in scores])
        assert max(scores) >= 2
        for other in multisets:
            moved = max(abs(s - depth(other, z)) for z, s in enumerate(scores))
            assert moved <= cumulative_distance(one, other, 4)


def test_cumulative_distances_of_singletons_and_of_replaced_points():
    assert all(cumulative_distance([a], [b], 9) <= 1 for a in range(9) for b in range(9))
    assert cumulative_distance([2, 4, 6, 8], [1, 3, 5, 7], 9) == 1
    for one in itertools.combinations_with_replacement(range(4), 3):
        for place in range(3):
            for x in range(4):
                assert cumulative_distance(one, (*one[:place], x, *one[place + 1 :]), 4) <= 1


def test_a_granularity_is_refused_before_anything_is_paid(tmp_path):
    budget = budget_at(tmp_path / "budget.db")
    with pytest.raises(ArgumentError, match="granularity: places are integers"):
        maximize_quasi_concave(
            RisingAndFalling(lambda z: z, lambda z: 9 - z),
            lower=0,
            upper=10,
            granularity=2,
            epsilon=1.0,
            spender=budget,
        )
    assert budget.spent().epsilon == 0


@pytest.mark.parametrize("scores", [np.zeros((2, 3)), [[1, 2], [3, 4]], 5.0])
def test_the_hull_is_of_one_number_for_each_place(scores):
    with pytest.raises(ArgumentError, match="one number for each place"):
        quasi_concave_hull(scores)
