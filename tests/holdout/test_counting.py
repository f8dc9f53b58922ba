"""What a holdout certifies and promises: exact laws where outcomes are finite, attacks where they are not."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import rel_entr
from scipy.stats import binom

from dpselect.holdout.counting import divergence, plan_counting
from tests.holdout.counting_cases import boosted, counting


@pytest.mark.parametrize(("questions", "answers"), [(1, 1), (3, 1), (3, 2), (3, 3), (5, 2), (6, 4)])
def test_the_functions_that_can_be_asked_are_counted(questions, answers):
    """Every history of yes and of grid points, with fewer scores than the last one that is given."""
    plan = counting(questions=questions, answers=answers, tolerance=0.5)
    outcomes = ("yes", *range(plan.grid_size))
    functions = sum(
        sum(outcome != "yes" for outcome in history) < answers
        for length in range(questions)
        for history in itertools.product(outcomes, repeat=length)
    )
    bound = math.log(2.0 * functions / plan.failure_probability) / plan.rows
    assert plan.bound == pytest.approx(bound, rel=1e-8)
    assert plan.bound >= bound


@pytest.mark.parametrize("rows", [30, 100, 999])
def test_near_scores_are_shown_as_no_more_points_than_are_counted(rows):
    """Every score whose divergence is within the bound, for many expectations; a point fewer would be too few."""
    plan = counting(rows=rows, questions=5, answers=3, tolerance=1.0 / rows, near=True)
    scores, bound = np.arange(rows + 1) / rows, plan.bound
    shown = np.array([plan.rounded(score) for score in scores])
    counts = []
    for mean in np.linspace(0.0, 1.0, 101):
        near = rel_entr(scores, mean) + rel_entr(1.0 - scores, 1.0 - mean) <= bound
        counts.append(len(set(shown[near])))
    assert plan.points_near(bound) - 3 <= max(counts) <= plan.points_near(bound) < plan.grid_size


@pytest.mark.parametrize(("questions", "answers", "tolerance"), [(1, 1, 0.02), (100, 10, 0.01), (40, 40, 0.02)])
def test_the_bound_of_near_scores_is_one_for_the_points_that_it_leaves(questions, answers, tolerance):
    """log(2 M/beta)/N with as many points as are within that bound: M is counted as in the first test."""
    plan = counting(rows=5000, questions=questions, answers=answers, tolerance=tolerance, near=True)
    points = min(plan.points_near(plan.bound), plan.grid_size)
    functions = sum(math.comb(questions, b + 1) * points**b for b in range(answers))
    assert plan.bound >= math.log(2 * functions / plan.failure_probability) / plan.rows
    assert plan.bound <= counting(**{**asdict(plan), "near": False}).bound
    assert not counting(rows=5000).near, "with noise all points are counted"


@given(st.floats(0.001, 0.5), st.floats(0.0, 1.0))
def test_no_more_points_are_shown_than_are_counted(tolerance, score):
    plan = counting(tolerance=tolerance)
    shown = {plan.rounded(x) for x in np.linspace(0.0, 1.0, 2001)}
    assert len(shown) <= plan.grid_size
    assert abs(plan.rounded(score) - score) <= 0.5 * tolerance + 1e-9


@pytest.mark.theorem(
    "docs/theory/generalisation.md, Theorem 7",
    exact=True,
    loose="a tail bound, and a union over all functions that can be asked",
)
@pytest.mark.parametrize("rows", [20, 50, 200])
@pytest.mark.parametrize("chance", [0.05, 0.25])
def test_one_interval_covers_exactly(rows, chance):
    """All laws of one score, by enumeration: the expectation is in the interval of what is shown."""
    plan = counting(rows=rows, failure_probability=chance, tolerance=1 / rows**0.5)
    hits = np.arange(rows + 1)
    ends = np.array([plan.interval(plan.rounded(hit / rows), None) for hit in hits])
    for mean in np.linspace(0.0, 1.0, 101):
        missed = (mean < ends[:, 0]) | (mean > ends[:, 1])
        assert binom.pmf(hits, rows, mean)[missed].sum() <= chance


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_intervals_are_within_the_stated_error(score, shift):
    plan = counting(rows=500, questions=20, answers=4)
    value = min(max(score + (2 * shift - 1) * plan.tolerance, 0.0), 1.0)
    low, high = plan.interval(value, True)
    assert value - plan.error <= low <= high <= value + plan.error
    assert divergence(min(value + plan.tolerance, 1.0), min(high + 1e-6, 1.0)) >= plan.bound or high == 1.0


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 8", exact=True, loose="a tail bound")
@pytest.mark.parametrize(("first", "other"), [(3, 3), (4, 9), (12, 5)])
def test_the_area_under_the_curve_deviates_no_more_than_a_mean_of_the_rarer_rows(first, other):
    """Exact law for scores of 0 and 1: the area is a function of two binomial counts. Hoeffding 1963, section 5."""
    rare = min(first, other)
    a, b = np.meshgrid(np.arange(first + 1), np.arange(other + 1), indexing="ij")
    areas = (a * (other - b) + 0.5 * (a * b + (first - a) * (other - b))) / (first * other)
    for p, q in itertools.product((0.1, 0.4, 0.7, 0.95), repeat=2):
        mass = binom.pmf(a, first, p) * binom.pmf(b, other, q)
        mean = p * (1 - q) + 0.5 * (p * q + (1 - p) * (1 - q))
        assert np.sum(mass * areas) == pytest.approx(mean)
        far = np.array([divergence(float(area), mean) for area in areas.ravel()]).reshape(areas.shape)
        for exponent in (0.5, 1.0, 2.0, 4.0):
            beyond = rare * far > exponent
            assert mass[beyond & (areas > mean)].sum() <= math.exp(-exponent)
            assert mass[beyond & (areas < mean)].sum() <= math.exp(-exponent)


@pytest.mark.full
def test_boosting_breaks_a_certificate_for_a_hundred_times_the_rows():
    """So that the test above can fail: the numbers of a larger holdout on a smaller one, exact answers."""
    wrong = plan_counting(questions=1000, answers=1000, rows=300_000, failure_probability=0.05)
    assert sum(boosted(wrong, 300, 150, seed) for seed in range(8)) >= 7
