"""Private approximate medians of block values over a finite grid, one block being the unit of privacy.

Both count after rounding to the grid, so ties and values off the grid need no care. A block without a value (NaN)
counts as the lowest grid point: it stays one of m blocks, and which one it was changes nothing else.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.adaptive.median_bounds import search_steps
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.errors import ArgumentError, expect, number, rational
from dpselect.mechanisms import bounded_range
from dpselect.mechanisms.scores import as_vector
from dpselect.ordered.domains import Domain
from dpselect.ordered.order_statistics.intervals import SortedColumn, draw_code
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, gaussian, paid
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve

__all__ = ["exponential_median", "exponential_median_guarantee", "search_median", "search_median_guarantee"]


def exponential_median(
    values: ArrayLike,
    grid: Domain,
    *,
    epsilon: float,
    quantile: Fraction = Fraction(1, 2),
    spender: Spender | None = None,
    label: str = "exponential median",
    random: RandomSource | None = None,
) -> Release:
    """A grid point v with probability proportional to exp(-epsilon/2 * badness(v)), exactly.

    badness(v) = max(#{x < v} - q m, #{x > v} - (1 - q) m) with q = `quantile`; for the median, up to a constant, the
    larger of the two counts. It moves by at most one when a value is replaced (Feldman, Steinke 2017, Theorem 3.1).
    Runs of equal badness are grouped: O(m log m) whatever the size of the grid, which may be 2**64; the draw is decided
    by as many bits as it takes, so no rounding enters the law. `exponential_median_guarantee` is the price.
    A `Release` of the point.

    >>> from dpselect.adaptive.grids import integer_grid
    >>> from dpselect.randomness import keyed_source
    >>> exponential_median([2, 3, 3, 7, 9], integer_grid(0, 10), epsilon=20.0, random=keyed_source(1)).value
    3
    """
    expect("grid", grid, Domain)
    epsilon = number("epsilon", epsilon, at_least=1e-9, at_most=1e6)
    source = resolve(random)
    share, column = _quantile(quantile), as_vector("values", values).reshape(-1)

    def run() -> Any:
        ordered = np.sort(_filled(column, grid))
        target = share * len(ordered)
        rate = epsilon_used(epsilon) / 2
        return grid.decode(
            draw_code(SortedColumn(ordered, grid), size=grid.size, target=target, rate=rate, random=source)
        )

    return paid(run, _exponential_price(epsilon), spender=spender, label=label, replayable=source.replayable)


def exponential_median_guarantee(*, epsilon: float) -> Guarantee:
    """Range epsilon per replaced block (and so per replaced row)."""
    claimed = bounded_range(epsilon=epsilon, adjacency=Adjacency.REPLACE_ONE)
    return replace(claimed, terms={"mechanism": "exponential-median", "epsilon": claimed.pure_epsilon})


def search_median(
    values: ArrayLike,
    grid: Domain,
    *,
    noise: SearchNoise,
    quantile: Fraction = Fraction(1, 2),
    spender: Spender | None = None,
    label: str = "search median",
    random: RandomSource | None = None,
) -> Release:
    """A quantile by binary search: one noisy count #{x <= probe} a step, to the left when it is q m (q = `quantile`).

    If the noise that hurts stays below a at every step, more than q m - a values are at most the answer and fewer than
    q m + a below it. All steps of `noise` are charged and their noise drawn, however many the grid needs
    (`ArgumentError` when it needs more). Time: one pass over the values a step, whatever they are.

    >>> from dpselect.adaptive.grids import integer_grid
    >>> from dpselect.randomness import keyed_source
    >>> noise = SearchNoise.of_deviation(4, 0.01)
    >>> search_median([2, 3, 3, 7, 9], integer_grid(0, 10), noise=noise, random=keyed_source(1)).value
    3
    """
    expect("grid", grid, Domain)
    expect("noise", noise, SearchNoise)
    if search_steps(grid.size) > noise.steps:
        raise ArgumentError(f"grid must have at most 2**{noise.steps} points, which the noise was planned for")
    source = resolve(random)
    share, column = _quantile(quantile), as_vector("values", values).reshape(-1)

    def run() -> Any:
        codes: NDArray[np.uint64] = np.asarray(grid.encode(_filled(column, grid)), dtype=np.uint64)
        scale = noise.scale
        wanted = math.ceil(share * len(codes) * scale)
        low, high = 0, grid.size - 1
        for step in noise.draw(source).tolist():
            if low < high:
                middle = (low + high) // 2
                count = int(np.count_nonzero(codes <= np.uint64(middle)))
                low, high = (low, middle) if count * scale + step >= wanted else (middle + 1, high)
        return grid.decode(low)

    return paid(run, _search_price(noise), spender=spender, label=label, replayable=source.replayable)


def search_median_guarantee(noise: SearchNoise) -> Guarantee:
    """The Gaussian trade-off of one search per replaced block; composes exactly with others.

    Source: docs/theory/generalisation.md, Theorem 2.
    """
    expect("noise", noise, SearchNoise)
    claimed = gaussian(noise_multiplier=1.0 / noise.mu, adjacency=Adjacency.REPLACE_ONE)
    terms = {"mechanism": "binary-search-median", "steps": noise.steps, "fresh": noise.fresh, "shared": noise.shared}
    return replace(claimed, terms=terms, theorem="Gaussian counts along a binary search, partly shared noise")


@lru_cache(maxsize=64)
def _exponential_price(epsilon: float) -> Guarantee:
    """Many medians are asked for at one price."""
    return exponential_median_guarantee(epsilon=epsilon)


@lru_cache(maxsize=64)
def _search_price(noise: SearchNoise) -> Guarantee:
    return search_median_guarantee(noise)


def _quantile(quantile: Fraction) -> Fraction:
    number("quantile", quantile, above=0.0, below=1.0)
    return rational("quantile", quantile)


def _filled(found: NDArray[np.float64], grid: Domain) -> NDArray[np.float64]:
    missing = np.isnan(found)
    # always copied, so that the time does not tell whether a value is missing
    return np.where(missing, float(grid.decode(0)), found)
