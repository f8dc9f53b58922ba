"""The judging step of an audit: its error rate, by enumeration of all pairs of counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpselect.audit.events import Question
from dpselect.audit.limits import lower_limit, upper_limit
from dpselect.audit.verdict import judge
from dpselect.privacy import approximate_dp, pure_dp


@pytest.mark.cases(1)
@pytest.mark.parametrize(("share", "other"), [(0.75, 0.25), (0.9, 0.9), (0.3, 0.1), (0.02, 0.0)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_error_rate_by_enumeration(share, other, confidence):
    """Over all pairs of counts: a claim that is just true is rejected with probability 1 - confidence at most.

    The claims are the pair's own curve in both directions, for the event and its complement.
    """
    sizes = (14, 11)
    smallest = [max(0.0, a - b) for a, b in ((share, other), (other, share))]
    claims = [approximate_dp(epsilon=0.0, delta=max(smallest))]
    if other > 0:
        ratios = (share / other, other / share, (1 - other) / (1 - share), (1 - share) / (1 - other))
        claims.append(pure_dp(epsilon=math.log(max(ratios))))
    weights = [stats.binom.pmf(np.arange(n + 1), n, p) for n, p in zip(sizes, (share, other), strict=True)]
    for claim, reverse in itertools.product(claims, (False, True)):
        question = Question.about(claim, judging=14, delta=claim.failure, error=(1 - confidence) / 2)
        rejected, above = 0.0, 0.0
        for counts in itertools.product(range(sizes[0] + 1), range(sizes[1] + 1)):
            verdict = judge(counts, sizes, question, reverse=reverse)
            weight = weights[0][counts[0]] * weights[1][counts[1]]
            rejected += weight * (verdict.violation is not None)
            above += weight * (verdict.epsilon > claim.epsilon(claim.failure))
        assert rejected <= 1 - confidence
        assert above <= 1 - confidence


@pytest.mark.parametrize("reverse", [False, True])
def test_the_epsilon_is_that_of_the_two_limits(reverse):
    """All of the one side and none of the other: the limits are error**(1/n) and its complement."""
    question = Question.about(pure_dp(epsilon=1.0), judging=100, delta=0.01, error=0.005)
    counts = (0, 100) if reverse else (100, 0)
    found = judge(counts, (100, 100), question, reverse=reverse)
    p = 0.005 ** (1 / 100)
    assert found.epsilon == pytest.approx(math.log((p - 0.01) / (1 - p)), rel=1e-6)
    assert found.violation["delta"] == pytest.approx(p - math.exp(found.violation["epsilon"]) * (1 - p), rel=1e-6)
    assert found.violation["delta"] > found.violation["claimed_delta"]


def test_counts_within_the_claim_show_nothing():
    question = Question.about(pure_dp(epsilon=1.0), judging=100, delta=0.0, error=0.005)
    found = judge((60, 40), (100, 100), question, reverse=False)
    assert found.violation is None
    p, q = lower_limit(60, 100, 0.005), upper_limit(40, 100, 0.005)
    assert found.epsilon == pytest.approx(max(0.0, math.log(p / q)), abs=1e-12)
