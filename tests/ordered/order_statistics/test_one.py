"""Medians and quantiles: the exact law, what it promises, and that rows are found by rank however they are stored."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.ordered import median, private_range, quantile, quantile_interval
from dpselect.ordered.domains import Binades, Doubles, Grid, Timestamps, WholeNumbers
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.order_statistics.intervals import SortedColumn, draw_code, window_of
from dpselect.ordered.order_statistics.one import quantile_rate, rank_error
from dpselect.ordered.order_statistics.small_domain import draw_flipped
from dpselect.ordered.sources.columns import ChunkedColumn, PaddedColumn
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource, keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
QS = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


def score(rows, z, target):
    return min(sum(x <= z for x in rows) - target, target - sum(x < z for x in rows))


def multisets(size, most):
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(range(size), n)]


def neighbours(rows, size, adjacency):
    for x in range(size):
        if adjacency is ADD:
            yield tuple(sorted((*rows, x)))
        else:
            for place in range(len(rows)):
                yield tuple(sorted((*rows[:place], x, *rows[place + 1 :])))


def flipped_law(probabilities):
    """Uniform among the candidates whose coins land heads: in rational arithmetic."""
    law = [Fraction(0)] * len(probabilities)
    for coins in itertools.product((0, 1), repeat=len(probabilities)):
        chance = math.prod(p if c else 1 - p for p, c in zip(probabilities, coins, strict=True))
        for place, coin in enumerate(coins):
            law[place] += chance * coin / max(sum(coins), 1)
    return law


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


@pytest.mark.statistical
@pytest.mark.parametrize("ordered", [False, True])
def test_small_domains_follow_the_law_of_permute_and_flip(ordered):
    rows = [0, 1, 1, 1, 3, 3, 4] * (20 if ordered else 1)
    target, rate, draws = Fraction(3 * len(rows), 10), Fraction(1, len(rows) // 7), 3000
    column = SortedColumn(np.array(rows) if not ordered else np.sort(rows), WholeNumbers(0, 4))
    column = column if ordered else ChunkedColumn(lambda: iter([np.array(rows)]), WholeNumbers(0, 4))
    scores = [score(rows, z, target) for z in range(5)]
    law = flipped_law([Fraction(math.exp(rate * (s - max(scores)))) for s in scores])
    random = keyed_source(4)
    drawn = [draw_flipped(column, size=5, target=target, rate=rate, random=random) for _ in range(draws)]
    expected = np.array([float(p) for p in law]) * draws
    statistic = np.sum((np.bincount(drawn, minlength=5) - expected) ** 2 / expected)
    assert statistic < 37.3  # the 1 - 1.5e-7 quantile of chi-squared with 4 degrees; another rate is far beyond


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


class Scripted(RandomSource):
    """The first 64 bits are given."""

    __slots__ = ("_given",)

    def __init__(self, value):
        super().__init__(b"0" * 32)
        self._given = [value]

    def bits(self, count):
        return self._given.pop() if count == 64 and self._given else super().bits(count)


ROWS = st.lists(st.integers(0, 11), max_size=9)


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(rows=ROWS, q=st.sampled_from(QS), rate=st.sampled_from([Fraction(1, 7), Fraction(1), Fraction(40)]), u=st.integers(0, 2**64 - 1))  # fmt: skip # noqa: E501
def test_a_uniform_number_gives_the_piece_that_the_inverse_distribution_function_gives(rows, q, rate, u):
    rows, size = sorted(rows), 12
    target = q * len(rows)
    drawn = draw_code(
        SortedColumn(np.array(rows, dtype=np.int64), WholeNumbers(0, 11)),
        size=size,
        target=target,
        rate=rate,
        random=Scripted(u),
    )
    with mpmath.workdps(60):
        weights = [mpmath.exp(mpmath.mpf((rate * score(rows, z, target)).numerator) / (rate * score(rows, z, target)).denominator) for z in range(size)]  # fmt: skip # noqa: E501
        point = mpmath.mpf(u) / 2**64 * sum(weights)
        running = list(itertools.accumulate(weights))
        right = next(z for z in range(size) if running[z] > point)
    counted = [(sum(x < z for x in rows), sum(x <= z for x in rows)) for z in range(size)]
    assert counted[drawn] == counted[right]  # the same piece of equal scores


def test_an_atom_between_two_multiples_of_the_granularity_goes_to_the_nearer_one():
    rows = np.full(300_000, 0.3)
    for ordered in (True, False):
        for upper in (3000.0, 10_000.0):
            found = median(rows, lower=0.0, upper=upper, granularity=1.0, epsilon=1.0, assume_sorted=ordered)
            assert found.value == 0.0


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.integers(0, 30), min_size=1, max_size=60), first=st.integers(-3, 60), span=st.integers(0, 10))
def test_a_window_has_whole_ties_and_right_counts_outside(rows, first, span):
    rows = sorted(rows)
    window = SortedColumn(np.array(rows), WholeNumbers(2, 25)).window(first, first + span)
    codes = sorted(min(max(x, 2), 25) - 2 for x in rows)
    low, high = int(window.codes[0]), int(window.codes[-1])
    assert window.before == sum(c < low for c in codes)
    assert window.after == sum(c > high for c in codes)
    assert dict(zip(window.codes.tolist(), window.counts.tolist(), strict=True)) == {
        c: codes.count(c) for c in codes if low <= c <= high
    }
    wanted = codes[max(first - 1, 0) : max(first + span, 0)] or codes[:1] * (first + span < 1) or codes[-1:]
    assert low <= wanted[0]
    assert high >= wanted[-1]


DOMAINS = [
    (Grid(-10, 33, Fraction(1, 10)), st.floats(allow_nan=False, width=64)),
    (Grid(-(2**48), 2**48, Fraction(1, 2**40)), st.floats(-300, 300)),
    (Grid(0, 30, Fraction(1, 3)), st.floats(-1, 11)),
    (Doubles(-1.5, 1e300), st.floats(allow_nan=False)),
    (Doubles(-1.7976931348623157e308, 1.7976931348623157e308), st.floats(allow_nan=False)),
    (Binades(), st.floats(allow_nan=False)),
]


@pytest.mark.cases(2)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize(("domain", "numbers"), DOMAINS)
@given(data=st.data())
def test_codes_are_monotone_and_thresholds_exact(domain, numbers, data):
    values = np.array(sorted(data.draw(st.lists(numbers, min_size=1, max_size=20))))
    codes = domain.encode(values)
    assert np.all(codes[1:] >= codes[:-1])
    assert int(codes[-1]) < domain.size
    code = data.draw(st.integers(1, domain.size - 1))
    edge = domain.threshold(code)
    assert int(domain.encode(np.array([edge]))[0]) >= code
    assert int(domain.encode(np.array([math.nextafter(edge, -math.inf)]))[0]) < code
    assert np.array_equal(values >= edge, codes >= np.uint64(code))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
@pytest.mark.parametrize("bounds", [(-5, 300), (-(2**63), 2**63 - 1), (0, 2**64 - 1), (-400, -300), (2**65, 2**65 + 3)])
def test_whole_numbers_of_every_type(dtype, bounds):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 3, 100, info.max - 1, info.max], dtype=dtype)
    codes = WholeNumbers(*bounds).encode(values)
    assert [int(c) for c in codes] == [min(max(int(v), bounds[0]), bounds[1]) - bounds[0] for v in values]


def test_large_whole_numbers_keep_their_order_among_powers_of_two():
    values = np.array([-(2**63), -(2**54) - 1, -(2**54), -(2**54) + 1, -1, 0, 1, 2**54 - 1, 2**54, 2**63 - 1])
    codes = Binades().encode(values).tolist()
    assert codes == sorted(codes)
    for value, code in zip(values.tolist(), codes, strict=True):
        assert value >= Binades().threshold(code)
        assert value < Binades().threshold(code + 1)


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


def test_a_sorted_column_of_any_length_is_hardly_read():
    class Counting(Grid):
        def encode(self, values):
            read.append(len(values))
            return super().encode(values)

    read: list[int] = []
    rows = np.linspace(0.0, 1.0, 10**6)
    domain = Counting(0, 2**48, Fraction(1, 2**48))
    column = SortedColumn(rows, domain)
    draw_code(column, size=domain.size, target=Fraction(10**6, 2), rate=Fraction(1, 10), random=keyed_source(1))
    assert 0 < sum(read) < 4000


@pytest.mark.full
@pytest.mark.statistical
def test_too_narrow_windows_are_widened_without_changing_the_law():
    # a uniform number near an edge of the window is decided by what is outside: scripted to the very ends
    rows = np.arange(0, 4000, 2)
    column, domain = SortedColumn(rows, WholeNumbers(0, 4000)), WholeNumbers(0, 4000)
    low = draw_code(column, size=domain.size, target=Fraction(1000), rate=Fraction(1, 10), random=Scripted(0))
    high = draw_code(column, size=domain.size, target=Fraction(1000), rate=Fraction(1, 10), random=Scripted(2**64 - 1))
    with mpmath.workdps(40):
        weights = [mpmath.exp(mpmath.mpf(score_fast(rows, z)) / 10) for z in range(domain.size)]
        running = list(itertools.accumulate(weights))
        share = running[-1] * mpmath.mpf(2) ** -64
        first = next(z for z in range(domain.size) if running[z] > share)
        last = next(z for z in range(domain.size) if running[z] > running[-1] - share)
    # the scripted 64 bits leave the number in the first or last 2**-64 of the law; further bits are random
    assert low <= first
    assert high >= last


def score_fast(rows, z):
    return min(int(np.searchsorted(rows, z, "right")) - 1000, 1000 - int(np.searchsorted(rows, z, "left")))


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


def test_weights_count_as_copies():
    rows, weights = np.array([5.0, 1.0, 3.0, 1.0, math.nan]), np.array([1.0, 0.25, 0.0, 9.0, 1.0])
    declared = Column(rows, lower=0.0, upper=8.0, granularity=1.0, weights=weights)
    column, domain = declared.ranked(), declared.domain
    assert declared.units == 1024
    copies = [1] * (256 + 1024) + [5] * 1024  # 9 is cut off to the largest weight, 0 counts nothing
    wanted = window_of(np.array(copies, dtype=np.uint64), 0, 0)
    found = column.window(1, column.total)
    assert (found.codes.tolist(), found.counts.tolist()) == (wanted.codes.tolist(), wanted.counts.tolist())
    assert domain.decode(1) == 1.0
    released = quantile(rows, q=0.5, lower=0.0, upper=8.0, weights=weights, epsilon=2.0)
    assert released.rate == Fraction(2, 1024)
    assert released.rank_error(0.05) == pytest.approx(rank_error(released.domain_size, Fraction(2), 0.05))


def test_categories_in_their_order():
    grades = ["low"] * 10 + ["middle"] * 300 + ["high"] * 20 + ["unheard of"] * 900
    found = median(grades, categories=["low", "middle", "high"], epsilon=1.0, random=keyed_source(1))
    assert found.value == "middle"
    with pytest.raises(ArgumentError, match="categories"):
        median(grades, categories=["low", "low"], epsilon=1.0)


def test_timestamps_in_days():
    moments = np.datetime64("2024-01-01T00:00:00", "s") + np.arange(0, 86400 * 366, 600).astype("timedelta64[s]")
    found = median(
        moments, lower="2020-01-01", upper="2030-01-01", granularity=np.timedelta64(1, "D"), epsilon=1.0,
        random=keyed_source(1),
    )  # fmt: skip
    assert abs(found.value - np.datetime64("2024-07-02")) <= np.timedelta64(2, "D")
    assert Timestamps(0, 10, "D", 3).size == 4


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
def test_intervals_hold_the_quantile_and_ranges_the_data():
    random = keyed_source(6)
    rows = np.concatenate([np.arange(3000.0), [1500.0] * 500])
    truth = float(np.quantile(rows, 0.4))
    held = 0
    for _ in range(200):
        low, high = quantile_interval(rows, q=0.4, lower=0.0, upper=1e6, epsilon=1.0, random=random).value
        held += low <= truth <= high
        assert high - low < 500
    assert held >= 175  # at a true rate of 0.95 fewer than 175 of 200 have probability 1e-5
    for _ in range(50):
        low, high = private_range(rows * 1e-200 + 3e-200, epsilon=1.0, random=random).value
        assert np.sum(rows * 1e-200 + 3e-200 < low) <= 60
        assert 1e-198 < high <= 1e-196


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [[0.5], [999.0] * 4, [0.0, 1000.0], [0.5] * 25, list(range(100))])
def test_intervals_hold_their_quantile_however_few_rows_there_are(rows):
    """One row's target would lie 70 ranks outside the column; without rows added, nearly all of these fail."""
    random, failures = keyed_source(6), 0
    for _ in range(60):
        low, high = quantile_interval(rows, q=0.5, lower=0.0, upper=1000.0, epsilon=1.0, random=random).value
        failures += np.sum(np.array(rows) < low - 1e-6) > len(rows) / 2
        failures += np.sum(np.array(rows) <= high + 1e-6) < len(rows) / 2
    assert failures <= 14  # at a true rate of 0.05 more than 14 of 60 have probability 1e-6


