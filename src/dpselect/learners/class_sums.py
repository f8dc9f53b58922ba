"""Noisy sums of the rows of each class: all that naive Bayes needs of a table, released once by the Gaussian mechanism.

Claim. Let every row have a vector z of norm at most R and a vector m of norm at most 1, both without negative entries.
m says to which classes the row belongs. The sum of all z m' is released, with independent Gaussian noise of standard
deviation D sigma on each number. That is a Gaussian mechanism of noise multiplier sigma. If rows are added or removed,
D = R is enough. If rows are replaced, D = sqrt(2) R is enough.

Proof. Write z m' as one vector v, of norm |z| |m| <= R. A row more moves the sum by v. A row in the place of another
moves it by v - v', and |v - v'|^2 = |v|^2 + |v'|^2 - 2 <v, v'>. No entry is negative, so <v, v'> >= 0 and that is at
most 2 R^2. QED

Two rows of different classes attain sqrt(2) R, so that no smaller D will do. With entries of both signs, D = 2 R would
be needed.

Rounding. Entries of z are multiples of `STEP` and those of m of `MEMBERSHIP_STEP`, so that sums are exact. The noise is
a rounded Gaussian on the grid of their products. D is rounded upwards.

Source: docs/theory/sufficient-statistics.md, Theorem 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.fixed_point import STEP
from dpselect.mechanisms.grid import gaussian_steps
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["MEMBERSHIP_STEP", "ClassSums", "log_ratios", "members_of"]

MEMBERSHIP_STEP: Final = 2.0**-14

_UP: Final = 1.0 + 2.0**-48
_GRID: Final = STEP * MEMBERSHIP_STEP
"""The grid of the noise, which must be many steps wide."""
_SPREAD: Final = 0.5
"""By how much, in parts of itself, the sum of a term in one class is expected to differ from its sum in all."""
_LEAST_RATIO: Final = 0.05
"""No term makes a class less probable by a larger factor."""


@dataclass(frozen=True)
class ClassSums:
    """The public numbers of one release. The theorem is that of the module.

    Attributes:
        noise_multiplier: sigma.
        row_norm: R.
        replace: a neighbour has one row replaced, not added or removed.
    """

    noise_multiplier: float
    row_norm: float
    replace: bool

    @property
    def deviation(self) -> float:
        """D sigma, the standard deviation of the noise on each number. Rounded up."""
        return self.row_norm * (math.sqrt(2.0) if self.replace else 1.0) * self.noise_multiplier * _UP

    def exact(self, rows: Array, members: Array) -> NDArray[np.int64]:
        """The sums without noise in units of `_GRID`, shape (columns, classes). Private.

        `rows` (z), shape (rows, columns), are multiples of `STEP`, and `members` (m) of `MEMBERSHIP_STEP`, shape
        (rows, classes). Their norms are at most R and 1, and no entry is negative: you must ensure this.
        """
        return ((rows.T @ members) / _GRID).astype(np.int64)

    def release(self, sums: NDArray[np.int64], random: RandomSource) -> Array:
        """The sums with noise, shape of `sums`."""
        return np.asarray((sums + gaussian_steps(self.deviation / _GRID, sums.shape, random)) * _GRID)


def members_of(classes: NDArray[np.integer[Any]], count: int) -> Array:
    """The rows of `members` for classes from 0 to `count` - 1, or -1 for a row that counts nowhere.

    >>> members_of(np.array([1, -1]), 2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return (classes[:, None] == np.arange(count)).astype(np.float64)


def log_ratios(sums: Array, deviation: float, entries: float) -> Array:
    """How much more a term occurs in a class than in all classes: a logarithm for each, shape of `sums`.

    A ratio is shrunk towards 1 by the noise of standard deviation `deviation`. The chance of the rows shrinks it too.
    The entries of a row sum to `entries` on average. The sums are released, so this costs nothing.

    >>> log_ratios(np.array([[90.0, 10.0], [10.0, 90.0], [1.0, -1.0]]), 1.0, 3.0).round(1)
    array([[ 0.6, -1.5],
           [-1.5,  0.6],
           [ 0. , -0.2]])
    """
    columns, classes = sums.shape
    of_classes = np.maximum(sums.sum(axis=0), deviation * math.sqrt(columns))
    of_terms = np.maximum(sums.sum(axis=1), deviation * math.sqrt(classes))
    expected = of_terms[:, None] * (of_classes / of_classes.sum())
    signal = (_SPREAD * expected) ** 2
    shrunk = (sums - expected) * signal / (signal + deviation**2 + expected / entries)
    return np.asarray(np.log(np.maximum(1.0 + shrunk / expected, _LEAST_RATIO)))
