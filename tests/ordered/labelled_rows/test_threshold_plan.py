"""Plans of thresholds: exact ratios, binomial tails, and the sizes of the derivation."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpselect.ordered.labelled_rows.threshold_plan import (
    binomial_below,
    score_margin,
    threshold_rate,
)
from dpselect.ordered.labelled_rows.thresholds import (
    ThresholdLearner,
)
from tests.ordered.labelled_rows.thresholds_cases import (
    ADD,
    REPLACE,
    by_errors,
    by_interior_point,
    largest_ratio,
)


@pytest.mark.cases(1)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize(("method", "scores_of"), [("errors", by_errors), ("interior-point", by_interior_point)])
def test_every_ratio_is_within_epsilon_in_rational_arithmetic(method, scores_of, adjacency):
    # epsilon = k rate with a whole k, so exp(epsilon) = base**k; a large base comes close to the worst case
    k = int(1 / threshold_rate(epsilon=Fraction(1), method=method, adjacency=adjacency))
    for base in (Fraction(3, 2), Fraction(50)):
        assert largest_ratio(scores_of, adjacency, base) <= base**k
    # and a rate that is twice as large would not do (the next possible k is half of it)
    assert k == 1 or largest_ratio(scores_of, adjacency, Fraction(50)) > Fraction(50) ** (k // 2)


@pytest.mark.parametrize(
    ("bits", "epsilon", "error", "m", "interior", "a", "errors"),
    [
        (32, 1, 0.1, 53, 688, 27, 386),
        (64, 1, 0.1, 97, 1180, 49, 642),
        (64, 1, 0.01, 97, 11901, 49, 6497),
        (64, 0.1, 0.1, 970, 10340, 485, 5306),
        (64, 0.1, 0.01, 970, 103711, 485, 53279),
    ],
)
def test_sizes_from_the_derivation(bits, epsilon, error, m, interior, a, errors):
    options = {"domain_size": 2**bits, "epsilon": epsilon}
    assert math.ceil(math.log(3 * 2**bits / 0.05) / epsilon * 2) == m
    # the interior point is planned with 1/(1 + ...) in place of its upper bound, which may save one row in 970
    assert m - 1 <= ThresholdLearner(method="interior-point", **options).rows_per_side <= m
    found = ThresholdLearner(method="interior-point", **options).rows(error=error)
    assert interior * 0.998 <= found <= interior
    assert score_margin(2**bits, epsilon, 0.05 / 3) == a
    assert ThresholdLearner(**options).rows(error=error) == errors


@pytest.mark.parametrize(("count", "probability", "limit"), [(10, 0.3, 0), (10, 0.3, 4), (500, 0.01, 7), (5, 0.5, 6)])
def test_binomial_tails(count, probability, limit):
    exact = sum(math.comb(count, k) * Fraction(probability) ** k * (1 - Fraction(probability)) ** (count - k)
                for k in range(min(limit, count + 1)))  # fmt: skip
    assert exact * (1 - Fraction(1, 10**6)) <= Fraction(binomial_below(count, probability, limit)) <= 1
    assert Fraction(binomial_below(count, probability, limit)) >= min(exact, 1)
