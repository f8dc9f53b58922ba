"""Ties broken at random: rows keep their finer position inside their value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered.domains import Timestamps, WholeNumbers
from dpselect.ordered.order_statistics.intervals import window_of
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, _high, fine_bits, fine_codes
from dpselect.ordered.round_values import CodeMeasure, measure_of, points_at_most
from dpselect.ordered.sources.columns import CountedColumn
from dpselect.ordered.sources.declared import Column
from dpselect.randomness import keyed_source


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.integers(0, 15), min_size=1, max_size=40),
    asked=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=6),
    whole=st.booleans(),
    wide=st.booleans(),
    weight=st.integers(0, 100),
)
def test_fine_places_stay_and_never_leave_their_value(rows, asked, whole, wide, weight):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.ordered.order_statistics.scattered._WHOLE", 100 if whole else 0)
        fine_places_stay(rows, asked, CodeMeasure(16, -3, ((0.25, weight),) if weight else ()), wide=wide)


def fine_places_stay(rows, asked, measure, *, wide):
    bits = 3
    coarse = CountedColumn(window_of(np.sort(np.array(rows, dtype=np.uint64)), 0, 0))
    fine = ScatteredColumn(coarse, bits, keyed_source(1), measure, wide)
    seen = []
    for first, span in asked:
        window = fine.window(min(first, len(rows)), min(first + span, len(rows)))
        seen.append(window)
    everything = fine.window(1, len(rows))
    places = np.repeat(np.asarray(everything.codes, dtype=np.uint64), everything.counts)
    assert [measure.code_at(place >> bits) for place in places.tolist()] == sorted(rows)
    for window in seen:
        assert window.before == np.sum(places < window.codes[0])
        assert window.after == np.sum(places > window.codes[-1])
        kept = np.repeat(window.codes, window.counts)
        assert np.array_equal(kept, places[window.before : len(places) - window.after])


@pytest.mark.parametrize("size", [1, 4096, 4097, 6000, 3 << 40, 1 << 52, 1 << 63, 1 << 64])
def test_a_run_has_no_more_places_than_its_stated_error_counts(size):
    """Also with equal weights, such as those of timestamps: both use the bits of the largest measure."""
    domain = Timestamps(0, size - 1, "s") if size < 1 << 62 else WholeNumbers(0, size - 1)
    assert measure_of(domain).points <= points_at_most(size)
    assert points_at_most(size) << fine_bits(size) <= max(1 << 64, points_at_most(size))
    values = np.zeros(3, dtype="datetime64[s]")
    if size < 1 << 62:
        column = Column(values, lower=0, upper=size - 1)
        assert column.scattered(keyed_source(1)).bits == fine_bits(column.domain.size)


class Scripted:
    """Evenly spaced words."""

    def words(self, count):
        return np.array([(2 * k + 1) * 2**63 // count for k in range(count)], dtype=np.uint64)


@pytest.mark.theorem("docs/theory/round-values.md, Theorem 2", exact=True, loose="it states the noise, not a number")
def test_a_row_is_anywhere_in_the_weight_of_its_code():
    """Code 4 of 10 has weight 6, so 24 places from 16 on: each is met by one of 24 evenly spaced words."""
    measure, code = CodeMeasure(10, -4, ((0.1, 5),)), np.array([4], dtype=np.uint64)
    fine = fine_codes(code, np.array([24]), measure, 2, Scripted())
    assert fine.tolist() == list(range(16, 40))


@given(first=st.integers(0, 2**64 - 1), second=st.integers(0, 2**64 - 1))
def test_the_upper_half_of_a_product_is_exact(first, second):
    found = _high(np.array([first], dtype=np.uint64), np.array([second], dtype=np.uint64))
    assert int(found[0]) == first * second >> 64
