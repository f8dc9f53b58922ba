"""Runs of equal scores are drawn by their length and score."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.ordered.order_statistics.equal_scores import draw_from_runs, weight_at_least
from dpselect.randomness import keyed_source
from tests.ordered.labelled_rows.thresholds_cases import (
    check_law,
)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1, 2**80])
def test_runs_are_drawn_by_length_and_score(scale):
    lengths = [5 * scale, 0, scale, 7 * scale, 20 * scale, 3 * scale]
    scores = np.array([0.0, 9.0, 2.0, 1.25, -3.0, -200.0])
    source, ends = keyed_source(21), np.cumsum(np.array(lengths, dtype=object))
    places = [draw_from_runs(lengths, scores, rate=Fraction(7, 10), random=source) for _ in range(3000)]
    found = [int(np.searchsorted(ends, place, side="right")) for place in places]
    check_law(found, [n / scale * math.exp(0.7 * s) for n, s in zip(lengths, scores, strict=True)], range(6))
    # within a run places are uniform
    inside = [(place - 6 * scale) * 7 // (7 * scale) for place, run in zip(places, found, strict=True) if run == 3]
    check_law(inside, [1] * 7, range(7))


@given(exponent=st.one_of(st.floats(0, 60), st.floats(0, 50_000)), scale=st.integers(1, 70_000))
def test_proposal_weights_are_upper_bounds_and_close(exponent, scale):
    with mpmath.workdps(40):
        true = mpmath.mpf(2) ** scale * mpmath.exp(-mpmath.mpf(exponent))
        weight = weight_at_least(exponent, scale)
        assert true <= weight <= true * (1 + mpmath.mpf(2) ** -29) + 2


def test_far_runs_are_still_drawn_with_their_weight():
    # the far runs hold about half of everything only because there are so many places in them
    lengths, scores = [1, 2**200], np.array([0, -139])
    source = keyed_source(22)
    share = 2.0**200 * math.exp(-139)
    far = sum(draw_from_runs(lengths, scores, rate=Fraction(1), random=source) > 0 for _ in range(500))
    # 5.5 deviations of a binomial: 4e-8 for a sound sampler
    assert abs(far / 500 - share / (1 + share)) < 5.5 * math.sqrt(0.25 / 500)
    only = [draw_from_runs([0, 3], np.array([5.0, -1e300]), rate=Fraction(1), random=source) for _ in range(20)]
    assert set(only) == {0, 1, 2}


def test_every_place_of_the_runs_of_a_level_is_drawn():
    source = keyed_source(23)
    lengths, scores = [2, 0, 1, 3], np.array([1.0, 9.0, 1.0, 1.0])
    counts = np.bincount([draw_from_runs(lengths, scores, rate=Fraction(1), random=source) for _ in range(600)])
    assert len(counts) == 6
    assert counts.min() > 50  # 5.5 deviations below the mean of 100
