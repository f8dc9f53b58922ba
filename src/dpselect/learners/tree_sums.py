"""Noisy sums over the leaves of trees: all that private boosting takes from a table, round by round.

Claim. Let a fit ask a table for these vectors, one after the other, each after all the noisy ones before it:

1. Once: the number of rows with each code of each of d columns of numbers. A row has at most one code in each.
2. In each of T rounds: the sum of g over each leaf, the sum of a w over each leaf, and the sum of b f over all rows.
   The leaves are a partition of the rows. A row has a weight w from 0 to 1, a vector g of norm at most w, and a flag f
   of 0 or 1. All are maps of single rows, chosen by what came before. Here a = 1/2 and b = 1/4 are public.

Each number of the first kind gets Gaussian noise of standard deviation sqrt(D) sigma / sqrt(s). Each of the second kind
gets sqrt(S T) sigma / sqrt(1 - s). Here 0 < s < 1, and s = 0 without the first kind. D and S follow in the proof. Then
the whole fit is one Gaussian mechanism of noise multiplier sigma.

Proof. Fix all that came before a vector. The vector is then a fixed vector of sums over the rows.

A row more or less. The first kind moves in d numbers by 1 each at most, so by a norm of sqrt(D) with D = d. A round
moves by g in the coordinates of one leaf, by a w in one coordinate, and by b f. The square of this norm is at most
S = 1 + a^2 + b^2.

A row replaced. The first kind moves in at most 2 d numbers: D = 2 d. In a round the flags move by b^2 at most. If both
rows are in one leaf, the square of the rest is |g - g'|^2 + a^2 (w - w')^2 <= (w + w')^2 + a^2 (w - w')^2. That is a
convex function of the weights, which is largest in a corner: 4. If they are in two leaves, it is at most
(1 + a^2) (w^2 + w'^2) <= 2 + 2 a^2 < 4. So S = 4 + b^2.

Divide each vector by the deviation of its noise. The first kind is a Gaussian mechanism with mu^2 = s / sigma^2. Each
round is one with mu^2 = (1 - s) / (T sigma^2). Each is chosen by what came before, so the squares add up (Dong, Roth,
Su 2022, Corollary 3.3): 1 / sigma^2 in all.

Rounding. All terms are multiples of STEP, so that the sums are exact. The noise is a rounded Gaussian on a grid at
least as fine (`gaussian_steps`). So only the noise is rounded. Deviations are rounded upwards.

Source: docs/theory/boosted-trees.md, Theorem 1. Trees drawn without data in private boosting are those of Maddock,
Cormode, Wang, Maple, Jha 2022, "Federated boosted decision trees with differential privacy" (arXiv 2210.02910).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpselect.learners.fixed_point import STEP
from dpselect.mechanisms.grid import gaussian_steps, grid_at_most
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["CLIPPED_WEIGHT", "COUNT_WEIGHT", "TreeSums", "add_noise"]

COUNT_WEIGHT: Final = 0.5
"""a: of the count of a leaf beside its gradient."""
CLIPPED_WEIGHT: Final = 0.25
"""b: of the count of clipped rows."""
_UP: Final = 1.0 + 2.0**-48
_FINEST: Final = 2.0**24
"""The least deviation of `gaussian_steps`, in steps of its grid."""


@dataclass(frozen=True)
class TreeSums:
    """The public numbers of the sums of one fit. The theorem is that of the module.

    Attributes:
        noise_multiplier: sigma of all sums together.
        rounds: T.
        ranked: d, the number of columns whose codes are counted.
        rank_share: s, the part of 1/sigma^2 that pays for those counts.
        replace: a neighbour has one row replaced, not added or removed.
    """

    noise_multiplier: float
    rounds: int
    ranked: int
    rank_share: float
    replace: bool

    @property
    def rank_deviation(self) -> float:
        """The standard deviation of the noise on the count of a code."""
        moved = self.ranked * (2.0 if self.replace else 1.0)
        return math.sqrt(moved / self.rank_share) * self.noise_multiplier * _UP

    @property
    def gradient_deviation(self) -> float:
        """The standard deviation of the noise on a number of a leaf's gradient."""
        moved = (4.0 if self.replace else 1.0 + COUNT_WEIGHT**2) + CLIPPED_WEIGHT**2
        left = 1.0 - (self.rank_share if self.ranked else 0.0)
        return math.sqrt(moved * self.rounds / left) * self.noise_multiplier * _UP

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noise on the count of a leaf."""
        return self.gradient_deviation / COUNT_WEIGHT

    @property
    def clipped_deviation(self) -> float:
        """The standard deviation of the noise on the count of clipped rows."""
        return self.gradient_deviation / CLIPPED_WEIGHT


def add_noise(sums: Array, deviation: float, random: RandomSource) -> Array:
    """Sums of multiples of `STEP`, exact, with Gaussian noise of this standard deviation on a grid at least as fine."""
    step = min(STEP, grid_at_most(deviation / _FINEST))
    noise = gaussian_steps(deviation / step, sums.shape, random)
    return np.asarray(((sums / step).astype(np.int64) + noise) * step)
