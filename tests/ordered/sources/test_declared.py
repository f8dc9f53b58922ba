"""A declared column: its domain does not depend on the rows, and weights count as copies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import (
    quantile,
)
from dpselect.ordered.order_statistics.intervals import window_of
from dpselect.ordered.order_statistics.one import rank_error
from dpselect.ordered.round_values import points_at_most
from dpselect.ordered.sources.declared import Column
from dpselect.randomness import keyed_source
from tests.ordered.sources import column_laws as laws


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
    points = points_at_most(released.domain_size)
    assert released.rank_error(0.05) == pytest.approx(rank_error(points, Fraction(2), 0.05))


def test_atoms_of_streams_are_counted():
    values = np.concatenate([np.arange(100.0), np.full(200_000, 50.0), np.arange(100.0)])
    column = Column(values, lower=0.0, upper=100.0, granularity=1.0).ranked()
    window = column.window(100_000, 100_010)
    assert (window.before, window.codes.tolist(), window.counts.tolist(), window.after) == (100, [50], [200_002], 98)


EMPTY_AND_ONE = {
    "list": ([], [0]),
    "list and a half": ([0], [0, 0.5]),
    "list of a missing value": ([], [None]),
    "tuple": ((), (0,)),
    "array": (np.empty(0, dtype=np.int64), np.array([0])),
    "sorted": (np.empty(0, dtype=np.int32), np.array([0], dtype=np.int32)),
    "moments": (np.empty(0, dtype="datetime64[s]"), np.array([0], dtype="datetime64[s]")),
    "chunks": (lambda: iter([np.empty(0, dtype=int)]), lambda: iter([np.array([0])])),
    "chunks that are lists": (lambda: iter([[0]]), lambda: iter([[0], [0.5]])),
}


@pytest.mark.parametrize("name", EMPTY_AND_ONE)
def test_the_domain_does_not_depend_on_the_rows(name):
    """Broken: NumPy's guess makes integers of [0], doubles of [] and of [0, 0.5], and the answer tells which."""
    bounds = {"lower": 0, "upper": 3}
    if name == "moments":
        bounds = {side: np.datetime64(bound, "s") for side, bound in bounds.items()}
    domains = [Column(rows, assume_sorted=name == "sorted", **bounds).domain for rows in EMPTY_AND_ONE[name]]
    assert domains[0] == domains[1]


def test_weights_beside_missing_values_are_read():
    pa = pytest.importorskip("pyarrow")
    rows = pa.array([1, None, 3], pa.int64())
    found = laws.ranks(rows, lower=0, upper=9, weights=[1.0, 1.0, None])
    assert found[1] == {1: 1024}


@pytest.mark.parametrize(("low", "high"), [(3, 5), (2, 4)])
def test_all_units_of_a_row_fall_at_one_place(low, high):
    """With even codes too: the lowest bit of an odd one hides a place that is a bit too long."""
    values, weights = np.array([low, low, low, high] * 8), np.array([1.0, 0.5, 0.25, 1.0] * 8)
    declared = Column(values, lower=0, upper=7, weights=weights)
    column = declared.scattered(keyed_source(1))
    window = column.window(1, column.total)
    assert sorted(window.counts.tolist()) == [256] * 8 + [512] * 8 + [1024] * 16
    assert sorted(int(code) >> 61 for code in window.codes) == [low] * 24 + [high] * 8
