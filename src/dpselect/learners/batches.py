"""Unit rows for many passes: kept in half the memory, their norms computed once, a few at a time in the cache.

Entries of unit rows are multiples of `STEP` of at most 1, so 17 bits hold them and a float32 is exact. Each pass turns
a few rows into float64 again, which changes no bit, and all that follows is computed in float64. So the sums stay exact
(`fixed_point`) and do not depend on how many rows are taken at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.containers import is_sparse
from dpselect.learners.fixed_point import truncate
from dpselect.learners.rows import doubles, unit_rows
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["Batch", "Batches", "poisson_sample"]

_CELLS: Final = 2**18
"""Cells of a batch: 2 MiB of float64, which stay in the cache between the two products of a step."""
_MOST: Final = 2**15
"""Rows of a batch."""


@dataclass(frozen=True)
class Batch:
    """Some of the rows.

    Attributes:
        rows: shape (rows, features), valid until the next batch is taken.
        squares: the squared norm of each row, shape (rows,).
        which: the places of these rows in the table, for arrays that go with it.
    """

    rows: Array
    squares: Array
    which: slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Batches:
    """The rows of a table, shape (rows, features), as float32, with their squared norms, shape (rows,)."""

    cells: NDArray[np.float32]
    squares: Array

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Keep these rows, shape (rows, features), which must be multiples of `STEP` of at most 1."""
        return cls(rows.astype(np.float32), np.einsum("ij,ij->i", rows, rows))

    @classmethod
    def of_table(cls, X: Any, known: NDArray[np.bool_], row_norm: float, intercept: float) -> Self:
        """The rows of X that are `known`, as `unit_rows` makes them, with room for a few as float64."""
        sparse = is_sparse(X)
        table: Any = X.tocsr() if sparse else X if type(X) is np.ndarray else doubles(X)
        features = table.shape[1] + bool(intercept)
        count, constant = np.count_nonzero(known), float(truncate(np.array(intercept)))
        cells, squares = np.full((count, features), constant, dtype=np.float32), np.empty(count)
        done, many = 0, _rows_at_a_time(features)
        for start in range(0, len(known), many):
            which = known[start : start + many]
            part = table[start : start + many] if which.all() else table[start : start + many][which]
            rows = unit_rows(part.toarray() if sparse else part, row_norm, intercept=0.0)
            end = done + len(rows)
            cells[done:end, : table.shape[1]] = rows
            squares[done:end] = np.einsum("ij,ij->i", rows, rows) + constant * constant
            done = end
        return cls(cells, squares)

    def __len__(self) -> int:
        return len(self.cells)

    def parts(self, sample: NDArray[np.intp] | None = None) -> Iterator[Batch]:
        """All rows, or those of a sample, a few at a time."""
        many, count = _rows_at_a_time(self.cells.shape[1]), len(self) if sample is None else len(sample)
        room = np.empty((min(many, count), self.cells.shape[1]))
        for start in range(0, count, many):
            which = slice(start, start + many) if sample is None else sample[start : start + many]
            found = self.cells[which]
            rows = room[: len(found)]
            rows[...] = found
            yield Batch(rows, self.squares[which], which)


def _rows_at_a_time(features: int) -> int:
    return min(max(_CELLS // features, 64), _MOST)


def poisson_sample(rate: float, count: int, random: RandomSource) -> NDArray[np.intp] | None:
    """Take each of `count` rows with probability `rate`, up to 2**-64: their places in order, or None for all of them.

    Claim: the sample has the distribution of `random.bernoulli(rate, count)`, whose coin is a word of 64 bits below
    t = floor(rate 2**64). Proof: if t has 64 - k bits, such a word has k leading zeros, and the rest of it is below t.
    Here the leading bits of all rows are drawn first, one row a bit, and the rest for rows where they are zeros alone.
    QED

    So the time is that of k count / 64 words and of the rows taken.

    >>> from dpselect.randomness import keyed_source
    >>> len(poisson_sample(0.01, 100_000, keyed_source(1)))
    955
    """
    if rate >= 1.0:
        return None
    below = int(rate * 2.0**64)
    leading = 64 - below.bit_length()
    ones = np.full(-(-count // 64), 2**64 - 1, dtype=np.uint64)
    for _ in range(leading):
        ones &= random.words(len(ones))
    octets = ones.view(np.uint8)
    some = np.flatnonzero(octets != 0)
    bits = np.flatnonzero(np.unpackbits(octets[some]).view(bool))
    places = some[bits >> 3] * 8 + (bits & 7)
    places = places[: np.searchsorted(places, count)]
    return np.asarray(places[random.words(len(places)) < np.uint64(below << leading)])