@pytest.mark.parametrize("size", [1, 6, 2**70])
@pytest.mark.parametrize("rows", [[], [0], [0, 0, 3, 5], [2, 2, 4], [5]])
def test_padded_columns_have_the_ranks_of_padded_rows(rows, size):
    rows, pad = [min(row, size - 1) for row in rows], 3
    padded = [0] * pad + rows + [size - 1] * pad
    domain = WholeNumbers(0, size - 1)
    values = rows if size > 2**64 else np.array(rows, dtype=np.int64)
    mine, theirs = PaddedColumn(SortedColumn(values, domain), size, pad), SortedColumn(padded, domain)
    assert mine.total == theirs.total
    for first in range(-1, len(padded) + 3):
        for last in range(max(first, 1), len(padded) + 3):
            got, wanted = mine.window(first, last), window_of(padded, 0, 0)
            ranks = wanted.counts.cumsum()
            start, stop = wanted.codes.index(int(got.codes[0])), wanted.codes.index(int(got.codes[-1]))
            assert [int(code) for code in got.codes] == wanted.codes[start : stop + 1]
            assert got.counts.tolist() == wanted.counts[start : stop + 1].tolist()
            assert (got.before, got.after) == (ranks[start] - wanted.counts[start], ranks[-1] - ranks[stop])
            assert got.before < max(first, 1) <= mine.total or first > mine.total
            assert got.after <= max(mine.total - last, 0)


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
