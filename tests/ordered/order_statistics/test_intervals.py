"""Draws from intervals between rows, and the windows of ranks that they read."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn, _choose_fast, _choose_slow, _sizes, draw_code
from dpselect.ordered.round_values import CodeMeasure
from dpselect.randomness import RandomSource, keyed_source
from tests.ordered.order_statistics.one_cases import score

QS = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


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


class Uniform:
    """A number of 64 bits and a half."""

    def __init__(self, value):
        self.value = value

    def extend(self, bits):
        return self.value << 1 | 1 if bits < 65 else (2 * self.value + 1) << bits - 65, max(bits, 65)


@pytest.mark.parametrize("target", [Fraction(0), Fraction(3, 2), Fraction(5)])
def test_both_choices_are_the_inverse_distribution_function(target):
    rows, size, rate = [3, 3, 4, 7, 11], 12, Fraction(1, 2)
    window = SortedColumn(np.array(rows), WholeNumbers(0, 11)).window(1, 5)
    sizes = _sizes(window, CodeMeasure(size))
    assert sizes.tolist() == [3, 1, 0, 1, 2, 1, 3, 1, 0]  # below 3, 3, between 3 and 4, 4, ...
    pieces = np.repeat(np.arange(len(sizes)), sizes.astype(int))
    with mpmath.workdps(40):
        running = list(itertools.accumulate(mpmath.exp(float(rate * score(rows, z, target))) for z in range(size)))
        for step in range(41):
            value = min(step * 2**64 // 40, 2**64 - 1)
            point = running[-1] * (2 * value + 1) / mpmath.mpf(2) ** 65
            expected = pieces[next(z for z in range(size) if running[z] > point)]
            assert _choose_slow(window, sizes, target, rate, Uniform(value)) == expected
            assert _choose_fast(window, sizes, target, rate, Uniform(value)) in (expected, None)


@settings(max_examples=40, deadline=None)
@given(
    rows=ROWS,
    q=st.sampled_from(QS),
    rate=st.sampled_from([Fraction(1, 7), Fraction(1), Fraction(40)]),
    u=st.integers(0, 2**64 - 1),
    weight=st.integers(1, 10**12),
)
def test_weighted_codes_are_drawn_in_proportion_to_their_weights(rows, q, rate, u, weight):
    """By the exact inverse distribution function. The multiples of 4 from -3 to 8 weigh more."""
    rows, size, measure = sorted(rows), 12, CodeMeasure(12, -3, ((0.25, weight),))
    target, own = q * len(rows), [1 + weight * ((code - 3) % 4 == 0) for code in range(12)]
    column, random = SortedColumn(np.array(rows, dtype=np.int64), WholeNumbers(0, 11)), Scripted(u)
    drawn = draw_code(column, size=size, target=target, rate=rate, random=random, measure=measure)
    with mpmath.workdps(60):
        scores = [rate * score(rows, z, target) for z in range(size)]
        weights = [w * mpmath.exp(mpmath.mpf(s.numerator) / s.denominator) for w, s in zip(own, scores, strict=True)]
        point, running = mpmath.mpf(u) / 2**64 * sum(weights), list(itertools.accumulate(weights))
        right = next(z for z in range(size) if running[z] > point)
    counted = [(sum(x < z for x in rows), sum(x <= z for x in rows)) for z in range(size)]
    assert counted[drawn] == counted[right]  # the same piece of equal scores


def test_inside_a_piece_codes_have_the_shares_of_their_weights():
    """Of 4000 draws from 10 codes without rows, code 4 has 6/15: a deviation of five is 155."""
    random, measure = keyed_source(3), CodeMeasure(10, -4, ((0.1, 5),))
    empty = SortedColumn(np.empty(0, dtype=np.int64), WholeNumbers(0, 9))
    drawn = [
        draw_code(empty, size=10, target=Fraction(0), rate=Fraction(1), random=random, measure=measure)
        for _ in range(4000)
    ]
    found = np.bincount(drawn, minlength=10)
    assert abs(found[4] - 1600) < 155
    assert max(abs(np.delete(found, 4) - 4000 / 15)) < 80


def test_an_undecided_piece_is_left_to_a_wider_window():
    window = SortedColumn(np.arange(100), WholeNumbers(0, 99)).window(40, 60)
    sizes = _sizes(window, CodeMeasure(100))
    for choose in (_choose_fast, _choose_slow):
        assert choose(window, sizes, Fraction(50), Fraction(1), Uniform(0)) is None
        assert choose(window, sizes, Fraction(50), Fraction(1), Uniform(2**64 - 1)) is None
        assert choose(window, sizes, Fraction(50), Fraction(1), Uniform(2**63 + 2**61)) is not None
