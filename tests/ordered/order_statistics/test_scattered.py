"""Ties broken at random: rows keep their finer position inside their value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered.order_statistics.intervals import window_of
from dpselect.ordered.order_statistics.scattered import ScatteredColumn
from dpselect.ordered.sources.columns import CountedColumn
from dpselect.randomness import keyed_source


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.integers(0, 15), min_size=1, max_size=40),
    asked=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=6),
    whole=st.booleans(),
)
def test_fine_places_stay_and_never_leave_their_value(rows, asked, whole):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.ordered.order_statistics.scattered._WHOLE", 100 if whole else 0)
        fine_places_stay(rows, asked)


def fine_places_stay(rows, asked):
    bits = 3
    coarse = CountedColumn(window_of(np.sort(np.array(rows, dtype=np.uint64)), 0, 0))
    fine = ScatteredColumn(coarse, bits, keyed_source(1))
    seen = []
    for first, span in asked:
        window = fine.window(min(first, len(rows)), min(first + span, len(rows)))
        seen.append(window)
    everything = fine.window(1, len(rows))
    assert sorted(np.repeat(everything.codes >> np.uint64(bits), everything.counts).tolist()) == sorted(rows)
    places = np.repeat(everything.codes, everything.counts)
    for window in seen:
        assert window.before == np.sum(places < window.codes[0])
        assert window.after == np.sum(places > window.codes[-1])
        kept = np.repeat(window.codes, window.counts)
        assert np.array_equal(kept, places[window.before : len(places) - window.after])
