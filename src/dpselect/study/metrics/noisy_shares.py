"""Intervals for shares and quantiles of rows, from counts whose noise is known: sampling and noise in one bound.

A row gives a number v from 0 to 1, of mean m over new rows. The cells that it enters have noise. With p from 0 to 1 let
S(p) be the noisy sum of v less p times the noisy number of rows, an integer sum of cells with known weights.

Lemma. Let m <= p, let there be at most N rows, and let c(t) bound the cumulant function of the noise of S(p). Put
k(t) = ln(1 - p + p e^t) - p t. Then for each t > 0 S(p) is at least (N k(t) + c(t) + ln(1/a))/t with probability at
most a.

Proof. Let the rows be n <= N independent draws, independent of the noise. As exp is convex,
E exp(t (v - p)) is at most (1 - m + m e^t) e^(-p t). That is at most exp(k(t)), as m <= p. k(t) is not negative by
Jensen's inequality. So E exp(t S(p)) <= exp(n k(t) + c(t)) <= exp(N k(t) + c(t)), and Markov's inequality is the rest.
QED

Rows of persons. If a person has up to q rows, which may depend on each other, k(q t)/q takes the place of k(t), and one
t is chosen by public numbers. Then the lemma holds (docs/theory/persons.md, Theorem 4).

Ends of intervals. The values p of a public grid are asked in rising order, as long as each is shown to be below m. The
last one shown is the lower end. It is above m only if the first value of the grid that is at least m, which no data
decide, was shown wrongly: with probability a. Likewise for the other end, and for the quantiles of numbers that are
counted in the bins of a public grid, whose edges are asked in order. The number of rows is bounded by the noisy number
of rows plus a limit of its noise, at a cost of a twentieth of the failure.

Source of the inequalities: Hoeffding (1963), theorem 1; Boucheron, Lugosi, Massart (2013), section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.study.metrics.person_sample import SINGLE_ROWS, PersonSample

__all__ = ["CellNoise", "quantile_interval", "quantile_value", "share_interval_of_cells"]

Array = NDArray[np.float64]
_GRID: Final = 2**12
"""Steps of the grid of shares."""
_SHARES: Final = np.arange(1, _GRID) / _GRID
_EXPONENTS: Final = np.geomspace(1e-4, 60.0, 40)
_ROWS: Final = 0.05
"""The part of the failure that bounds the number of rows."""


def _no_noise(at: Array) -> Array:
    return np.zeros_like(at)


def _row_cumulants(p: Array, per_person: int) -> Array:
    """k(t) of the lemma for each p and each exponent, or k(q t)/q for q rows of a person."""
    others, t = 1.0 - p[..., None], per_person * _EXPONENTS
    return np.asarray((others * t + np.log1p(others * np.expm1(-t))) / per_person)


@lru_cache(maxsize=2)
def _grid_cumulants(per_person: int) -> Array:
    return _row_cumulants(_SHARES, per_person)


@dataclass(frozen=True)
class CellNoise:
    """The noise of cells that are in `steps` a row. `cumulants` bounds the cumulant function of one cell's noise.

    `public_rows` declares that the number of rows is public: one cell then has noise, and the other is what lacks.
    `sample` says how the rows were drawn.
    """

    cumulants: Callable[[Array], Array] = _no_noise
    steps: int = 1
    public_rows: bool = False
    sample: PersonSample = SINGLE_ROWS

    def most_rows(self, total: float, cells: int, failure: float) -> float:
        """A bound on the number of rows that fails with probability at most `failure`."""
        if self.public_rows or self.cumulants is _no_noise:
            return max(total, 0.0)
        t = _EXPONENTS
        limits = (cells * self.cumulants(t / self.steps) + math.log(1.0 / failure)) / t
        return max(total + float(np.min(limits)), 0.0)

    def shown(
        self, excess: Any, p: Any, cells: Sequence[tuple[Any, Any]], rows: float, failure: float
    ) -> NDArray[np.bool_]:
        """Whether a share is shown to be above `p`, which is wrong with probability at most `failure` at each `p`.

        `excess` is S(p), of so many `cells` with such a weight each. Arguments that are arrays are parallel.
        """
        t = _EXPONENTS
        of_noise = np.zeros_like(t)
        for count, weight in cells:
            each = np.asarray(weight, dtype=np.float64)[..., None] * t / self.steps
            several = np.asarray(count, dtype=np.float64)[..., None]
            with np.errstate(invalid="ignore"):  # no cell of which the noise has no cumulant there
                of_noise = of_noise + np.where(several > 0.0, several * self.cumulants(each), 0.0)
        each_row, about = self.sample.per_person, self.sample.rows
        of_rows = _grid_cumulants(each_row) if p is _SHARES else _row_cumulants(np.asarray(p, np.float64), each_row)
        fixed = of_noise + math.log(1.0 / failure)
        limits = (rows * of_rows + fixed) / t
        if each_row == 1:
            limits = np.min(limits, axis=-1)
        else:  # the number of rows may depend on what they hold: only the public one may choose
            chosen = np.argmin((about * of_rows + fixed) / t, axis=-1)
            limits = np.take_along_axis(limits, chosen[..., None], axis=-1)[..., 0]
        return np.asarray(np.asarray(excess, dtype=np.float64) >= limits * (1.0 + 1e-9))


def share_interval_of_cells(
    good: float, total: float, cells: tuple[int, int], noise: CellNoise, failure: float
) -> tuple[float, float]:
    """An interval for the mean share of `good` in new rows, which fails with probability at most `failure`.

    `good` and `total` are noisy sums in rows, of so many cells: those of `good`, and the others.

    >>> low, high = share_interval_of_cells(900.0, 1000.0, (1, 1), CellNoise(), 0.05)
    >>> round(low, 2), round(high, 2)
    (0.87, 0.92)
    """
    rows = noise.most_rows(total, sum(cells), _ROWS * failure)
    each, grid = (1.0 - _ROWS) * failure / 2.0, _SHARES

    def shown(part: float, counted: int, others: int) -> int:
        weights = [(1, np.ones_like(grid))] if noise.public_rows else [(counted, 1.0 - grid), (others, grid)]
        return _last_shown(noise.shown(part - grid * total, grid, weights, rows, each))

    return shown(good, *cells) / _GRID, 1.0 - shown(total - good, *cells[::-1]) / _GRID


def _last_shown(shown: NDArray[np.bool_]) -> int:
    """How many are shown, one after another from the first on."""
    return len(shown) if bool(np.all(shown)) else int(np.argmin(shown))


def quantile_interval(
    blocks: Array, counts: Array, edges: Array, quantile: float, noise: CellNoise, failure: float
) -> tuple[float, float]:
    """An interval for a quantile of numbers on new rows: for the least t with P(x <= t) at least `quantile`.

    Bin i counts the numbers above `edges[i]` and at most `edges[i + 1]`, the first also `edges[0]`. All are in bins.
    Blocks of equally many bins are counted too, each with noise of its own. So few cells add up to the number below an
    edge: blocks before it, and bins of its own block.

    >>> edges = np.linspace(0.0, 1.0, 101)
    >>> low, high = quantile_interval(np.full(10, 100.0), np.full(100, 10.0), edges, 0.5, CellNoise(), 0.05)
    >>> round(low, 2), round(high, 2)
    (0.45, 0.55)
    """
    rows = noise.most_rows(float(np.sum(blocks)), len(blocks), _ROWS * failure)
    each = (1.0 - _ROWS) * failure / 2.0
    reached, cells = _excess(blocks, counts, quantile)
    few = noise.shown(-reached, np.full(len(reached), 1.0 - quantile), cells, rows, each)
    many = noise.shown(reached, np.full(len(reached), quantile), cells, rows, each)
    return float(edges[_last_shown(few)]), float(edges[len(counts) - _last_shown(many[::-1])])


def _excess(blocks: Array, counts: Array, quantile: float) -> tuple[Array, list[tuple[Array, Array]]]:
    """At each inner edge the noisy number of rows below less `quantile` times that of all, and the weights of cells.

    Of the edge's own block the bins below it or those above it are added up, or both: whichever has the least noise.
    """
    size = len(counts) // len(blocks)
    edge = np.arange(1, len(counts))
    block, inside = edge // size, edge % size
    before = np.concatenate([[0.0], np.cumsum(blocks)])
    lower = np.concatenate([[0.0], np.cumsum(counts)])
    under = lower[edge] - lower[block * size]
    over = lower[np.minimum((block + 1) * size, len(counts))] - lower[edge]
    own = blocks[np.minimum(block, len(blocks) - 1)]
    after, q = before[-1] - before[block] - own, quantile
    split = inside > 0
    # weights of the block's bins below, of those above and of the block itself, for each way
    ways = np.array([(1.0 - q, q, 0.0), (1.0, 0.0, q), (0.0, 1.0, 1.0 - q)])
    sums = np.stack([(1.0 - q) * under - q * over, under - q * own, (1.0 - q) * own - over])
    squares = ways[:, :1] ** 2 * inside + ways[:, 1:2] ** 2 * (size - inside) + ways[:, 2:] ** 2
    way = np.argmin(squares, axis=0)
    chosen = sums[way, np.arange(len(edge))]
    excess = (1.0 - q) * before[block] + np.where(split, chosen - q * after, -q * (before[-1] - before[block]))
    ones = np.ones(len(edge))
    cells = [
        (block * ones, (1.0 - q) * ones),
        (np.where(split, len(blocks) - block - 1, len(blocks) - block) * ones, q * ones),
        (np.where(split, inside, 0) * ones, ways[way, 0]),
        (np.where(split, size - inside, 0) * ones, ways[way, 1]),
        (np.where(split, 1, 0) * ones, ways[way, 2]),
    ]
    return excess, cells


def quantile_value(blocks: Array, counts: Array, edges: Array, quantile: float) -> float:
    """The quantile of counted numbers, as in `quantile_interval`, with those of a bin spread evenly over it.

    Noisy sums cross the quantile several times: the mean of the first and the last place where they do.

    >>> float(quantile_value(np.array([2.0, 2.0]), np.ones(4), np.arange(5.0), 0.5))
    2.0
    """
    excess = np.concatenate([[-np.inf], _excess(blocks, counts, quantile)[0], [np.inf]])
    above = int(np.argmax(excess >= 0.0))
    under = len(excess) - 1 - int(np.argmax(excess[::-1] < 0.0))
    return float(np.mean([_crossing(excess, edges, place) for place in (above - 1, under)]))


def _crossing(excess: Array, edges: Array, place: int) -> float:
    before, after = excess[place], excess[place + 1]
    part = -before / (after - before) if np.isfinite(before) and np.isfinite(after) else 0.5
    return float(edges[place] + (edges[place + 1] - edges[place]) * part)
