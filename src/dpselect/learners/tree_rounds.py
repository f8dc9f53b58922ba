"""The rounds of private boosting: each draws a tree, asks the table for noisy sums over its leaves, and adds it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.fixed_point import truncate
from dpselect.learners.leaf_values import LeafPrior
from dpselect.learners.monotone import monotone
from dpselect.learners.random_trees import CodedColumns, ColumnsTold, RandomTree, draw_tree, pack_trees
from dpselect.learners.tree_sums import TreeSums, add_noise
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource
from dpselect.steps import each_step

__all__ = ["CHUNK", "CodedRows", "TreeRounds"]

CHUNK: Final = 2**15
"""So many rows are taken at a time."""
_RANKS: Final = 0.03
"""The share of mu squared that counts the bins of the columns."""
_CLIPPED: Final = 0.15
"""The share of rows whose gradients are to be clipped."""
_LEAST_CLIP: Final = {False: 2.0**-10, True: 0.5}
"""The least clip in units of the first, of errors of numbers and of classes: a rare class has few rows, all clipped."""
_CLIP_RATE: Final = 0.5
_EVEN: Final = 0.1
"""The part of trees that are drawn before questions are weighted by what earlier ones told."""
_DOWN: Final = 1.0 - 2.0**-40


@dataclass(frozen=True)
class CodedRows:
    """The rows that train, shape (rows,) each but for the first and the last.

    Attributes:
        codes: of shape (columns, rows).
        targets: numbers of classes, or numbers to predict.
        counted: the weight of each row from 0 to 1, or None for 1.
        scores: where boosting starts, of shape (rows, outputs). The rounds add to them.
    """

    codes: NDArray[Any]
    targets: NDArray[Any]
    counted: Array | None
    scores: Array


@dataclass(frozen=True)
class TreeRounds:
    """The public numbers of the rounds of one fit.

    Attributes:
        known: the coded columns.
        noise_multiplier: sigma of all rounds together.
        trees: the number of rounds.
        depth: the number of questions of a tree.
        learning_rate: the share of a tree's estimated values that is added.
        rows: the public number of rows.
        replace: a neighbour has one row replaced, not added or removed.
        signs: the columns that answers must rise or fall with, as `monotone` takes them.
    """

    known: CodedColumns
    noise_multiplier: float
    trees: int
    depth: int
    learning_rate: float
    rows: float
    replace: bool
    signs: Sequence[int]

    def run(
        self, rows: CodedRows, errors_of: Callable[[Array, NDArray[Any]], Array], random: RandomSource
    ) -> tuple[Array, Array, Array]:
        """The trees as `pack_trees` has them, and the values of their leaves, shape (trees, leaves, outputs).

        `errors_of` makes the errors of rows, shape (rows, outputs), from their scores and targets: multiples of `STEP`,
        each row's from that row alone.
        """
        outputs = rows.scores.shape[1]
        sums = TreeSums(self.noise_multiplier, self.trees, self.known.numbers, _RANKS, self.replace)
        ranks = self._ranks(rows.codes, sums, random)
        first = 0.5 if outputs == 1 else math.sqrt(1.0 - 1.0 / outputs)
        clip, least = first, first * _LEAST_CLIP[outputs > 1]
        prior, columns = LeafPrior(self.depth), ColumnsTold(*np.zeros((2, len(self.known.sizes))))
        where = np.zeros(len(rows.scores), dtype=np.uint8)
        drawn: list[RandomTree] = []
        values = [np.zeros((1 << self.depth, outputs))]
        for place in each_step("trees", self.trees):
            weights = np.ones(len(self.known.sizes)) if place < _EVEN * self.trees else columns.weights()
            tree = draw_tree(self.known, ranks, weights, self.depth, random)
            totals, counts, clipped = _asked(rows, tree, (values[-1], where), clip, errors_of)
            totals = add_noise(totals, sums.gradient_deviation, random)
            counts = np.maximum(add_noise(counts, sums.count_deviation, random), max(sums.count_deviation / 2.0, 1.0))
            share = float(add_noise(clipped, sums.clipped_deviation, random)[0]) / self.rows
            means = prior.estimate(totals / counts[:, None], sums.gradient_deviation / counts)
            means = monotone(means, tree.columns, self.signs) if self.signs else means
            columns.learn(tree, means, counts)
            drawn.append(tree)
            # the loss bends by 1 in each score of a number, and by about one over the number of classes in theirs
            values.append(means * (self.learning_rate * clip * outputs))
            clip = min(max(clip * math.exp(_CLIP_RATE * (min(share, 1.0) - _CLIPPED)), least), first)
        return *pack_trees(drawn), np.stack(values[1:])

    def _ranks(self, codes: NDArray[Any], sums: TreeSums, random: RandomSource) -> list[Array]:
        """Increasing noisy counts of the bins of each column of numbers."""
        found, bins = [], self.known.bins
        for column in codes[: self.known.numbers]:
            counts = np.bincount(column, minlength=bins + 1)[:bins].astype(np.float64)
            noisy = np.cumsum(add_noise(counts, sums.rank_deviation, random))
            found.append(np.maximum.accumulate(np.maximum(noisy, 0.0)))
        return found


def _asked(
    rows: CodedRows,
    tree: RandomTree,
    last: tuple[Array, NDArray[np.uint8]],
    clip: float,
    errors_of: Callable[[Array, NDArray[Any]], Array],
) -> tuple[Array, Array, Array]:
    """The exact sums of clipped gradients and of weights in each leaf of the tree, and the number of clipped rows.

    `last` are the values of the last tree and the leaf of each row in it. Scores are brought up to date with them, and
    the leaves become those of this tree.
    """
    values, where = last
    totals, counts, clipped = np.zeros_like(values), np.zeros(len(values)), np.zeros(1)
    for begin in range(0, len(rows.scores), CHUNK):
        part = slice(begin, begin + CHUNK)
        rows.scores[part] += values[where[part]]
        found = tree.leaves(rows.codes[:, part])
        where[part] = found
        errors = errors_of(rows.scores[part], rows.targets[part])
        norms = np.sqrt(np.einsum("ij,ij->i", errors, errors))
        counted = None if rows.counted is None else rows.counted[part]
        factors = _DOWN / np.maximum(norms, clip)
        unit = truncate(errors * (factors if counted is None else factors * counted)[:, None])
        totals += np.stack([np.bincount(found, each, len(values)) for each in unit.T], axis=1)
        counts += np.bincount(found, counted, len(values))
        clipped += np.count_nonzero(norms > clip)
    return totals, counts, clipped
