"""Interior points: exact laws of their methods, audited over all neighbouring columns."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import keyed_source
from tests.ordered.enumerated_draws import claims, exact_law, worst_excess
from tests.ordered.interior_points.draws_cases import neighbours
from tests.ordered.interior_points.small_trees import array, multisets

UNIT, RATIO = math.log(2.0), Fraction(1, 2)
ADD, SWAP = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


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


def test_combinations_are_many():
    """The audits above compare what they say: all neighbours of all small data sets."""
    laws = {p: None for count in range(4) for p in multisets(3, count)}
    assert len(list(neighbours(laws, 3, replace=False))) == sum(math.comb(n + 2, 2) * 3 for n in range(3))
    assert all(len(a) == len(b) for a, b in itertools.islice(neighbours(laws, 3, replace=True), 50))


@pytest.mark.full
def test_interior_point_facts():
    # straddle data: half at a-1, half at a; N - 2 points have score 0, the two others n/2
    # failure (N - 2)/(N - 2 + 2 exp(n/2)) at N = 2**64: 0.975114567 for n = 80, 0.208873739 for n = 90, .0048 for 98
    draws_of, middle = SecretDraws(keyed_source(11)), 2**63
    draws = 1500
    for count, failure in ((80, 0.975114567), (90, 0.208873739), (98, 0.00481243696)):
        rows = np.array([middle - 1] * (count // 2) + [middle] * (count // 2), dtype=np.uint64)
        missed = sum(draws_of.interior(rows, 2**64, 1.0) not in (middle - 1, middle) for _ in range(draws))
        # five deviations: wrong with probability below 1e-5 on right code, and a factor 2 in the rate is 100 away
        assert abs(missed - draws * failure) <= 5 * math.sqrt(draws * failure * (1 - failure)) + 1
