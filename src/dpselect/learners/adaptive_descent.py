"""Least squares by preconditioned noisy gradients, whose bound on a row's gradient follows a noisy count.

A bound on gradients that is too small makes least squares a fit of medians. One that is too large is paid for in noise.
The right one depends on how large the errors are, and that is private. So each step also releases how many gradients
were clipped, and the next bound follows (Andrew, Thakkar, McMahan, Ramaswamy 2021, arXiv 1905.03871). And
columns of unlike variance need many steps unless each direction has a rate of its own. So X'X is released first, with a
small share of the budget. It only says how far a step goes: its noise moves no fixed point.

Source: docs/theory/least-squares.md, Theorem 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpselect.learners.batches import Batches
from dpselect.learners.clipped_gradients import LinearRegression, clipped_gradient_sum
from dpselect.learners.fixed_point import STEP
from dpselect.learners.sufficient_statistics import gram_deviation, noisy_gram
from dpselect.mechanisms.grid import gaussian_steps, grid_at_most
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource
from dpselect.steps import each_step

__all__ = ["AdaptiveDescent"]

_UP: Final = 1.0 + 2.0**-48
_FIRST_CLIP: Final = 0.3
_CLIPS: Final = (2.0**-7, 2.0)
_PACE: Final = 0.2
"""The bound changes by a factor of at most exp(0.2) a step."""
_FLOOR: Final = 2.0
"""Eigenvalues of the noisy X'X are raised to twice what noise alone gives them, so that no step leaps too far."""
_WIDEST: Final = 1024
"""With more columns X'X is not released: its noise would hide it, and its eigenvalues would take minutes."""


@dataclass(frozen=True)
class AdaptiveDescent:
    """The public numbers of one run.

    Attributes:
        noise_multiplier: sigma, one over the Gaussian differential privacy parameter of the whole run.
        steps: T.
        gram_share: a, the part of 1/sigma^2 that pays for X'X.
        count_share: c, the part of the rest that pays for the counts of clipped gradients.
        row_norm: R, a bound on the norm of a row.
        clipped_share: the share of rows whose gradients are to be clipped, which the bound follows.
        rows: the public number of rows.
        replace: a neighbour has one row replaced, not added or removed.
    """

    noise_multiplier: float
    steps: int
    gram_share: float
    count_share: float
    row_norm: float
    clipped_share: float
    rows: float
    replace: bool

    @property
    def gram_deviation(self) -> float:
        """s, the standard deviation of the noise on the diagonal of X'X."""
        noise = self.noise_multiplier * self._joint
        return gram_deviation(self.row_norm, noise, self.gram_share, replace=self.replace)

    @property
    def gradient_deviation(self) -> float:
        """The standard deviation of the noise on each number of a gradient, in units of the bound at that step."""
        sensitivity = 2.0 if self.replace else 1.0
        return sensitivity * self._of_a_step / math.sqrt(1.0 - self.count_share) * _UP

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noise on the count of a step."""
        return self._of_a_step / math.sqrt(self.count_share) * _UP

    @property
    def _of_a_step(self) -> float:
        return self.noise_multiplier * self._joint * math.sqrt(self.steps / (1.0 - self.gram_share))

    @property
    def _joint(self) -> float:
        """The root of m, the share of the largest moves of all releases that two rows attain together. Rounded up.

        It is 1 if rows are added or removed. Source: docs/theory/least-squares.md, Theorem 1.
        """
        if not self.replace:
            return 1.0
        gram, rest = self.gram_share / 2.0, 1.0 - self.gram_share
        gradients = rest * (1.0 - self.count_share) / 4.0
        one_long_row = gram + 4.0 * gradients
        two_long_rows = 2.0 * (gram + gradients) + gradients * gradients / (2.0 * gram)
        moved = max(one_long_row, two_long_rows) if gradients <= 2.0 * gram else one_long_row
        return math.sqrt(moved + rest * self.count_share) * _UP

    def run(self, rows: Batches, targets: Array, random: RandomSource) -> Array:
        """The mean of the weights of the last half of the steps, shape (columns, 1).

        `rows` and `targets`, shape (rows,), are multiples of `STEP`, rows of norm at most R: you must ensure this.
        """
        columns = rows.cells.shape[1]
        lengths = np.sqrt(rows.squares)
        step_of = self._preconditioner(rows, random)
        weights = np.zeros((columns, 1))
        total, first_averaged = np.zeros_like(weights), self.steps // 2
        clip = _FIRST_CLIP
        for t in each_step("steps of training", self.steps):
            gradient, clipped = self._release(weights, (rows, lengths, targets), clip, random)
            weights = weights - step_of @ gradient
            if t >= first_averaged:
                total += weights
            away = clipped / self.rows / self.clipped_share - 1.0
            clip = min(max(clip * math.exp(_PACE * min(max(away, -1.0), 1.0)), _CLIPS[0]), _CLIPS[1])
        return np.asarray(total / (self.steps - first_averaged))

    def _preconditioner(self, rows: Batches, random: RandomSource) -> Array:
        """The inverse of the noisy X'X, which turns a gradient into a step. Shape (columns, columns)."""
        columns = rows.cells.shape[1]
        if columns > _WIDEST:
            return np.eye(columns) / self.rows
        values, vectors = np.linalg.eigh(noisy_gram(rows.cells, self.gram_deviation, random))
        floor = _FLOOR * self.gram_deviation * math.sqrt(2.0 * columns)
        return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)

    def _release(
        self, weights: Array, data: tuple[Batches, Array, Array], clip: float, random: RandomSource
    ) -> tuple[Array, float]:
        """The noisy sum of the clipped gradients, shape (columns, 1), and the noisy count of those that were clipped.

        Each is an exact sum over rows on a grid, plus Gaussian noise that is rounded to a grid.
        """
        rows, lengths, targets = data
        model, step = LinearRegression(rows.cells.shape[1]), grid_at_most(clip) * STEP
        total, count = np.zeros(weights.shape, dtype=np.int64), 0
        for part in rows.parts():
            layers = model.layers((weights,), part.rows, targets[part.which])
            total += clipped_gradient_sum(layers, clip, step, squares=part.squares)[0]
            count += int(np.count_nonzero(np.abs(layers[0].errors[:, 0]) * lengths[part.which] > clip))
        noise = gaussian_steps(self.gradient_deviation * clip / (STEP * step) * _UP, total.shape, random)
        grid = grid_at_most(self.count_deviation * 2.0**-32)
        counted = float(gaussian_steps(self.count_deviation / grid, 1, random)[0]) * grid + count
        return np.asarray((total + noise) * (STEP * step)), counted
