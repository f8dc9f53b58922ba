"""Quantiles on a domain of few values: permute-and-flip over all of them (McKenna, Sheldon 2020)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms.flipping import draw_permute_and_flip
from dpselect.mechanisms.scores import read_scores
from dpselect.ordered.domains import threshold_in
from dpselect.ordered.order_statistics.intervals import RankedColumn, SortedColumn
from dpselect.ordered.round_values import MOST_CODES
from dpselect.ordered.sources.counted_ranks import CountedRanks
from dpselect.randomness import RandomSource

__all__ = ["MOST_CODES", "MOST_PARTS", "draw_flipped", "rows_below"]

MOST_PARTS = 1 << 20
"""Scores are counted in parts of a rank: the denominator of q times the units of a row. With so many parts at most, the
scores of up to 2**33 rows are exact in float64, and their products fit into 64 bits."""


def draw_flipped(column: RankedColumn, *, size: int, target: Fraction, rate: Fraction, random: RandomSource) -> int:
    """A code by permute-and-flip with the scores of `draw_code`, exactly. `rate` has the same meaning.

    It needs a target in at most `MOST_PARTS` parts of a rank, the units of a row counted in.

    Its law depends on differences of scores only, so the range of the changes between neighbours is what counts, as for
    the exponential mechanism. With many codes to a rank the two distributions are nearly the same. With many ranks to a
    code this one errs up to half as often.
    """
    below = rows_below(column, size)
    less, at_most = below[:-1], below[1:]
    # whole multiples of 1/denominator
    first, scale = target.numerator, target.denominator
    scores = np.minimum(at_most * scale - first, first - less * scale)
    return draw_permute_and_flip(read_scores(scores.astype(np.float64)), rate / scale, random)


def rows_below(column: RankedColumn, size: int) -> NDArray[np.int64]:
    """How many rows have a code below 0, 1, ..., size."""
    if isinstance(column, SortedColumn) and isinstance(column.values, np.ndarray) and len(column.values) > 16 * size:
        found = np.full(size + 1, len(column.values), dtype=np.int64)
        found[0] = 0
        fitting = [threshold_in(column.values.dtype, column.domain.threshold(code)) for code in range(1, size)]
        known = [edge for edge in fitting if edge is not None]
        if known:
            found[1 : len(known) + 1] = np.searchsorted(column.values, np.array(known), side="left")
        return found
    if isinstance(column, CountedRanks):
        return column.rows_below(size)
    window = column.window(1, column.total)
    counts = np.zeros(size + 1, dtype=np.int64)
    counts[np.asarray(window.codes, dtype=np.int64) + 1] = window.counts
    return np.cumsum(counts)
