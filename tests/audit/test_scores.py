"""Scores of one output: fitted on some draws, they read each other output by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.audit.outputs import as_outputs
from dpselect.audit.scores import ColumnScore, fitted_scores
from dpselect.randomness import keyed_source


@pytest.mark.full
def test_scores_do_not_depend_on_the_place_of_an_output():
    """A product of matrices may: rows at the end of an array are summed in another order."""
    source = keyed_source("places")
    rows = np.round(source.normal((2, 800, 7)), 1)
    for score in fitted_scores(*(as_outputs(side) for side in rows), low_bits=True):
        one = as_outputs(rows[0, :1])
        for size in range(1, 20):
            assert set(score(as_outputs(np.repeat(rows[0, :1], size, axis=0)))) == set(score(one))


def scores_of(ours, theirs, *, low_bits=False):
    sides = [as_outputs(np.asarray(side)) for side in (ours, theirs)]
    return {score.words(0.5, True): score for score in fitted_scores(*sides, low_bits=low_bits)}, sides


def test_a_score_is_high_where_the_data_have_more():
    found, (ours, theirs) = scores_of(["a"] * 90 + ["b"] * 10, ["a"] * 30 + ["b"] * 70)
    (score,) = found.values()
    values = score(ours)
    assert values[0] > values[-1]
    assert score(theirs)[0] == values[0]
    assert score(as_outputs(np.array(["c"])))[0] == pytest.approx(0.0, abs=0.2)


def test_the_tail_of_a_number_is_the_number():
    score = ColumnScore(1, "feature 1")
    assert score(as_outputs(np.array([[0.0, 3.0], [1.0, 2.0]]))).tolist() == [3.0, 2.0]
    assert [score.words(2.5, at_least) for at_least in (True, False)] == ["feature 1 >= 2.5", "feature 1 <= 2.5"]


def test_low_bits_are_looked_at_only_when_asked_for():
    source = keyed_source("bits")
    sides = source.normal(400), source.normal(400)
    assert len(scores_of(*sides, low_bits=True)[0]) == len(scores_of(*sides)[0]) + 2
