"""The secret draws of the interior-point mechanisms, each with its exact distribution.

All random decisions of these mechanisms go through one object. A test can replace it by an enumeration of all outcomes,
and so obtain the exact output distribution of the code that is shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms.exponential import draw_exponential
from dpselect.mechanisms.grid import gaussian_steps, grid_at_most
from dpselect.mechanisms.scores import read_scores
from dpselect.numerics.search import first_true
from dpselect.ordered.domains import Codes, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn, draw_code
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.integers import discrete_laplace, discrete_laplace_array
from dpselect.randomness.lazy import LazyUniform, exponential_enclosure

__all__ = ["SecretDraws"]

_LARGEST_BULK = 2.0**20


class SecretDraws:
    """Exact draws from one random source. No informative repr."""

    def __init__(self, random: RandomSource | None = None) -> None:
        self._random = resolve(random)

    def geometric(self, epsilon: float) -> int:
        """G = 0, 1, 2, ... with P(G >= k) = exp(-epsilon k), added to a slice, by bisection on one uniform."""
        rate, uniform = epsilon_used(epsilon), LazyUniform(self._random)

        def exceeds(count: int) -> bool:
            return not uniform.below(lambda bits: exponential_enclosure(rate * count, bits))

        return first_true(exceeds, 1, None, start=1) - 1

    def laplace(self, epsilon: float) -> int:
        """An integer x with probability proportional to exp(-epsilon |x|)."""
        return discrete_laplace(1 / epsilon_used(epsilon), self._random)

    def heaviest(self, weights: NDArray[np.int64], epsilon: float, threshold: int) -> int | None:
        """Place of the largest weight + fresh noise (the first of equal ones), or None if it is below the threshold."""
        scale = 1 / epsilon_used(epsilon)
        if scale <= _LARGEST_BULK:
            noise = discrete_laplace_array(scale, len(weights), self._random)
        else:
            noise = np.array([discrete_laplace(scale, self._random) for _ in weights], dtype=np.int64)
        noisy = weights + noise
        best = int(np.argmax(noisy))
        return best if noisy[best] >= threshold else None

    def reaches(self, value: int, limit: int, epsilon: float) -> bool:
        """Whether value + fresh noise >= limit."""
        return value + self.laplace(epsilon) >= limit

    def index(self, scores: Sequence[int], rate: float) -> int:
        """Index i with probability proportional to exp(rate * scores[i])."""
        return draw_exponential(read_scores(np.array(scores, dtype=np.float64)), Fraction(rate), self._random)

    def majority(self, difference: int, deviation: float) -> bool:
        """Whether difference + Gaussian noise, rounded to a fine grid, is at least 0."""
        scale = grid_at_most(deviation * 2.0**-30)
        return difference / scale + int(gaussian_steps(deviation / scale, 1, self._random)[0]) >= 0

    def interior(self, codes: Codes, size: int, rate: float | Fraction) -> int:
        """z in 0 .. size-1 with probability proportional to exp(rate * min(#{x <= z}, #{x >= z}))."""
        column = SortedColumn(codes, WholeNumbers(0, size - 1))
        return draw_code(column, size=size, target=Fraction(column.total, 2), rate=Fraction(rate), random=self._random)

    def visit(self, place: str) -> None:
        """The code calls this where it branches. Branches are secret, so nothing is kept. A test may keep them."""

    def __repr__(self) -> str:
        return "<SecretDraws>"
