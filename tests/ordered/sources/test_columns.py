"""The same rows have the same ranks in every container. Large columns are neither sorted nor kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered import (
    learn_rectangle,
    learn_threshold,
    quantiles,
)
from dpselect.ordered.domains import Binades, Grid, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn, window_of
from dpselect.ordered.sources import columns
from dpselect.ordered.sources.columns import ChunkedColumn, PaddedColumn
from dpselect.randomness import keyed_source
from tests.ordered.sources.columns_cases import reference, same_ranks

FLOAT_DOMAIN, WHOLE_DOMAIN = Grid(-40, 80, Fraction(1, 8)), WholeNumbers(0, 2**40)


@pytest.mark.full
@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.floats(width=32) | st.sampled_from([0.0, 1.0, 1.0625, 1.125]), max_size=60),
    dtype=st.sampled_from([np.float32, np.float64, np.float16]),
    pieces=st.integers(1, 4),
)
def test_chunks_of_any_type_agree_with_a_sorted_array(rows, dtype, pieces):
    with np.errstate(over="ignore"):
        values = np.array(rows, dtype=dtype)
    for domain in (FLOAT_DOMAIN, Binades()):
        column = ChunkedColumn(lambda: iter(np.array_split(values, pieces)), domain)
        same_ranks(column, reference(values, domain))


def test_samples_that_mislead_cost_a_second_reading_and_nothing_else(monkeypatch):
    monkeypatch.setattr("dpselect.ordered.sources.columns._SAMPLE", 8)
    # every value that the sample meets is 0
    values = np.where(np.arange(4000) % 4 == 0, 0.0, np.linspace(1.0, 9.0, 4000))
    column = ChunkedColumn(lambda: iter([values]), FLOAT_DOMAIN)
    other = SortedColumn(np.sort(values), FLOAT_DOMAIN)
    mine, theirs = column.window(2500, 2520), other.window(2500, 2520)
    assert mine.before <= theirs.before
    assert set(theirs.codes.tolist()) <= set(mine.codes.tolist())


def test_ties_are_kept_as_counts(monkeypatch):
    monkeypatch.setattr("dpselect.ordered.sources.columns._KEEP", 1000)
    values = np.tile(np.array([0.0, 1.0, 1.0, 2.0]), 25_000)
    column = ChunkedColumn(lambda: iter(np.array_split(values, 50)), FLOAT_DOMAIN)
    window = column.window(1, 100_000)
    assert window.counts.tolist() == [25_000, 50_000, 25_000]


@pytest.mark.parametrize("ties_first", [False, True])
def test_different_values_are_sorted_and_not_merged_until_ties_are_many(monkeypatch, ties_first):
    monkeypatch.setattr("dpselect.ordered.sources.columns._KEEP", 1000)
    merged = []
    merge = columns.counted_window
    monkeypatch.setattr(columns, "counted_window", lambda *parts: merged.append(len(parts[0])) or merge(*parts))
    parts = [np.random.default_rng(1).normal(size=20_000), np.repeat(np.arange(-4.0, 4.0), 10_000)]
    values = np.concatenate(parts[::-1] if ties_first else parts)
    domain = Grid(-(2**40), 2**40, Fraction(1, 2**30))
    column = ChunkedColumn(lambda: iter(np.array_split(values, 100)), domain)
    window, whole = column.window(1, len(values)), SortedColumn(np.sort(values), domain).window(1, len(values))
    assert window.codes.tolist() == whole.codes.tolist()
    assert window.counts.tolist() == whole.counts.tolist()
    assert ties_first or len(merged) < 8
    merged.clear()
    ChunkedColumn(lambda: iter(np.array_split(parts[0], 40)), domain).window(1, 20_000)
    assert not merged


def test_many_quantiles_of_chunks_take_few_readings():
    readings = []
    rows = np.random.default_rng(2).normal(size=400_000)

    def chunks():
        readings.append(1)
        return iter(np.array_split(rows, 8))

    released = quantiles(
        chunks, qs=[k / 10 for k in range(1, 10)], lower=-9.0, upper=9.0, epsilon=1.0, random=keyed_source(1)
    )
    assert np.allclose(released.value, np.quantile(rows, [k / 10 for k in range(1, 10)]), atol=0.01)
    assert len(readings) <= 4  # the type, a survey, a prefetch, and one to spare


def test_rules_learned_from_lists_are_over_doubles_too():
    options = {"lower": 0, "upper": 3, "epsilon": 1.0}
    for rows in ([], [1], [0.5]):
        assert learn_threshold(rows, [1] * len(rows), **options).value.domain.size > 4
    for rows in ([[1]], [[0.5]]):
        assert learn_rectangle(rows, [1], **options).value.domains[0].size > 4


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


@pytest.mark.parametrize("total", [0, 1, 50_000])
def test_chunks_give_the_same_ranks_as_an_array(total):
    rows = np.random.default_rng(1).normal(size=total)
    domain = Grid(-(2**20), 2**20, Fraction(1, 2**16))
    chunked = ChunkedColumn(lambda: iter(np.array_split(rows, 7)), domain)
    spans = [(100, 120), (total // 2, total // 2 + 40), (total - 5, total)]
    chunked.prefetch(spans)
    ordered = SortedColumn(np.sort(rows), domain)
    for first, last in spans:
        mine, theirs = chunked.window(first, last), ordered.window(first, last)
        assert (mine.before, mine.after) == (theirs.before, theirs.after)
        assert np.array_equal(mine.codes, theirs.codes)
        assert np.array_equal(mine.counts, theirs.counts)


def test_chunks_count_a_heavy_atom_where_they_collect_none_of_it():
    rows = np.random.default_rng(2).permutation(np.append(np.zeros(40_000), np.linspace(-1.0, 1.0, 9_000)))
    domain = Grid(-(2**20), 2**20, Fraction(1, 2**16))
    passes = []
    chunked = ChunkedColumn(lambda: passes.append(1) or iter(np.array_split(rows, 7)), domain)
    ordered = SortedColumn(np.sort(rows), domain)
    for number, (first, last) in enumerate(((20_000, 20_040), (4000, 4100), (44_000, 45_000)), start=1):
        mine, theirs = chunked.window(first, last), ordered.window(first, last)
        assert (mine.before, mine.after) == (theirs.before, theirs.after)
        assert (mine.codes.tolist(), mine.counts.tolist()) == (theirs.codes.tolist(), theirs.counts.tolist())
        assert len(passes) == 1 + number  # a survey, and one for each: a wrong count would be read again, wider
