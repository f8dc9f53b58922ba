"""The noise of a score: discrete Laplace noise, or Gaussian noise, on a vector of integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpselect.errors import ArgumentError
from dpselect.mechanisms import noisy_count
from dpselect.mechanisms.grid import gaussian_integers
from dpselect.privacy import Adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource
from dpselect.study.metrics.intervals import partial_sums

__all__ = ["Cells", "Reach", "ScoreNoise"]

Cells = NDArray[np.int64]
_UP: Final = 1.0 + 2.0**-50
_ROUNDED: Final = 1.0 / 12.0
"""What rounding to integers adds to the variance."""


class Reach(NamedTuple):
    """The largest distance of neighbours' cells: the sum of the absolute differences, and that of their squares."""

    total: int
    squares: int


@dataclass(frozen=True)
class ScoreNoise:
    """The noise of one score. Give `epsilon` or `multiplier`.

    Args:
        epsilon: the pure epsilon of one score, above 0: the noise is Laplace's.
        adjacency: which data sets are neighbours.
        multiplier: the standard deviation over the L2 sensitivity, above 0: the noise is Gaussian.
    """

    epsilon: float | Fraction | None
    adjacency: Adjacency
    multiplier: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.multiplier is None):
            raise ArgumentError("ScoreNoise takes epsilon (Laplace noise) or multiplier (Gaussian noise), and not both")

    def of_rows(self, rows: int) -> ScoreNoise:
        """The noise for which this many rows together pay what one row pays for this noise.

        Source: docs/theory/persons.md, Theorem 2.
        """
        if rows == 1:
            return self
        if self.multiplier is not None:
            return ScoreNoise(None, self.adjacency, self.multiplier * rows * _UP)
        assert self.epsilon is not None
        return ScoreNoise(epsilon_used(self.epsilon) / rows, self.adjacency)

    def a_step(self, moved: int) -> Fraction:
        """The exact epsilon of one step, where one row moves the cells by `moved` steps in all."""
        assert self.epsilon is not None
        return epsilon_used(self.epsilon) / moved

    def deviation(self, squares: int) -> float:
        """The standard deviation of Gaussian noise for an L2 sensitivity of sqrt(squares), and 1 at least.

        Less than one row's noise would tell nothing more.
        """
        assert self.multiplier is not None
        return max(1.0, self.multiplier * math.sqrt(squares) * _UP)

    def added(self, cells: Cells, reach: Reach, random: RandomSource) -> Cells:
        """The cells, each with integer noise of its own.

        Claim: if `reach` bounds the distance of neighbours' cells, the result is epsilon-differentially private, or as
        private as a Gaussian mechanism of this noise multiplier, for any number of cells. You must ensure that bound.

        Proof for Laplace noise: with r = exp(-epsilon/total), cells c become y with probability proportional to the
        product of r^|y_i - c_i|. The factor that is left out does not depend on c. For neighbours c, c' the ratio is at
        most r^-(|c_1 - c'_1| + ... + |c_m - c'_m|), which is at most exp(epsilon). The standard deviation of
        Gaussian noise is at least the multiplier times the L2 distance. Rounding c + z to integers, as
        `gaussian_integers` does, is a function of c + z. QED

        The arguments are those of Dwork and Roth (2014), section 3.3 for the discrete distribution, and appendix A.
        """
        if self.multiplier is not None:
            return np.asarray(cells + gaussian_integers(self.deviation(reach.squares), np.shape(cells), random))
        each = self.a_step(reach.total)
        found = [noisy_count(int(cell), epsilon=each, random=random) for cell in cells.ravel()]
        return np.array(found).reshape(cells.shape)

    def split(self, shares: Sequence[Fraction]) -> list[ScoreNoise]:
        """The noises of several vectors, one after another, that together cost what one with this noise does.

        Shares of epsilon, or of the square of one over the multiplier. They must add up to 1.
        """
        if self.multiplier is not None:
            return [ScoreNoise(None, self.adjacency, self.multiplier / math.sqrt(share) * _UP) for share in shares]
        assert self.epsilon is not None
        return [ScoreNoise(epsilon_used(self.epsilon) * share, self.adjacency) for share in shares]

    def size(self, reach: Reach) -> float:
        """A number that the noise of one cell hardly ever exceeds, for scores that divide by noisy counts."""
        if self.multiplier is not None:
            return 3.0 * self.deviation(reach.squares)
        return 4.0 / float(self.a_step(reach.total))

    def most(self, count: int, reach: Reach, failure: float) -> float:
        """A limit that none of `count` such noises is beyond, but with probability `failure`.

        Laplace noise: P(|Z| > t) = 2 r^(t + 1)/(1 + r) <= 2 r^t for integers t >= 0, and so it is for every t. Gaussian
        noise: its quantile, and half a step for rounding. The rest is a sum.
        """
        if self.multiplier is not None:
            return (0.5 - self.deviation(reach.squares) * float(ndtri(failure / (2.0 * count)))) * (1.0 + 1e-9)
        return math.log(2.0 * count / failure) / float(self.a_step(reach.total)) * (1.0 + 1e-9)

    def most_partial(self, count: int, reach: Reach, failure: float) -> float:
        """A limit that no sum of the first k of `count` noises is beyond, whichever k, but with probability `failure`.

        See `partial_sums`. For Gaussian noise likewise by Levy's inequality, and `cumulants`.
        """
        if self.multiplier is not None:
            variance = count * (self.deviation(reach.squares) ** 2 + _ROUNDED)
            return math.sqrt(2.0 * variance * math.log(4.0 / failure)) * (1.0 + 1e-6)
        return partial_sums(count, float(self.a_step(reach.total)), failure)

    def cumulants(self, at: NDArray[np.float64], reach: Reach) -> NDArray[np.float64]:
        """A bound on ln E exp(at Z) for the noise Z of one cell, infinite if there is none.

        Laplace noise: E exp(t Z) = (1 - r)^2/((1 - r e^t)(1 - r e^-t)) for |t| below the rate. Gaussian noise
        has standard deviation s >= 1 and is rounded to integers. Poisson's summation formula makes E exp(t Z) the sum
        over integers m of exp(s^2 (t + 2 pi i m)^2/2) sinh(w)/w, with w = (t + 2 pi i m)/2. The term of m = 0 is
        at most exp(t^2 (s^2 + 1/12)/2), since sinh(x)/x <= exp(x^2/6). Each other is at most exp(-2 pi^2 m^2 s^2)
        times it, as |sinh(w)| is the same and |w| is not less. Together they add less than 1e-8 to the logarithm.
        """
        if self.multiplier is not None:
            return at * at * (self.deviation(reach.squares) ** 2 + _ROUNDED) / 2.0 + 1e-8
        rate = float(self.a_step(reach.total)) * (1.0 - 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.abs(at) < rate
            t = np.where(inside, np.abs(at), 0.0)
            found = 2.0 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
        return np.where(inside, found + 1e-9, np.inf)
