"""Columns of odd numbers, and comparisons of the ranks of two columns."""

from __future__ import annotations

import numpy as np

from dpselect.ordered.order_statistics.intervals import SortedColumn

FLOATS = np.array([3.5, np.nan, -2.0, 3.5, 1e300, np.inf, -np.inf, 0.1, 7.25, 7.25, 7.25, 2.0])
WHOLE = np.array([5, 1, 1, 9, 2**62, -(2**63), 9, 9, 4], dtype=np.int64)


def reference(rows, domain):
    kept = rows[rows == rows]
    return SortedColumn(np.sort(kept), domain)


def same_ranks(column, other):
    assert column.total == other.total
    for first in range(1, other.total + 1):
        for last in (first, first + 2, other.total):
            mine, theirs = column.window(first, last), other.window(first, last)
            # a window may be wider than asked for: only what is in it and beside it must agree
            low, high = int(theirs.codes[0]), int(theirs.codes[-1])
            inside = (np.asarray(mine.codes) >= np.uint64(low)) & (np.asarray(mine.codes) <= np.uint64(high))
            assert np.array_equal(np.asarray(mine.codes)[inside], theirs.codes)
            assert np.array_equal(mine.counts[inside], theirs.counts)
            assert mine.before + int(mine.counts.sum()) + mine.after == other.total
            assert mine.before + int(mine.counts[np.asarray(mine.codes) < np.uint64(low)].sum()) == theirs.before
