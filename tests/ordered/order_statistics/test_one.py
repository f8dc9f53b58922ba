"""Medians and quantiles: the exact law, what it promises, and that rows are found by rank however they are stored."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.ordered import Column, median, private_range, quantile, quantile_interval
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.order_statistics.intervals import SortedColumn, draw_code
from dpselect.ordered.order_statistics.one import quantile_rate
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.order_statistics.one_cases import flipped_law, score

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
QS = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


def multisets(size, most):
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(range(size), n)]


def neighbours(rows, size, adjacency):
    for x in range(size):
        if adjacency is ADD:
            yield tuple(sorted((*rows, x)))
        else:
            for place in range(len(rows)):
                yield tuple(sorted((*rows[:place], x, *rows[place + 1 :])))


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize("q", QS)
def test_permute_and_flip_is_within_epsilon_in_rational_arithmetic(q, adjacency):
    size, base = 3, 2
    rate = quantile_rate(q, Fraction(1), adjacency)
    power = (rate * Fraction(1, q.denominator)).denominator
    laws = {}

    def law(rows):
        if rows not in laws:
            scores = [score(rows, z, q * len(rows)) for z in range(size)]
            laws[rows] = flipped_law([Fraction(base) ** int(power * rate * (s - max(scores))) for s in scores])
        return laws[rows]

    for rows in multisets(size, 6):
        for other in neighbours(rows, size, adjacency):
            for a, b in zip(law(rows), law(other), strict=True):
                assert a <= base**power * b
                assert b <= base**power * a


@pytest.mark.cases(4)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize("q", QS)
def test_every_ratio_of_the_law_is_within_epsilon_in_rational_arithmetic(q, adjacency):
    # exp(epsilon) = base**power is a rational number, and so is every weight exp(rate * score) = base**whole
    size, base = 3, 2
    rate = quantile_rate(q, Fraction(1), adjacency)
    power = (rate * Fraction(1, q.denominator)).denominator
    scale = power * rate
    largest = Fraction(0)
    laws = {}

    def law(rows):
        if rows not in laws:
            weights = [Fraction(base) ** int(scale * score(rows, z, q * len(rows))) for z in range(size)]
            laws[rows] = [w / sum(weights) for w in weights]
        return laws[rows]

    for rows in multisets(size, 10):
        assert all((scale * score(rows, z, q * len(rows))).denominator == 1 for z in range(size))
        for other in neighbours(rows, size, adjacency):
            ratios = [a / b for a, b in zip(law(rows), law(other), strict=True)]
            assert max(ratios) / min(ratios) <= base**power  # the range, which bounds each ratio
            largest = max(largest, max(ratios) / min(ratios))
    assert largest == base**power  # and no larger rate would do


def test_an_atom_between_two_multiples_of_the_granularity_goes_to_the_nearer_one():
    rows = np.full(300_000, 0.3)
    for ordered in (True, False):
        for upper in (3000.0, 10_000.0):
            found = median(rows, lower=0.0, upper=upper, granularity=1.0, epsilon=1.0, assume_sorted=ordered)
            assert found.value == 0.0


def test_score_is_monotone_under_insertion():
    for rows in multisets(4, 3):
        for x in range(4):
            more = (*rows, x)
            changes = [
                score(more, z, Fraction(len(more), 2)) - score(rows, z, Fraction(len(rows), 2)) for z in range(4)
            ]
            assert {c + Fraction(1, 2) for c in changes} <= {0, 1}


def test_integers_beyond_64_bits():
    rows = [2**300 + i for i in range(200)]
    found = SecretDraws(keyed_source(1)).interior(rows, 2**400, 5.0)
    assert rows[0] <= found <= rows[-1]
    assert found != SecretDraws(keyed_source(1)).interior([], 2**400, 5.0)


CONTENT = st.lists(st.floats(width=64) | st.just(math.nan) | st.just(math.inf) | st.just(-math.inf), max_size=30)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(rows=CONTENT, q=st.sampled_from(QS), ordered=st.booleans())
def test_no_content_raises_and_answers_keep_to_the_bounds(rows, q, ordered):
    values = np.sort(np.array(rows)) if ordered else np.array(rows)
    released = quantile(values, q=q, lower=-1.0, upper=2.5, epsilon=1.0, assume_sorted=ordered)
    assert -1.0 <= released.value <= 2.5
    low, high = quantile_interval(values, q=q, lower=-1.0, upper=2.5, epsilon=1.0).value
    assert -1.0 <= low <= high <= 2.5
    low, high = private_range(values, epsilon=1.0).value
    assert low <= high
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert math.isfinite(quantile(values, q=q, lower=-1e308, upper=1e308, granularity="float64", epsilon=1).value)


def test_missing_rows_are_not_in_the_column():
    values = np.array([math.nan] * 500 + [1.0] * 100)
    assert median(values, lower=0.0, upper=9.0, granularity=1.0, epsilon=5.0, random=keyed_source(1)).value == 1.0
    ordered = median(
        np.sort(values), lower=0.0, upper=9.0, granularity=1.0, epsilon=5.0, assume_sorted=True, random=keyed_source(1)
    )
    assert ordered.value == 1.0
    moments = np.array(["NaT"] * 50 + ["2024-05-05"] * 90, dtype="datetime64[D]")
    found = median(moments, lower="2024-01-01", upper="2025-01-01", epsilon=2.0, random=keyed_source(1)).value
    assert found == np.datetime64("2024-05-05")


def test_categories_in_their_order():
    grades = ["low"] * 10 + ["middle"] * 300 + ["high"] * 20 + ["unheard of"] * 900
    found = median(grades, categories=["low", "middle", "high"], epsilon=1.0, random=keyed_source(1))
    assert found.value == "middle"
    with pytest.raises(ArgumentError, match="categories"):
        median(grades, categories=["low", "low"], epsilon=1.0)


@pytest.mark.cases(1)
@pytest.mark.statistical
@pytest.mark.parametrize("shape", ["uniform", "ties", "empty"])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_rank_errors_hold_at_their_stated_rate(shape, adjacency):
    rows = {"uniform": np.arange(500), "ties": np.repeat([3, 200, 490], [200, 100, 200]), "empty": np.arange(0)}[shape]
    random, misses, draws = keyed_source(5), 0, 400
    for _ in range(draws):
        released = quantile(rows, q=0.3, lower=0, upper=499, epsilon=1.0, adjacency=adjacency, random=random)
        error = released.rank_error(0.05)
        at_most, below = np.sum(rows <= released.value), np.sum(rows < released.value)
        misses += not (at_most >= 0.3 * len(rows) - error and below <= 0.3 * len(rows) + error)
    # at a true rate of 0.05 more than 41 of 400 have probability 1e-5; the real rate is far lower
    assert misses <= 41


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("q", "faster"), [(Fraction(1, 2), 1), (Fraction(9, 10), 1), (Fraction(1), 1), (Fraction(1, 2), 2)]
)
def test_frequencies_on_neighbours_stay_within_epsilon(q, faster):
    # events {answer <= z} and {answer > z}, 4000 draws a side, five deviations a comparison: a right sampler fails with
    # probability below 1e-5 in all; a rate twice too large must be seen (0.5 against e times 0.12)
    random, draws = keyed_source(7), 4000

    def below(rows):
        column, domain = SortedColumn(np.array(rows), WholeNumbers(0, 1)), WholeNumbers(0, 1)
        rate = quantile_rate(q, Fraction(1), ADD) * faster
        drawn = [
            draw_code(column, size=domain.size, target=q * len(rows), rate=rate, random=random) for _ in range(draws)
        ]
        return np.cumsum(np.bincount(drawn, minlength=2))[:-1] / draws

    a, b = below([0]), below([0, 1])
    worst = max(
        np.max((p - math.e * r) / np.sqrt(p * (1 - p) + math.e**2 * r * (1 - r) + 1e-3) * math.sqrt(draws))
        for p, r in ((a, b), (b, a), (1 - a, 1 - b), (1 - b, 1 - a))
    )
    assert (worst > 5) == (faster > 1)


def test_guarantee_is_the_one_of_a_bounded_range():
    flipped = quantile(np.array([1, 2, 3]), q=0.25, lower=0, upper=5, epsilon=0.7)
    assert flipped.guarantee.epsilon(delta=0) == 0.7
    assert "permute-and-flip" in flipped.guarantee.theorem
    with pytest.raises(ArgumentError, match="permute_and_flip"):
        quantile([1.0], q=0.25, lower=0, upper=5, epsilon=0.7, mechanism="permute_and_flip")
    with pytest.raises(ArgumentError, match="mechanism"):
        quantile([1.0], q=0.25, lower=0, upper=5, epsilon=0.7, mechanism="laplace")
    released = quantile(
        np.array([1, 2, 3]), q=0.25, lower=0, upper=5, epsilon=0.7, adjacency="replace_one", mechanism="exponential"
    )
    assert released.guarantee.epsilon(delta=0) == 0.7
    assert released.guarantee.adjacency is REPLACE
    assert released.guarantee.renyi(2.0) < 0.7**2 / 4  # a quarter of what pure privacy alone gives
    assert private_range([1, 2, 3], epsilon=0.7).guarantee.epsilon(delta=0) <= 0.7


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"q": 1.5}, ArgumentError),
        ({"q": "0.5"}, TypeError),
        ({"epsilon": 0}, ArgumentError),
        ({"lower": None}, ArgumentError),
        ({"lower": 9}, ArgumentError),
        ({"granularity": -1}, ArgumentError),
        ({"granularity": "fine"}, ArgumentError),
        ({"granularity": 1e-30}, ArgumentError),
        ({"values": [[1.0]]}, ArgumentError),
        ({"values": ["a"]}, TypeError),
        ({"values": [1j]}, TypeError),
        ({"weights": [1.0]}, ArgumentError),
        ({"adjacency": "neighbours"}, AdjacencyError),
        ({"random": np.random.default_rng()}, TypeError),
        ({"values": lambda: iter([np.zeros(3)]), "assume_sorted": True}, ArgumentError),
    ],
)
def test_wrong_arguments_are_refused(arguments, error):
    given_arguments = {"values": [1.0, 2.0, 3.0], "q": 0.5, "lower": 0, "upper": 5, "epsilon": 1.0} | arguments
    with pytest.raises(error):
        quantile(given_arguments.pop("values"), **given_arguments)


def test_an_interval_takes_no_other_mechanism():
    with pytest.raises(ArgumentError, match="mechanism is always 'exponential'"):
        quantile_interval(range(100), q=0.5, lower=0, upper=100, epsilon=1.0, mechanism="joint")


@pytest.mark.parametrize("q", [1 / 3, 0.12345678901234568, 0.1 + 0.2])
def test_a_q_of_many_digits_on_a_small_domain(q):
    """Its scores have no room in 64 bits from a thousand rows on: they once wrapped around, or raised."""
    for rows in (1699, 1701, 1703, 100_003):
        values = np.arange(rows) % 100
        for key in range(20):
            found = quantile(values, q=q, epsilon=1.0, domain_size=100, random=keyed_source(key)).value
            assert abs(found - 100 * q) <= 3
    with pytest.raises(ArgumentError, match="denominator of at most 1048576"):
        quantile(values, q=q, epsilon=1.0, domain_size=100, mechanism="permute_and_flip")
    weighted = Column(values, domain_size=100, weights=np.ones(len(values)))
    with pytest.raises(ArgumentError, match="denominator of at most 1024"):
        quantile(weighted, q=Fraction(1, 1025), epsilon=1.0, mechanism="permute_and_flip")
    small = quantile(weighted, q=Fraction(1, 1024), epsilon=50.0, mechanism="permute_and_flip", random=keyed_source(1))
    assert small.value <= 1
