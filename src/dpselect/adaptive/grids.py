"""The finite grids that answers come from. A block value is rounded to the grid before anything is counted.

The grid must not depend on the data. It may depend on earlier answers. Uniform grids and all float64 values are those
of `dpselect.ordered`. Here are the others, and the reading of arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsFloat, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.ordered.domains import Domain, Doubles, Grid
from dpselect.ordered.public_domain import PublicDomain

__all__ = [
    "ExplicitGrid",
    "IntegerGrid",
    "LogarithmicGrid",
    "explicit_grid",
    "filled",
    "float_grid",
    "integer_grid",
    "logarithmic_grid",
    "plain_median",
    "uniform_grid",
]


@dataclass(frozen=True)
class LogarithmicGrid:
    """lower * ratio^i for i = 0 .. size-1: positive numbers with a constant relative step."""

    lower: float
    ratio: float
    size: int

    def encode(self, values: Any) -> NDArray[np.uint64]:
        kept = np.maximum(np.asarray(values, dtype=np.float64), self.lower)
        logs = np.log(kept / self.lower) / math.log(self.ratio)
        codes = np.clip(np.rint(logs), 0.0, self.size - 1.0)
        # compared with the edges themselves, so that the codes are monotone and agree with `threshold`
        codes = codes - (kept < self._edge(codes)) * (codes > 0.0)
        codes = codes + (kept >= self._edge(codes + 1.0)) * (codes < self.size - 1.0)
        return np.asarray(codes.astype(np.uint64))

    def decode(self, code: int) -> float:
        return self.lower * self.ratio**code

    def threshold(self, code: int) -> float:
        return float(self._edge(np.array([float(code)]))[0])

    def _edge(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.lower * np.power(self.ratio, codes - 0.5))


@dataclass(frozen=True)
class ExplicitGrid:
    """An increasing list of numbers. Values go to the nearest, to the lower one at a tie."""

    points: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.points)

    def encode(self, values: Any) -> NDArray[np.uint64]:
        return np.asarray(np.searchsorted(self._edges, np.asarray(values, dtype=np.float64)).astype(np.uint64))

    def decode(self, code: int) -> float:
        return self.points[code]

    def threshold(self, code: int) -> float:
        return math.nextafter(float(self._edges[code - 1]), math.inf)

    @property
    def _edges(self) -> NDArray[np.float64]:
        points = np.array(self.points)
        return points[:-1] / 2.0 + points[1:] / 2.0


@dataclass(frozen=True)
class IntegerGrid(Grid):
    """The integers of a uniform grid of step one, released as Python integers."""

    def decode(self, code: int) -> int:
        return self.first + code


def uniform_grid(lower: SupportsFloat, upper: SupportsFloat, granularity: float | Fraction) -> Grid:
    """Return the grid of the multiples of `granularity` from lower to upper.

    Args:
        lower: a public bound of the answers.
        upper: a public bound of the answers, at least `lower`.
        granularity: the step, above 0. 0.1 means one tenth. Public: it must not depend on the data.

    Raises:
        ArgumentError: if a number is not finite, or the arguments leave no grid.
        TypeError: if an argument is not a number.

    >>> uniform_grid(-5, 5, 0.01).size
    1001
    """
    number("granularity", granularity)  # a domain's may be "float64"
    return cast("Grid", _between(lower, upper, granularity))


def integer_grid(lower: int, upper: int) -> IntegerGrid:
    """Return the grid of the integers from lower to upper, both included.

    Args:
        lower: the first integer, within 2**53 of zero. Public.
        upper: the last integer, at least `lower` and at most 2**53. Public.

    Raises:
        ArgumentError: if one is not an integer in its range.
        TypeError: if an argument is not a number.
    """
    low = integer("lower", lower, at_least=-(1 << 53), at_most=1 << 53)
    return IntegerGrid(low, integer("upper", upper, at_least=low, at_most=1 << 53), Fraction(1))


def logarithmic_grid(lower: SupportsFloat, upper: SupportsFloat, *, ratio: SupportsFloat) -> LogarithmicGrid:
    """Return the grid of lower, lower * ratio, lower * ratio^2, ... up to `upper`.

    Args:
        lower: the first point, above 0. Public.
        upper: a bound of the last point, at least `lower`. Public.
        ratio: the constant step as a factor, at least 1 + 2**-30. Public.

    Raises:
        ArgumentError: for a number out of range, or a grid of more than 2**53 points.
        TypeError: if an argument is not a number.

    >>> logarithmic_grid(1, 1000, ratio=10).size
    4
    """
    low = number("lower", lower, above=0.0)
    high, step = number("upper", upper, at_least=low), number("ratio", ratio, at_least=1.0 + 2.0**-30)
    size = math.floor((math.log(high) - math.log(low)) / math.log(step) + 1e-9) + 1
    return LogarithmicGrid(low, step, integer("the number of grid points", size, at_least=1, at_most=1 << 53))


def explicit_grid(points: Sequence[SupportsFloat]) -> ExplicitGrid:
    """Return the grid of these numbers, sorted.

    Args:
        points: different finite numbers in any order, at least one. Public: they must not depend on the data.

    Raises:
        ArgumentError: if `points` is empty, or two are equal, or one is not finite.
        TypeError: if a point is not a number.
    """
    found = tuple(sorted(number("points", point) + 0.0 for point in points))
    if len(set(found)) != len(found) or not found:
        raise ArgumentError("points must be different numbers, at least one")
    return ExplicitGrid(found)


def float_grid(lower: SupportsFloat, upper: SupportsFloat) -> Doubles:
    """Return the grid of all doubles from lower to upper, for answers of unknown size.

    It has up to 2**64 points.

    Args:
        lower: a public bound of the answers.
        upper: a public bound of the answers, at least `lower`.

    Raises:
        ArgumentError: if a bound is not finite, or `lower` is above `upper`.
        TypeError: if an argument is not a number.
    """
    return cast("Doubles", _between(lower, upper, "float64"))


def _between(lower: SupportsFloat, upper: SupportsFloat, granularity: Any) -> Domain:
    low, high = number("lower", lower), number("upper", upper)
    return PublicDomain(lower=low, upper=high, granularity=granularity).of_type(np.dtype(np.float64))


class AnswerGrid(TypedDict, total=False):
    """The keywords by which a question says its grid: see `read_grid`."""

    lower: SupportsFloat | None
    upper: SupportsFloat | None
    granularity: float | Fraction | None
    grid: Domain | None


def read_grid(
    *,
    lower: SupportsFloat | None = None,
    upper: SupportsFloat | None = None,
    granularity: float | Fraction | None = None,
    grid: Domain | None = None,
) -> Domain:
    """The grid of a question: as given, or uniform with a granularity, or all doubles between the bounds."""
    if grid is not None:
        if lower is not None or upper is not None or granularity is not None:
            raise ArgumentError("give a grid, or lower and upper, not both")
        return grid
    if lower is None or upper is None:
        raise ArgumentError("give lower and upper (public bounds of the answer) or a grid")
    return float_grid(lower, upper) if granularity is None else uniform_grid(lower, upper, granularity)


def filled(values: NDArray[np.float64], grid: Domain) -> NDArray[np.float64]:
    """The values with the lowest grid point for NaN. Always copied: the time does not tell whether one is missing."""
    return np.where(np.isnan(values), float(grid.decode(0)), values)


def plain_median(values: NDArray[np.float64], grid: Domain) -> Any:
    """The middle one of an odd number of values, as a grid point."""
    codes = np.sort(np.asarray(grid.encode(filled(values, grid)), dtype=np.uint64))
    return grid.decode(int(codes[len(codes) // 2]))
