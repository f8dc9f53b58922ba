"""Weights of terms for each class, from one release of noisy sums, and the scores that rows have by them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpselect.learners.class_sums import ClassSums, log_ratios
from dpselect.learners.containers import is_sparse
from dpselect.learners.fixed_point import exact_products
from dpselect.learners.rows import doubles, unit_rows
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["CONSTANT", "TermWeights", "table_of"]

_CELLS: Final = 2**22
"""So many are scaled at a time."""
CONSTANT: Final = 0.25
"""Appended to each row; its sums are the numbers of rows by class."""


@dataclass(frozen=True)
class TermWeights:
    """The public numbers of one release: a Gaussian mechanism of noise multiplier `noise_multiplier`.

    Attributes:
        noise_multiplier: sigma, as `ClassSums` has it.
        row_norm: rows are divided by it and scaled into the unit ball. Negative entries become 0.
        replace: a neighbour has one row replaced, not added or removed.
        places: the columns that are terms. None: all of them.
    """

    noise_multiplier: float
    row_norm: float
    replace: bool
    places: Sequence[int] | None = None

    def learn(self, X: Any, members: Array, class_weights: Array | None, random: RandomSource) -> Array:
        """The weights of the terms and of the constant, shape (terms + 1, classes).

        `members` are as `ClassSums.exact` takes them. The scores count the number of rows of each class times
        `class_weights`. None: all classes count alike.
        """
        norm = math.sqrt(1.0 + CONSTANT * CONSTANT) * (1.0 + 2.0**-50)
        release = ClassSums(noise_multiplier=self.noise_multiplier, row_norm=norm, replace=self.replace)
        terms = X.shape[1] if self.places is None else len(self.places)
        sums = np.zeros((terms + 1, members.shape[1]), dtype=np.int64)
        for part, rows in self._parts(X):
            sums += release.exact(rows, members[part])
        return _weights(release.release(sums, random), release.deviation, class_weights)

    def scores(self, X: Any, weights: Array) -> Array:
        """The scores of rows by these weights, each from its row alone, shape (rows, classes)."""
        found = np.zeros((X.shape[0], weights.shape[1]))
        for part, rows in self._parts(X):
            found[part] = exact_products(rows, weights)
        return found

    def _parts(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """The rows some at a time, each with where they are. X is a sparse table, or an array of any type."""
        table: Any = X.tocsr() if is_sparse(X) else X
        step = max(1, _CELLS // (X.shape[1] + 1))
        for start in range(0, X.shape[0], step):
            part = slice(start, start + step)
            found = table[part] if self.places is None else table[part][:, self.places]
            rows = unit_rows(found, self.row_norm, intercept=CONSTANT)
            yield part, np.maximum(rows, 0.0, out=rows)


def table_of(X: Any) -> Any:
    """X as `TermWeights` takes it: a sparse table or an array."""
    return X if is_sparse(X) or type(X) is np.ndarray else doubles(X)


def _weights(sums: Array, deviation: float, class_weights: Array | None) -> Array:
    """The weights of noisy sums, whose last row belongs to the constant. None: all classes count alike."""
    terms, constants = sums[:-1], sums[-1]
    numbers = np.maximum(constants, deviation) / CONSTANT
    entries = min(max(terms.sum() / numbers.sum(), 1.0), math.sqrt(len(terms)))
    of_classes = np.zeros(len(numbers))
    if class_weights is not None:
        of_classes = np.log(class_weights * numbers / numbers.sum())
    return np.vstack([entries * log_ratios(terms, deviation, entries), of_classes / CONSTANT])
