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
from dpselect.ordered.interior_points import RisingAndFalling, ScoreRuns, maximize_quasi_concave, quasi_concave_hull
from dpselect.ordered.interior_points.optimisation_reduction import QuasiConcaveByInteriorPoint
from dpselect.ordered.interior_points.quasi_concave import QuasiConcave
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.budgets import budget_at
from tests.ordered.interior_points.quasi_concave_cases import (
    cumulative_distance,
    depth,
    is_quasi_concave,
    neighbouring_scores,
)
from tests.root import ROOT

EXAMPLES = ROOT / "examples"
quasi_concave_scores = st.tuples(
    st.lists(st.integers(0, 4), min_size=0, max_size=8), st.lists(st.integers(0, 4), min_size=1, max_size=8)
).map(lambda parts: [*sorted(parts[0]), *sorted(parts[1], reverse=True)])


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


@pytest.mark.full
def test_every_quasi_concave_pair_keeps_epsilon_in_rational_arithmetic():
    """The exponential mechanism itself: base**score, epsilon = 2 rate, or rate if all scores move one way."""
    base = Fraction(60)
    for one, other in neighbouring_scores(4, 3):
        laws = [[base**s / sum(base**t for t in scores) for s in scores] for scores in (one, other)]
        moves = {y - x for x, y in zip(one, other, strict=True)}
        bound = base if moves <= {0, 1} or moves <= {0, -1} else base**2
        assert all(p <= bound * q for p, q in zip(*laws, strict=True))


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
