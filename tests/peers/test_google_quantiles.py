"""Google's differential-privacy libraries in Java, C++ and Go (main branch of 2026-08-06, b5b0286): their quantiles.

`BoundedQuantilesTest.java`, `quantiles_test.cc`, `quantiles_test.go` and `approx-bounds_test.cc`. Theirs run without
noise. Ours has no mode without noise, so epsilon is large and answers are off by less than one row.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import private_range, quantile, quantiles
from dpselect.randomness import keyed_source

pytestmark = pytest.mark.peers

ROWS = np.random.default_rng(7).uniform(-25.0, 25.0, 1001)
RANKS = np.linspace(0.005, 0.995, 199)
"""Theirs moves a rank to between .005 and .995. Ours does not, and says of the ends what `rank_error` allows."""
CELL = 0.01


def ours(rows, rank, *, lower=-50.0, upper=50.0, key=1, epsilon=1000.0):
    found = quantile(
        rows, q=float(rank), epsilon=epsilon, lower=lower, upper=upper, granularity=CELL, random=keyed_source(key)
    )
    return float(found.value)


def test_near_the_true_quantile(compare):
    """`computeResult_resultApproximatesTrueQuantile`, `ApproximatesTrueQuantile`, `TestBQAdd`: within a cell.

    The rank of a quantile is rounded in other ways, so the neighbouring rows count as well.
    """
    with compare("google-quantiles") as peer:
        ordered = np.sort(ROWS)
        for rank in RANKS:
            place = round(rank * 1000)
            low, high = ordered[max(place - 1, 0)] - 2 * CELL, ordered[min(place + 1, 1000)] + 2 * CELL
            peer.between(low, ours(ROWS, rank), high, rank)


def test_rows_outside_the_bounds(compare):
    """`..._resultGreaterOrEqualToLowerBound` and `..._resultLessOrEqualToUpperBound`, `TestBQClamp`."""
    with compare("google-quantiles") as peer:
        for rank in RANKS[::4]:
            below = ours([-100.0] * 1000, rank, lower=-1.0)
            peer.between(-1.0, below, -1.0 + 2 * CELL, rank)
            above = ours([100.0] * 1000, rank, upper=1.0)
            peer.between(1.0 - 2 * CELL, above, 1.0, rank)
            peer.close(
                ours(ROWS, rank, lower=-5.0, upper=5.0),
                ours(np.clip(ROWS, -5.0, 5.0), rank, lower=-5.0, upper=5.0),
                rank,
            )


def test_order_of_the_rows(compare):
    """`computeResult_invariantToEntryOrder` with the step 643 in 997 rows; in bulk or one by one."""
    with compare("google-quantiles") as peer:
        some = ROWS[:997]
        other = some[np.arange(997) * 643 % 997]
        for rank in RANKS[::2]:
            peer.close(ours(some, rank), ours(other, rank), rank)
            peer.close(ours(some, rank), ours(some.tolist(), rank), rank)


def test_missing_numbers(compare):
    """`addEntry_ignoresNanValues`, `addEntries_ignoresNanValues`, `IgnoresNaN`, `TestBQAddIgnoresNaN`."""
    with compare("google-quantiles") as peer:
        for rank in RANKS[::2]:
            whole = ours([10.0, 20.0, 3.0], rank)
            peer.close(ours([10.0, math.nan, 20.0, math.nan, 3.0, math.nan], rank), whole, rank)
            peer.close(ours([5.0] * 9 + [math.nan] * 100, rank), ours([5.0] * 9, rank), rank)


def test_several_quantiles_rise(compare):
    """`computeResult_increasesMonotonicallyAsRankIncreases`, with noise: 40 draws at a small epsilon."""
    with compare("google-quantiles") as peer:
        ranks = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
        for key in range(40):
            found = quantiles(
                ROWS, qs=ranks, epsilon=0.5, lower=-50.0, upper=50.0, granularity=CELL, random=keyed_source(key)
            )
            values = [float(value) for value in found.value]
            peer.holds(values == sorted(values), key, values)


def test_no_rows(compare):
    """`computeResult_emptySetOfEntries_...` and `TestBQNoInput`: theirs answers by the rank, ours by a uniform draw.

    Both are in the range, whatever the rank. A definition of a quantile of no rows there is not.
    """
    with compare("google-quantiles") as peer:
        for number, rank in enumerate(RANKS[::4]):
            peer.between(-50.0, ours([], rank, key=number), 50.0, rank)


def test_wrong_arguments(compare):
    """`computeResult_rankLessThanZero_throwsException` and others, `InvalidParametersTest`, builders' tests.

    Equal bounds are refused there. Ours answers the only value that there is.
    """
    with compare("google-quantiles") as peer:
        for rank in (-0.1, 1.1, -1.0, 1.5, math.nan, math.inf):
            peer.refuses(ArgumentError, lambda r=rank: ours(ROWS, r), rank)
        for low, high in ((2.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (-math.inf, 1.0), (0.0, math.inf)):
            peer.refuses(ArgumentError, lambda a=low, b=high: ours(ROWS, 0.5, lower=a, upper=b), low, high)
        for epsilon in (0.0, -1.0, math.nan, math.inf):
            peer.refuses(ArgumentError, lambda e=epsilon: ours(ROWS, 0.5, epsilon=e), epsilon)
        peer.refuses(ArgumentError, lambda: quantile(ROWS, q=0.5, epsilon=1.0))
        peer.refuses(ArgumentError, lambda: quantile(ROWS, q=0.5, epsilon=1.0, lower=0.0, granularity=CELL))
        peer.refuses(ArgumentError, lambda: quantiles(ROWS, qs=[], epsilon=1.0, lower=0.0, upper=1.0, granularity=CELL))
        peer.close(ours(ROWS, 0.5, lower=1.0, upper=1.0), 1.0)


LARGEST = float(np.finfo(float).max)
RANGES = [
    ([0, -5, -5, -7, 7, 7, 3, -6, 6, 5, 1], (-8.0, 8.0)),
    ([LARGEST] * 30 + [-LARGEST] * 30, (-LARGEST, LARGEST)),
    ([float(-(2**31))] * 5 + [float(2**31 - 1)] * 5, (-(2.0**31), 2.0**31)),
    ([float(-(2**63))] * 5 + [float(2**63)] * 5, (-(2.0**63), 2.0**64)),
    ([-5.0, -6.0, -7.0] * 9, (-8.0, -4.0)),
    ([3.0] * 50, (2.0, 4.0)),
    ([1.0, 1.0, 1.0, math.nan] * 9, (1.0, 2.0)),
    ([0.25, 0.3, 0.4] * 9, (0.25, 0.5)),
    ([-1.0, -11.0, 6.0, 3.0, 5.0, 15.0, 56.0], (-16.0, 64.0)),
    ([math.inf] * 20 + [-math.inf] * 20, (-LARGEST, LARGEST)),
]


def test_bounds_without_bounds(compare):
    """`approx-bounds_test.cc`, bins by powers of two: the bounds cover the rows and the next power of two does not.

    A threshold of theirs drops rare rows. Ours keeps all but `2 e` of them at a large epsilon, e below 1.
    """
    with compare("google-quantiles") as peer:
        for rows, (low, high) in RANGES:
            found = private_range(rows, epsilon=1e5, random=keyed_source(1)).value
            present = [row for row in rows if math.isfinite(row)] or [-LARGEST, LARGEST]
            peer.holds(found[0] <= min(present) and found[1] >= max(present), rows[:3], found)
            peer.close(found[0], low, rows[:3], found)
            peer.close(found[1], high, rows[:3], found)
        for epsilon in (0.0, -1.0, math.nan, math.inf):
            peer.refuses(ArgumentError, lambda e=epsilon: private_range([1.0], epsilon=e), epsilon)
        for probability in (0.0, 1.0, -0.5, math.nan):
            options = {"epsilon": 1.0, "failure_probability": probability}
            peer.refuses(ArgumentError, lambda o=options: private_range([1.0], **o), probability)
        low, high = private_range([], epsilon=1.0, random=keyed_source(1)).value
        peer.holds(low <= high, low, high)
