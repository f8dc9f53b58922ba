"""The choice of an event: the points of a claim, thresholds, and the event that contradicts a claim most clearly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.audit.events import OutputEvent, Question, choose_event
from dpselect.audit.outputs import as_outputs
from dpselect.audit.readings import Reading
from dpselect.audit.scores import ColumnScore
from dpselect.privacy import approximate_dp, gaussian, pure_dp
from dpselect.randomness import keyed_source


def test_the_points_of_a_claim():
    """Up to what the draws could contradict: beyond log(4 n), even the smallest upper limit exceeds 1."""
    found = Question.about(pure_dp(epsilon=1.0), judging=100, delta=0.0, error=0.005)
    assert (found.epsilons[0], found.epsilons[-1]) == (0.0, 1.0)
    assert found.deltas[-1] == 0.0
    assert found.deltas[0] == pytest.approx((math.e - 1) / (math.e + 1))
    large = Question.about(pure_dp(epsilon=50.0), judging=100, delta=0.0, error=0.005)
    assert large.epsilons[-1] == pytest.approx(math.log(400.0))
    curve = gaussian(noise_multiplier=1.0)
    of_gaussian = Question.about(curve, judging=1000, delta=1e-5, error=0.005)
    assert curve.epsilon(1e-5) in of_gaussian.epsilons
    assert of_gaussian.deltas == pytest.approx(curve.delta(of_gaussian.epsilons))


def event(at_least, threshold=1.0):
    return OutputEvent(ColumnScore(0, "output"), threshold, at_least, False, 1, Reading())


def test_a_threshold_is_in_its_event():
    outputs = as_outputs(np.array([0.0, 1.0, 2.0, np.nan]))
    assert event(True).holds(outputs).tolist() == [False, True, True, False]
    assert event(False).holds(outputs).tolist() == [True, True, False, False]
    assert (event(True).count(outputs), event(False, 0.5).count(outputs)) == (2, 1)
    assert (event(True).words(), event(False).words()) == ("output >= 1.0", "output <= 1.0")


def chosen(ours, theirs, claim=None):
    claim = pure_dp(epsilon=1.0) if claim is None else claim
    question = Question.about(claim, judging=len(ours), delta=claim.failure, error=0.005)
    return choose_event(as_outputs(ours), as_outputs(theirs), question, judging=len(ours), low_bits=False)


@pytest.mark.parametrize("exchanged", [False, True])
def test_outputs_of_one_side_alone_are_found(exchanged):
    """One output in ten is above 100 on one data set, and none on the other."""
    source = keyed_source("one side")
    sides = [np.round(source.normal(2000), 3) for _ in range(2)]
    sides[exchanged][::10] = 100.0 + np.arange(200)
    found = chosen(*sides)
    assert found.reverse == exchanged
    counts = [found.count(as_outputs(side)) for side in sides]
    assert counts[exchanged] >= 140
    assert counts[not exchanged] <= 2


def test_a_claim_that_holds_gets_the_event_of_the_largest_epsilon():
    source = keyed_source("holds")
    sides = [source.bernoulli(share, 4000) for share in (0.6, 0.4)]
    found = chosen(*sides, claim=approximate_dp(epsilon=1.0, delta=0.0))
    assert found.count(as_outputs(np.array([True, False]))) == 1


def test_outputs_that_are_no_number_have_an_event():
    found = chosen(np.full(40, np.nan), np.full(40, np.nan))
    assert found.count(as_outputs(np.full(8, np.nan))) in (0, 8)
