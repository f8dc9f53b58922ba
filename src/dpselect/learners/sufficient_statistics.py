"""Noisy X'X and X'y: all that least squares needs of a table, released once by the Gaussian mechanism.

Claim. Let every row have a vector z of norm at most R and a target t, a vector of norm at most L. G = sum z z' and
T = sum z t' are released with independent Gaussian noise. Its standard deviation is s on the diagonal of G, s/sqrt(2)
above it (below is a copy), and r on T. Here s = D_G sigma / sqrt(a) and r = D_T sigma / sqrt(1 - a), 0 < a < 1. That is
a post-processing of one Gaussian mechanism of noise multiplier sigma. When a row is added or removed, D_G = R^2 and
D_T = R L. When one is replaced, D_G = sqrt(2 m) R^2 and D_T = 2 sqrt(m) R L. The share m < 1 of `joint_share` is there
because no two rows move G by sqrt(2) R^2 and T by 2 R L at once.

Proof. Divide each number that is released by the deviation of its noise. The noise added is then a standard Gaussian
vector, and what matters is by how much the vector of all numbers moves. For the change M of G that is
(sum_i M_ii^2 + 2 sum_{i<j} M_ij^2) / s^2 = |M|_F^2 / s^2, for that of T |N|_F^2 / r^2. A row more changes G by z z', of
Frobenius norm |z|^2 <= R^2, and T by z t', of norm |z| |t| <= R L. The square of the whole is then at most
D_G^2 / s^2 + D_T^2 / r^2. This is a / sigma^2 + (1 - a) / sigma^2 = 1 / sigma^2. docs/theory/sufficient-statistics.md
has the proof for a row in the place of another.

Rounding. Rows and targets are fixed-point numbers, so that each term is an integer of grid steps and the sums are
exact. The noise is a rounded Gaussian on the same grid (`gaussian_steps`). Rounding is thus done to the noise alone and
adds nothing to what one row can do. R, L and the deviations are rounded upwards.

Source: docs/theory/sufficient-statistics.md, Theorem 1. After Wang 2018, "Revisiting differentially private linear
regression: optimal and adaptive prediction & estimation in unbounded domain" (arXiv 1803.02596, AdaSSP). There the
smallest eigenvalue has a third of the budget. Here it is not asked for, as the floor under the eigenvalues is made of
public numbers. The noise below the diagonal follows from symmetry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.fixed_point import STEP
from dpselect.mechanisms.grid import gaussian_steps
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["RowSums", "SufficientStatistics", "gram_deviation", "joint_share", "noisy_gram", "solve"]

_CHUNK: Final = 2**15
_UP: Final = 1.0 + 2.0**-48
_GRAM_STEP: Final = STEP * STEP
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class RowSums:
    """The exact sums over some rows z without their constant, and their targets t, as integers of grid steps.

    A database may compute them, since no rounding depends on the order of the rows.

    Attributes:
        row_norm: rows were divided by it and scaled into the unit ball.
        count: the number of rows.
        totals: sum of z in `STEP`, shape (columns,).
        gram: sum of z z' in squares of `STEP`, shape (columns, columns).
        targets: sum of t in target steps, shape (targets,).
        moments: sum of z t' in products of both steps, shape (columns, targets).
    """

    row_norm: float
    count: int
    totals: Integers
    gram: Integers
    targets: Integers
    moments: Integers

    def __add__(self, other: RowSums) -> RowSums:
        """The sums over the rows of both, divided by the same norm."""
        return RowSums(
            self.row_norm,
            self.count + other.count,
            self.totals + other.totals,
            self.gram + other.gram,
            self.targets + other.targets,
            self.moments + other.moments,
        )

    def with_constant(self, steps: int) -> tuple[Integers, Integers]:
        """The gram and the moments of the rows with a constant of so many steps appended, none if it is 0."""
        if not steps:
            return self.gram, self.moments
        side = steps * self.totals[:, None]
        corner = np.array([[steps * steps * self.count]], dtype=np.int64)
        return np.block([[self.gram, side], [side.T, corner]]), np.vstack([self.moments, steps * self.targets])


@dataclass(frozen=True)
class SufficientStatistics:
    """The public numbers of one release. The theorem is that of the module.

    Attributes:
        noise_multiplier: sigma.
        gram_share: a, the part of 1/sigma^2 that pays for G.
        row_norm: R.
        target_norm: L.
        target_step: all targets are whole multiples of this power of two.
        replace: a neighbour has one row replaced, not added or removed.
    """

    noise_multiplier: float
    gram_share: float
    row_norm: float
    target_norm: float
    target_step: float
    replace: bool

    @property
    def gram_deviation(self) -> float:
        """s, the standard deviation of the noise on the diagonal of G."""
        alone = gram_deviation(self.row_norm, self.noise_multiplier, self.gram_share, replace=self.replace)
        return alone * self._joint

    @property
    def moment_deviation(self) -> float:
        """r, the standard deviation of the noise on T."""
        sensitivity = self.row_norm * self.target_norm * (2.0 if self.replace else 1.0)
        return sensitivity * self._joint * self.noise_multiplier / math.sqrt(1.0 - self.gram_share) * _UP

    @property
    def _joint(self) -> float:
        """The root of the share m, 1 if rows are added or removed. Rounded up."""
        return math.sqrt(joint_share(self.gram_share)) * _UP if self.replace else 1.0

    def release(self, rows: Array, targets: Array, random: RandomSource) -> tuple[Array, Array]:
        """Noisy G, shape (columns, columns), and T, shape (columns, targets).

        `rows` (z), shape (rows, columns), are multiples of `STEP`, and `targets` of `target_step`, shape
        (rows, targets), all within their norms: you must ensure this.
        """
        columns, outputs = rows.shape[1], targets.shape[1]
        moments, step = np.zeros((columns, outputs), dtype=np.int64), STEP * self.target_step
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            moments += ((rows[part].T @ targets[part]) / step).astype(np.int64)
        return self.release_sums(_exact_gram(rows), moments, random)

    def release_sums(self, gram: Integers, moments: Integers, random: RandomSource) -> tuple[Array, Array]:
        """The same from the exact sums over such rows, in steps of the grids (see `RowSums`)."""
        # the noise of T must be many steps wide: where its terms are coarse, the grid is finer than they are
        finer = 2**12 if self.target_step == 1.0 else 1
        step = STEP * self.target_step / finer
        noisy = _noisy(gram, self.gram_deviation, random)
        noise = gaussian_steps(self.moment_deviation / step, moments.shape, random)
        return noisy, np.asarray((moments * finer + noise) * step)


def joint_share(share: float) -> float:
    """m, the part of the two largest moves of G and T together that two rows attain under replacement, rounded up.

    Args:
        share: a, the part of 1/sigma^2 that pays for G, between 0 and 1.

    Returns:
        a + (1 - a)/2 + (1 - a)^2 / (16 a) if a is at least 1/5, and 1 - a otherwise.

    Source: docs/theory/sufficient-statistics.md, Theorem 1.

    >>> round(joint_share(0.35), 4)
    0.7504
    """
    rest = 1.0 - share
    return (share + rest / 2.0 + rest * rest / (16.0 * share) if share >= 0.2 else rest) * _UP


def gram_deviation(row_norm: float, noise_multiplier: float, share: float, *, replace: bool) -> float:
    """s, the standard deviation of the noise on the diagonal of G that costs a share of 1/sigma^2, rounded up."""
    sensitivity = row_norm**2 * (math.sqrt(2.0) if replace else 1.0)
    return sensitivity * noise_multiplier / math.sqrt(share) * _UP


def noisy_gram(rows: NDArray[np.floating], deviation: float, random: RandomSource) -> Array:
    """G with noise of standard deviation `deviation` on the diagonal and a root of 2 less above it.

    `rows`, shape (rows, columns), are multiples of `STEP`, in any precision. The result has shape (columns, columns).
    """
    return _noisy(_exact_gram(rows), deviation, random)


def _exact_gram(rows: NDArray[np.floating]) -> Integers:
    gram = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK].astype(np.float64, copy=False)
        gram += ((part.T @ part) / _GRAM_STEP).astype(np.int64)
    return gram


def _noisy(gram: Integers, deviation: float, random: RandomSource) -> Array:
    columns = len(gram)
    above = np.triu_indices(columns, 1)
    noise = np.zeros_like(gram)
    noise[above] = gaussian_steps(deviation / math.sqrt(2.0) * _UP / _GRAM_STEP, len(above[0]), random)
    noise += noise.T
    noise[np.diag_indices(columns)] = gaussian_steps(deviation / _GRAM_STEP, columns, random)
    return np.asarray((gram + noise) * _GRAM_STEP)


def solve(gram: Array, moments: Array, floor: float) -> Array:
    """The weights of least squares, shape of `moments`, with the eigenvalues of `gram` raised to `floor` at least.

    Of released numbers, so it costs nothing and may be done again with another floor.
    """
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors @ ((vectors.T @ moments) / np.maximum(values, floor)[:, None]))
