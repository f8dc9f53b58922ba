"""Trees that are drawn without a look at the labels, over public bins of the columns.

A tree asks one question a level, the same for all nodes of that level: whether the code of a column is on one side. So
a tree of depth D has 2**D leaves, and its shape is D columns and D sets of codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.encoding import Encoded
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["CodedColumns", "ColumnsTold", "RandomTree", "draw_tree", "pack_trees", "unpack_trees"]

Codes = NDArray[Any]

_WORD: Final = 48
"""Sides of so many codes are one double in a released model."""
_EXPLORED: Final = 0.2
"""The part of questions that go to columns evenly, and not by what their questions told before."""


@dataclass(frozen=True)
class CodedColumns:
    """Columns as small integers. `numbers` columns of numbers come first, then one for each group of indicators.

    A number has the code of its bin, one of `bins` equal ones between its bounds, and the code `bins` if it is missing.
    A category has its place in the group, or the size of the group where no indicator is set.
    """

    numbers: int
    bins: int
    groups: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has."""
        return (self.bins + 1,) * self.numbers + tuple(size + 1 for size in self.groups)

    @property
    def width(self) -> int:
        """The largest number of codes of a column."""
        return max(self.sizes)

    @property
    def kind(self) -> np.dtype[Any]:
        """The smallest type of codes."""
        return np.min_scalar_type(self.width - 1)

    def codes(self, row: Encoded) -> Codes:
        """The codes of encoded rows, each from that row alone, shape (columns, rows)."""
        found = np.empty((len(self.sizes), len(row.numbers)), dtype=self.kind)
        place = np.minimum(np.floor((row.numbers + 1.0) * (self.bins / 2.0)), self.bins - 1.0)
        found[: self.numbers] = np.where(row.present, place, self.bins).T
        start = 0
        for column, size in enumerate(self.groups, self.numbers):
            flags = row.indicators[:, start : start + size] >= 0.5
            found[column] = np.where(flags.any(axis=1), flags.argmax(axis=1), size)
            start += size
        return found


@dataclass(frozen=True, eq=False)
class RandomTree:
    """The column of each level, shape (depth,), and which codes are on its right side, shape (depth, width)."""

    columns: NDArray[np.intp]
    sides: NDArray[np.bool_]

    def leaves(self, codes: Codes) -> NDArray[np.intp]:
        """The leaf of each row, shape (rows,), for codes of shape (columns, rows). The first level counts most."""
        found = np.zeros(codes.shape[1], dtype=np.intp)
        for column, side in zip(self.columns, self.sides, strict=True):
            found += found
            found += side[codes[column]]
        return found


@dataclass
class ColumnsTold:
    """How much the questions about each column told so far, from released numbers."""

    told: Array
    asked: Array

    def learn(self, tree: RandomTree, values: Array, counts: Array) -> None:
        """Add the differences between both sides of each level."""
        depth = len(tree.columns)
        shape = (2,) * depth
        for level, column in enumerate(tree.columns):
            (left, right), (fewer, more) = (
                np.moveaxis(each.reshape(*shape, -1), level, 0) for each in (values, counts[:, None])
            )
            self.told[column] += float(np.sum(fewer * more / (fewer + more) * np.square(left - right)))
            self.asked[column] += 1.0

    def weights(self) -> Array:
        """The next questions are drawn by these, shape (columns,)."""
        mean = self.told / np.maximum(self.asked, 1.0)
        mean = np.where(self.asked > 0.0, mean, mean.max())
        even = np.full(len(mean), 1.0 / len(mean))
        return (1.0 - _EXPLORED) * mean / mean.sum() + _EXPLORED * even if mean.sum() > 0.0 else even


def draw_tree(
    known: CodedColumns, ranks: Sequence[Array], weights: Array, depth: int, random: RandomSource
) -> RandomTree:
    """Draw a tree: at each level a column by `weights`, and a threshold of numbers or a random set of categories.

    `ranks` are increasing noisy counts of the codes of each column of numbers. A threshold is drawn evenly by rank, so
    that it does not matter how the values are spread between the bounds. If they are all zero it is drawn evenly from
    the bins. A missing number goes to either side.
    """
    drawn, halves = random.uniform((depth, 2)), random.bernoulli(0.5, (depth, known.width))
    ends = np.cumsum(weights)
    columns = np.minimum(np.searchsorted(ends, drawn[:, 0] * ends[-1], side="right"), len(weights) - 1)
    codes = np.arange(known.width)
    for level, column in enumerate(columns):
        if column < known.numbers:
            counts = ranks[column]
            place = drawn[level, 1] * counts[-1]
            found = np.searchsorted(counts, place) if counts[-1] > 0.0 else int(drawn[level, 1] * known.bins)
            halves[level, : known.bins] = codes[: known.bins] > min(found, known.bins - 2)
        halves[level, known.sizes[column] :] = False
    return RandomTree(columns, halves)


def pack_trees(trees: Sequence[RandomTree]) -> tuple[Array, Array]:
    """Trees as two arrays of doubles: columns, shape (trees, depth), and sides, shape (trees, depth, words)."""
    sides = np.stack([tree.sides for tree in trees])
    room = -sides.shape[2] % _WORD
    words = np.pad(sides, ((0, 0), (0, 0), (0, room))).reshape(*sides.shape[:2], -1, _WORD)
    return np.stack([tree.columns for tree in trees]).astype(np.float64), words @ 2.0 ** np.arange(_WORD)


def unpack_trees(columns: Array, sides: Array, known: CodedColumns) -> list[RandomTree]:
    """The trees in two arrays of `pack_trees`. Any arrays of these shapes are trees, with any values.

    >>> known = CodedColumns(numbers=1, bins=4, groups=(2,))
    >>> tree = RandomTree(np.array([0, 1]), np.array([[0, 0, 1, 1, 1], [1, 0, 0, 0, 0]], dtype=bool))
    >>> (again,) = unpack_trees(*pack_trees([tree]), known)
    >>> again.columns.tolist(), again.sides.tolist() == tree.sides.tolist()
    ([0, 1], True)
    """
    places = np.clip(np.nan_to_num(columns), 0, len(known.sizes) - 1).astype(np.intp)
    words = np.clip(np.nan_to_num(sides), 0.0, 2.0**_WORD - 1.0).astype(np.int64)
    bits = (words[..., None] >> np.arange(_WORD)) & 1
    flat = bits.reshape(*bits.shape[:2], -1)[:, :, : known.width].astype(bool)
    return [RandomTree(column, side) for column, side in zip(places, flat, strict=True)]
