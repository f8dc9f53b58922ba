"""The public measure that makes round numbers weigh more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered import median, quantile, quantile_interval, quantiles
from dpselect.ordered.domains import Binades, Categories, Doubles, Grid, Timestamps, WholeNumbers
from dpselect.ordered.order_statistics.one import quantile_rate, rank_error
from dpselect.ordered.public_domain import PublicDomain
from dpselect.ordered.round_values import MOST_CODES, CodeMeasure, measure_of, points_at_most
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.order_statistics.one_cases import score

FINITE = st.floats(-1e12, 1e12) | st.floats(-1e-3, 1e-3) | st.integers(-(10**6), 10**6).map(float)


@st.composite
def grids(draw):
    lower, upper = sorted((draw(FINITE), draw(FINITE)))
    upper += 1e-6 * max(abs(lower), abs(upper), 1.0)
    step = draw(st.sampled_from([None, None, 0.01, 1, 2.5]))
    if step is not None and math.floor(upper / step) <= math.ceil(lower / step):
        step = None
    return PublicDomain(lower=lower, upper=upper, granularity=step).of_type(np.dtype(float))


@settings(max_examples=60, deadline=None)
@given(domain=grids(), data=st.data())
def test_points_are_in_the_order_of_codes_and_within_the_stated_number(domain, data):
    measure = measure_of(domain)
    assert domain.size <= measure.points <= points_at_most(domain.size)
    some = data.draw(st.sets(st.integers(0, domain.size - 1), min_size=1, max_size=9))
    codes = np.array(sorted(some), dtype=np.uint64)
    starts, weights = measure.starts(codes), measure.weights(codes)
    assert np.all(weights >= 1)
    assert np.all(starts[1:] >= starts[:-1] + weights[:-1])
    for code, start, weight in zip(codes.tolist(), starts.tolist(), weights.tolist(), strict=True):
        assert [measure.code_at(point) for point in (start, start + weight - 1)] == [code, code]


@settings(max_examples=60, deadline=None)
@given(
    first=st.integers(-500, 500),
    step=st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(1, 2**5), Fraction(5, 2)]),
    powers=st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
)
def test_weights_are_those_of_the_multiples_next_to_a_code(first, step, powers):
    """Counted one by one in rational arithmetic."""
    size, spacings = 100, [10**power * (3 * step if step == 2.5 else 1) for power in powers]
    measure = CodeMeasure(size, first, tuple((float(step / u), 7**k) for k, u in enumerate(spacings)))
    found = measure.weights(np.arange(size, dtype=np.uint64)).tolist()
    for code, weight in enumerate(found):
        low, high = (first + code - Fraction(1, 2)) * step, (first + code + Fraction(1, 2)) * step
        multiples = [math.ceil(high / u) - math.ceil(low / u) for u in spacings]
        assert weight == 1 + sum(7**k * count for k, count in enumerate(multiples))


def test_round_numbers_weigh_more_the_rounder_they_are():
    domain = PublicDomain(lower=-1e4, upper=1e5).of_type(np.dtype(float))
    numbers = [0.0, 20_000.0, 3_000.0, 500.0, 40.0, 7.0, 7.25]
    weights = measure_of(domain).weights(domain.encode(np.array(numbers))).tolist()
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == 1
    assert weights[-2] > 10**6


@pytest.mark.parametrize(
    "domain",
    [
        WholeNumbers(0, MOST_CODES - 1),
        WholeNumbers(0, 2**52),
        WholeNumbers(-(2**70), 2**70),
        Doubles(0.0, 1e9),
        Binades(),
        Timestamps(0, 10**6, "s"),
        Categories(("a", "b")),
        Grid(2**52, 2**52 + 10_000, Fraction(1)),
    ],
)
def test_other_domains_have_equal_weights(domain):
    measure = measure_of(domain)
    assert not measure.levels
    assert measure.points == domain.size
    assert measure.code_at(domain.size - 1) == domain.size - 1


@pytest.mark.theorem("docs/theory/round-values.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 3), Fraction(1, 2)])
def test_all_neighbours_of_small_columns_have_a_range_of_epsilon(adjacency, q):
    """The exact log-probabilities on 4 codes with weights 1, 9, 1, 4: their differences span at most epsilon = 1."""
    rate, weights = quantile_rate(q, Fraction(1), adjacency), (1, 9, 1, 4)

    def logs(rows):
        exponents = [float(rate * score(rows, z, q * len(rows))) for z in range(4)]
        total = sum(w * math.exp(e) for w, e in zip(weights, exponents, strict=True))
        return np.log(weights) + exponents - math.log(total)

    worst = 0.0
    for size in range(4):
        for rows in itertools.combinations_with_replacement(range(4), size):
            kept = rows if adjacency is Adjacency.ADD_OR_REMOVE_ONE else rows[1:]
            if adjacency is Adjacency.REPLACE_ONE and not rows:
                continue
            for other in range(4):
                gaps = logs((*kept, other)) - logs(rows)
                worst = max(worst, max(gaps) - min(gaps))
    assert 0.99 < worst <= 1.0 + 1e-12


@pytest.mark.theorem(
    "docs/theory/round-values.md, Theorem 3", exact=True, loose="3/2 bounds the weight, and two codes are best"
)
def test_a_stated_rank_error_holds_for_the_worst_column():
    """All rows around the target are at two codes of weight 1, and all other codes 40 ranks away."""
    measure, rate = measure_of(WholeNumbers(0, 9_999)), Fraction(1, 2)
    bound = rank_error(points_at_most(measure.size), rate, 0.05)
    reach = math.ceil(bound)
    far = (measure.points - 2) * math.exp(-float(rate) * reach)
    assert far / (far + 2.0) <= 0.05
    assert bound < rank_error(measure.size, rate, 0.05) + 1.0


def test_a_value_that_many_rows_share_is_found_without_a_granularity():
    """The columns that equal weights lose: 60 % zeros and a constant, at epsilon 0.1."""
    zeros = np.where(np.arange(1000) < 600, 0.0, np.linspace(1.0, 9e4, 1000))
    options = {"lower": 0.0, "upper": 1e5, "random": keyed_source(2)}
    assert [median(zeros, epsilon=0.1, **options).value for _ in range(5)] == [0.0] * 5
    constant = np.full(1000, 3.0)
    assert quantile(constant, q=0.25, epsilon=0.2, **options).value == 3.0
    assert quantiles(constant, qs=[0.25, 0.5, 0.75], epsilon=1.0, **options).value == [3.0] * 3
    for method in ("recursive", "independent", "joint"):
        assert quantiles(zeros, qs=[0.2, 0.3], epsilon=2.0, method=method, **options).value == [0.0, 0.0]


def test_weighted_rows_and_intervals_use_the_same_measure():
    rows, options = np.full(500, 20.0), {"lower": 0.0, "upper": 1e3, "random": keyed_source(2)}
    assert quantile(rows, q=0.5, epsilon=1.0, weights=np.ones(500), **options).value == 20.0
    assert quantiles(rows, qs=[0.5, 0.6], epsilon=2.0, method="recursive", weights=np.ones(500), **options).value == [
        20.0,
        20.0,
    ]
    low, high = quantile_interval(rows, q=0.5, epsilon=1.0, **options).value
    assert low <= 20.0 <= high
