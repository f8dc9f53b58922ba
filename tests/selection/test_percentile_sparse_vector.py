"""Searches by exact log-odds: the odds themselves, and the distribution of the answer."""

import math

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.selection import (
    PercentileSparseVector,
    log_odds,
)
from dpselect.selection.percentile_sparse_vector import laplace_log_odds
from tests.selection.algorithms_cases import assert_law
from tests.selection.selection_laws import (
    first_positive_law,
)

BASE = pure_dp(epsilon=0.5)


@pytest.mark.full
@pytest.mark.statistical
def test_law_of_the_percentile_search():
    probabilities = [0.2, 0.6, 0.5]
    queries = [([math.log(p / (1 - p))], [1.0]) for p in probabilities]
    law = first_positive_law(queries, 0.0, epsilon=2.0, sensitivity=1.0)
    stream = [log_odds(passing=p, failing=1 - p) for p in probabilities]
    assert_law(
        lambda source: (
            PercentileSparseVector(guarantee=BASE, epsilon=2.0, oracle_error=0.0, random=source).first(stream).value
        ),
        dict(zip([0, 1, 2, None], law, strict=True)),
    )


def test_log_odds_are_those_of_the_two_probabilities():
    assert log_odds(passing=0.75, failing=0.25) == pytest.approx(math.log(3), rel=1e-15)
    assert log_odds(passing=1e-300, failing=1.0) == pytest.approx(-300 * math.log(10), rel=1e-12)
    assert (log_odds(passing=1, failing=0), log_odds(passing=0, failing=1)) == (math.inf, -math.inf)
    for passing, failing in ((0.5, 0.4), (0.6, 0.41), (1.1, -0.1), (math.nan, 0.5)):
        with pytest.raises(ArgumentError, match="passing and failing") as refused:
            log_odds(passing=passing, failing=failing)
        assert str(passing) not in str(refused.value)


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("gap", [-3.0, -0.1, 0.0, 0.1, 3.0])
def test_laplace_noise_has_its_log_odds(gap, scale):
    tail = 0.5 * math.exp(-abs(gap) / scale)
    passing = tail if gap < 0 else 1 - tail
    assert laplace_log_odds(gap, scale=scale) == pytest.approx(math.log(passing / (1 - passing)), rel=1e-12, abs=1e-15)


def test_the_bar_is_the_target_and_infinite_odds_are_certain():
    for target, below, above in ((0.5, 0.4, 0.6), (0.9, 0.85, 0.95)):
        for odds, expected in ((below, False), (above, True)):
            search = PercentileSparseVector(
                guarantee=pure_dp(epsilon=1e-4), epsilon=1.0, target=target, random=keyed_source(1)
            )
            assert search.above(math.log(odds / (1 - odds))) is expected
    search = PercentileSparseVector(guarantee=pure_dp(epsilon=1e-4), epsilon=1.0)
    assert [search.above(math.nan), search.above(-math.inf), search.above(math.inf)] == [False, False, True]
