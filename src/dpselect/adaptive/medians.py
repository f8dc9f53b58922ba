"""Private approximate medians of block values over a finite grid, one block being the unit of privacy.

Both count after rounding to the grid, so ties and values off the grid need no care. A block without a value (NaN)
counts as the lowest grid point: it stays one of m blocks, and which one it was changes nothing else.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.adaptive.grids import filled
from dpselect.adaptive.median_bounds import search_steps
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.errors import ArgumentError, expect, number, rational
from dpselect.mechanisms import Mechanism, bounded_range
from dpselect.mechanisms.scores import as_vector
from dpselect.ordered.domains import Domain
from dpselect.ordered.order_statistics.intervals import SortedColumn, draw_code
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__ = ["ExponentialMedian", "SearchMedian"]


@dataclass(frozen=True, kw_only=True)
class BlockMedian(Mechanism):
    """The base class of both: a quantile, and a call on the values and the public grid of answers."""

    quantile: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        number("quantile", self.quantile, above=0.0, below=1.0)
        object.__setattr__(self, "quantile", rational("quantile", self.quantile))

    def prepared(self, values: ArrayLike, grid: Domain) -> Callable[[RandomSource], Any]:
        """A point of the grid for these values, one a block."""
        expect("grid", grid, Domain)
        self._check(grid)
        column = as_vector("values", values).reshape(-1)
        return lambda random: grid.decode(self._code(filled(column, grid), grid, random))

    def _check(self, grid: Domain) -> None:
        """Raise `ArgumentError` for a grid that the parameters do not serve."""

    @abstractmethod
    def _code(self, values: NDArray[np.float64], grid: Domain, random: RandomSource) -> int:
        """The code of the point drawn."""


@dataclass(frozen=True, kw_only=True)
class ExponentialMedian(BlockMedian):
    """A grid point v with probability proportional to exp(-epsilon/2 * badness(v)), exactly.

    badness(v) = max(#{x < v} - q m, #{x > v} - (1 - q) m) with q = `quantile`. For the median it is, up to a constant,
    the larger of the two counts. It moves by at most one when a value is replaced (Feldman, Steinke 2017, Theorem 3.1).
    Runs of equal badness are grouped: O(m log m) regardless of the size of the grid, which may be 2**64. The draw is
    decided by as many bits as it takes, so no rounding enters the distribution. A call takes the private values, one
    for each block, and the public grid.

    Args:
        quantile: q, above 0 and below 1. The default is 1/2, the median.
        epsilon: the range of one answer for a replaced block, in [1e-9, 1e6].

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if a parameter is not a number.

    >>> from dpselect.adaptive.grids import integer_grid
    >>> from dpselect.randomness import keyed_source
    >>> ExponentialMedian(epsilon=20.0)([2, 3, 3, 7, 9], integer_grid(0, 10), random=keyed_source(1)).value
    3
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, at_least=1e-9, at_most=1e6))

    @property
    def guarantee(self) -> Guarantee:
        """Range epsilon per replaced block (and so per replaced row)."""
        claimed = bounded_range(epsilon=self.epsilon, adjacency=Adjacency.REPLACE_ONE)
        return replace(claimed, terms={"mechanism": "exponential-median", "epsilon": claimed.pure_epsilon})

    def _code(self, values: NDArray[np.float64], grid: Domain, random: RandomSource) -> int:
        ordered, rate = np.sort(values), epsilon_used(self.epsilon) / 2
        target = self.quantile * len(ordered)
        return draw_code(SortedColumn(ordered, grid), size=grid.size, target=target, rate=rate, random=random)


@dataclass(frozen=True, kw_only=True)
class SearchMedian(BlockMedian):
    """A quantile by binary search: one noisy count #{x <= probe} a step, to the left when it is q m (q = `quantile`).

    Suppose that the noise that hurts stays below a at every step. Then more than q m - a values are at most the answer
    and fewer than q m + a below it. All steps of `noise` are charged and their noise drawn, however many the grid
    needs. Time: one pass over the values a step, no matter what they are. A call takes the private values, one for each
    block, and the public grid.

    Args:
        quantile: q, above 0 and below 1. The default is 1/2, the median.
        noise: the noise of the counts, and the number of steps. It serves grids of up to 2**`noise.steps` points.

    Raises:
        ArgumentError: if `quantile` is out of range. A call raises it for a grid that needs more steps.
        TypeError: if `noise` is not a `SearchNoise`, or `quantile` is not a number.

    >>> from dpselect.adaptive.grids import integer_grid
    >>> from dpselect.randomness import keyed_source
    >>> search = SearchMedian(noise=SearchNoise.of_deviation(4, 0.01))
    >>> search([2, 3, 3, 7, 9], integer_grid(0, 10), random=keyed_source(1)).value
    3
    """

    noise: SearchNoise

    def __post_init__(self) -> None:
        super().__post_init__()
        expect("noise", self.noise, SearchNoise)

    @property
    def guarantee(self) -> Guarantee:
        """The Gaussian trade-off of one search per replaced block. It composes exactly with others.

        Source: docs/theory/generalisation.md, Theorem 2.
        """
        noise = self.noise
        claimed = gaussian(noise_multiplier=1.0 / noise.mu, adjacency=Adjacency.REPLACE_ONE)
        terms = {
            "mechanism": "binary-search-median", "steps": noise.steps, "fresh": noise.fresh, "shared": noise.shared
        }  # fmt: skip
        return replace(claimed, terms=terms, theorem="Gaussian counts along a binary search, partly shared noise")

    def _check(self, grid: Domain) -> None:
        if search_steps(grid.size) > self.noise.steps:
            raise ArgumentError(f"grid must have at most 2**{self.noise.steps} points, which the noise was planned for")

    def _code(self, values: NDArray[np.float64], grid: Domain, random: RandomSource) -> int:
        codes: NDArray[np.uint64] = np.asarray(grid.encode(values), dtype=np.uint64)
        scale = self.noise.scale
        wanted = math.ceil(self.quantile * len(codes) * scale)
        low, high = 0, grid.size - 1
        for step in self.noise.draw(random).tolist():
            if low < high:
                middle = (low + high) // 2  # searches: a noisy binary search: the walk is the mechanism
                count = int(np.count_nonzero(codes <= np.uint64(middle)))
                low, high = (low, middle) if count * scale + step >= wanted else (middle + 1, high)
        return low
