"""The optimal order one column at a time: an upper bound by relaxation, and a lower bound by an order that attains it.

In an optimal order (docs/theory/optimal-selection.md) the outcomes consumed so far are always an interval [a, b) of the
list sorted by loss, and an outcome b that joins S then adds its slope (problem.py). Along a path a falls while b grows.
Letting every b choose its own a can only raise the total, so

    delta(epsilon) <= integral over outcomes b of  max(0, max over a <= b of slope(a, b)).

The maximum needs no search to be certified: at a reference node the slope is known, and elsewhere it exceeds that by at
most the integral of g+ over the cells below the reference and of g- over those above it. The sign of g is found for
whole blocks of cells at a time, and the few cells left are the cost of the bound. When the chosen a falls with b the
relaxation costs nothing, and the references are an order that attains the value on the same atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.accounting.optimal.atoms import Atoms, Index
from dpselect.accounting.optimal.peaks import Peaks, find_peaks, rescan
from dpselect.accounting.optimal.problem import Density, Problem, scaled
from dpselect.accounting.optimal.recursion import ROUND_DOWN
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["ColumnBounds", "column_bounds", "columns_bounds"]

_SMALLEST_BLOCK = 16
_FIRST_BLOCKS = 128
"""Blocks along a side at first: with more atoms blocks are larger, so that their number does not grow as a square."""
_SPLIT = 2
_NEGLIGIBLE = 2e-10
_LOOSE = 2e-5
_WIDE = 3e-4
_MOST_RESCANNED = 400
_AT_ONCE = 1 << 14
"""Columns that are worked on together: so many that their number matters more than that of the calls."""


@dataclass(frozen=True)
class ColumnBounds:
    """`upper` bounds delta for every splitting of the atoms. An order of whole atoms attains `lower`.

    `open` is, for each atom, about how much of `upper` is due to cells of unsettled sign in its row or in its column.
    """

    upper: float
    lower: float
    open: Array


def column_bounds(atoms: Atoms, law: Repetitions, epsilon: float, *, certify: bool = True) -> ColumnBounds:
    """Bounds on the supremum over orders of H_{exp(epsilon)}(best-of-K of P || best-of-K of P'), epsilon >= 0.

    With `certify` false only `lower` is computed, in a fraction of the time, and `upper` is 1.
    """
    upper, lower, left = _bounds(Problem(atoms, law, np.array([epsilon])), certify)
    return ColumnBounds(upper=min(float(upper[0]), 1.0), lower=min(float(lower[0]), 1.0), open=left)


def columns_bounds(
    atoms: Atoms, law: Repetitions, epsilons: Array, *, certify: bool = True, wide: float = _WIDE
) -> tuple[Array, Array]:
    """`column_bounds` at some epsilons, upper ones first, in less time than one after the other.

    From the relative width `wide` on, peaks are looked for again on a finer scan.
    """
    several = max(1, _AT_ONCE // max(atoms.size, 1))
    parts = (Problem(atoms, law, epsilons[k : k + several]) for k in range(0, epsilons.size, several))
    found = [_bounds(part, certify, wide) for part in parts]
    upper, lower = (np.concatenate(values) for values in list(zip(*found, strict=True))[:2])
    return np.minimum(upper, 1.0), np.minimum(lower, 1.0)


def _bounds(problem: Problem, certify: bool, wide: float = _WIDE) -> tuple[Array, Array, Array]:
    """Upper and lower bounds at each epsilon, and what open cells add to the upper ones, for each atom."""
    infinite = float(problem.law.increment(complement_after=0.0, mass=problem.atoms.infinite))
    surely, ones = infinite * (1.0 - ROUND_DOWN), np.ones(problem.epsilons.size)
    none = np.zeros(problem.atoms.size)
    if not problem.width:
        return infinite * ones, surely * ones, none
    peaks = find_peaks(problem)
    gains = _peak_gains(problem, peaks)
    lower = surely + _path_values(problem, peaks, gains)
    if not certify:
        return ones, lower, none
    columns, left = _certified(problem, peaks, gains, lower)
    excess = problem.rows(columns - np.maximum(np.maximum(*gains), 0.0))
    total = np.sum(excess, axis=1)
    loose = excess > _LOOSE * (lower + total)[:, None]
    count = np.count_nonzero(loose, axis=1)
    again = np.flatnonzero((total > wide * lower) & (count > 0) & (count <= _MOST_RESCANNED))
    if again.size:
        found = rescan(problem.of(again), peaks.of(problem.numbers(again)), np.flatnonzero(loose[again]))
        # mostly the peaks were the right ones
        moved = np.flatnonzero(found.differ(peaks.of(problem.numbers(again))).reshape(again.size, -1).any(axis=1))
        again, found = again[moved], found.of(problem.of(again).numbers(moved))
        if again.size:
            part, some = problem.of(again), problem.numbers(again)
            gains = _peak_gains(part, found)
            lower[again] = np.maximum(lower[again], surely + _path_values(part, found, gains))
            columns[some] = np.minimum(columns[some], _certified(part, found, gains, lower[again])[0])
    return infinite + np.sum(problem.rows(columns), axis=1), lower, left


def _peak_gains(problem: Problem, peaks: Peaks) -> tuple[Array, Array]:
    """The gain of every column on its far and on its near peak."""
    far = problem.gains(peaks.far)
    return far, far if np.array_equal(peaks.near, peaks.far) else problem.gains(peaks.near)


def _path_values(problem: Problem, peaks: Peaks, gains: tuple[Array, Array]) -> Array:
    """For each epsilon the value of an order: S from some column t on, N atoms below t taken from the better peak.

    Rounded down.
    """
    far, near = gains
    ends, rows = problem.ends, np.arange(problem.epsilons.size)
    chosen = problem.rows(np.minimum(np.where(far >= near, peaks.far, peaks.near), ends))
    start = _last_maxima(_tails(problem.rows(np.maximum(far, near))))
    best = np.zeros(rows.size)
    place = np.arange(problem.width)
    for _ in range(2):
        first, move = start + problem.first, start
        # the columns before the start do not count
        kept = np.where(place >= start[:, None], chosen, problem.atoms.size)
        falling = np.minimum.accumulate(kept, axis=1), np.maximum.accumulate(chosen[:, ::-1], axis=1)[:, ::-1]
        for nodes in falling:
            # atoms before t alone can be N atoms
            gained = problem.gains(np.minimum(np.minimum(nodes, first[:, None]).ravel(), ends), rounding=ROUND_DOWN)
            tails = _tails(np.where(place >= start[:, None], problem.rows(gained), 0.0))
            value = tails[rows, start]
            move = np.where(value > best, _last_maxima(np.where(place >= start[:, None], tails, -np.inf)), move)
            best = np.maximum(best, value)
        start = move
    return best


def _tails(values: Array) -> Array:
    """In each row the sums from each place on."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


def _last_maxima(tails: Array) -> Index:
    """In each row the last place, up to rounding, at which its largest value is taken."""
    largest = np.max(tails, axis=1, keepdims=True)
    return tails.shape[1] - 1 - np.argmax((tails >= largest - 1e-12 * np.abs(largest))[:, ::-1], axis=1)


def _certified(problem: Problem, peaks: Peaks, gains: tuple[Array, Array], scale: Array) -> tuple[Array, Array]:
    """For every column a bound on the integral of the best slope's positive part, for every atom that of open cells.

    `scale` is about the sum of it, for each epsilon.
    """
    far_density, near_density = (problem.density(nodes, problem.columns) for nodes in (peaks.far, peaks.near))
    far_slack, near_slack, left = _wrong_signs(problem, peaks, (far_density, near_density), scale)
    far = _Candidate(gains[0], *far_density.range(), far_slack)
    double = peaks.turn <= problem.ends
    if not np.any(double):
        return far.positive(), left
    near = _Candidate(gains[1], *near_density.range(), near_slack)
    # the better of two peaks, and what the other can exceed it by somewhere inside the atom
    both = np.minimum(far.positive() + near.excess_over(far), near.positive() + far.excess_over(near))
    return np.asarray(np.where(double, both, far.positive())), left


@dataclass(frozen=True)
class _Candidate:
    """For every column one choice of interval: its gain, bounds on its density inside the atom, its slack."""

    gains: Array
    low: Array
    high: Array
    slack: Array

    def positive(self) -> Array:
        """A bound on the integral of the positive part of (density + slack)."""
        low, high = self.low, self.high
        gains = np.clip(self.gains, low, high)
        # convexity of the positive part: its mean is at most the chord's for values between low and high
        chord = np.maximum(high, 0.0) * ((gains - low) / np.where(high > low, high - low, 1.0))
        mean = np.where((low >= 0.0) | (high <= low), np.maximum(gains, 0.0), chord)
        # a column whose density is negative throughout pays only if its slack can lift it above zero
        return np.asarray(mean + np.minimum(self.slack, np.maximum(high + self.slack, 0.0)))

    def excess_over(self, other: _Candidate) -> Array:
        """A bound on how far (density + slack) can be above the positive part of the other's density."""
        return np.maximum(self.high + self.slack - np.maximum(other.low, 0.0), 0.0)


def _wrong_signs(
    problem: Problem, peaks: Peaks, densities: tuple[Density, Density], scale: Array
) -> tuple[Array, Array, Array]:
    """For every column what the slope can exceed its value at the far peak by before the turn, and at the near peak
    after it: the integral of g+ over the cells below a peak and of g- over those above it. And for every atom how much
    of it is left by single cells in its row or in its column.

    Blocks of known sign contribute nothing. Blocks that cannot contribute more than a tiny part of `scale` contribute
    their bound. The others are split. `k` is which epsilon a block belongs to.
    """
    n, first, width, t = problem.atoms.size, problem.first, problem.width, problem.atoms
    negligible = _NEGLIGIBLE * scale / scaled(problem.epsilons, np.ones(scale.size))
    size = _SMALLEST_BLOCK << max(0, math.ceil(math.log2(n / (_FIRST_BLOCKS * _SMALLEST_BLOCK))))
    i, j = (x.ravel() for x in np.meshgrid(np.arange(0, n, size), np.arange(first, n, size), indexing="ij"))
    kept = i < j + size  # blocks that have a cell whose row is not after its column
    i, j = i[kept], j[kept]
    k, i, j = np.repeat(np.arange(scale.size), i.size), np.tile(i, scale.size), np.tile(j, scale.size)
    small = np.zeros((scale.size, width))
    while True:
        i_end, j_end = np.minimum(i + size, n), np.minimum(j + size, n)
        top, bottom = problem.cross_bounds(i, i_end, j, j_end, problem.epsilons[k])
        blocks = -(-width // size)
        block = (j - first) // size + k * blocks
        (far_0, far_1), (turn_0, turn_1), (near_0, near_1) = (
            _extremes(problem.rows(nodes), size, block) for nodes in (peaks.far, peaks.turn, peaks.near)
        )
        above_peak = (i >= far_1) & ((i_end <= turn_0) | (i >= near_1))
        below_peak = (i_end <= far_0) | ((i >= turn_1) & (i_end <= near_0))
        open_ = np.flatnonzero(~((above_peak & (bottom >= 0.0)) | (below_peak & (top <= 0.0))))
        i, j, k, top, bottom, block = i[open_], j[open_], k[open_], top[open_], bottom[open_], block[open_]
        if size == 1:
            break
        weight = t.between(i, i_end[open_])[1] * np.maximum(np.maximum(top, -bottom), 0.0)
        tiny = weight * t.between(j, j_end[open_])[1] <= negligible[k]
        sums = np.bincount(block[tiny], weight[tiny], scale.size * blocks).reshape(scale.size, blocks)
        small += np.repeat(sums, size, axis=1)[:, :width]
        i, j, k = _quartered(i[~tiny], j[~tiny], k[~tiny], size // _SPLIT)
        size //= _SPLIT
        inside = np.flatnonzero((i < n) & (j < n) & (i < j + size))
        i, j, k = i[inside], j[inside], k[inside]
    column = j - first + k * width
    within_far = i < peaks.turn[column]
    above = np.where(within_far, i >= peaks.far[column], i >= peaks.near[column])
    wrong, right = (np.maximum(np.where(x, -bottom, top), 0.0) for x in (above, ~above))
    # q_i q_j is the area of a cell, and twice that of a self cell: bounds hold at every place inside the column
    weights = np.where(wrong > 0.0, t.q[i] * t.q[j] * wrong, 0.0)
    # of which inside the cell, beyond both of its ends, no more is left: up at one rate and down at the other
    inner = weights * np.where(np.isfinite(wrong), right / np.maximum(wrong + right, 1e-300), 1.0)
    weights, inner = scaled(problem.epsilons[k], weights), scaled(problem.epsilons[k], inner)
    little = scaled(problem.epsilon, small.ravel() * t.q[problem.ends])
    far, near = (
        little + _slack(problem, density, column[part], (i + above)[part], weights[part], inner[part])
        for part, density in zip((within_far, ~within_far), densities, strict=True)
    )
    sums = np.bincount(column, weights, problem.columns.size)[column]
    with np.errstate(invalid="ignore"):
        shares = np.nan_to_num(weights * np.minimum((far + near)[column] / np.maximum(sums, 1e-300), 1.0), posinf=0.0)
    left: Array = np.asarray(np.bincount(i, shares, n) + np.bincount(j, shares, n), dtype=np.float64)
    return far, near, left


def _slack(problem: Problem, density: Density, column: Index, node: Index, weights: Array, inside: Array) -> Array:
    """For every column what its density may exceed that of its reference by, given the cells of unsettled sign.

    `weights` bounds what a cell may add on the way from the reference to its farther end `node`, and `inside` by how
    much a place within it may be above both of its ends. The sum of the weights of a column is a bound. So is the
    largest excess of the density at such a node, which is computed there, plus the largest of the insides: settled
    cells do not rise on the way, so a place in one is no better than the node before it, or than the reference.
    """
    count = problem.columns.size
    sums: Array = np.asarray(np.bincount(column, weights, count), dtype=np.float64)
    kept = np.flatnonzero((weights > 0.0) & (sums[column] > 0.0))
    if not kept.size:
        return sums
    column, node, inside = column[kept], node[kept], inside[kept]
    excess = problem.density(node, column).excess_over(density.of(column))
    largest, worst = np.zeros(count), np.zeros(count)
    np.maximum.at(largest, column, excess)
    np.maximum.at(worst, column, inside)
    return np.minimum(sums, largest + worst)


def _quartered(i: Index, j: Index, k: Index, size: int) -> tuple[Index, Index, Index]:
    """The corners of the smaller blocks, of the given size, that blocks are cut into."""
    step = size * np.arange(_SPLIT)
    shape = (i.size, _SPLIT, _SPLIT)
    corners = i[:, None, None] + step[:, None], j[:, None, None] + step, k[:, None, None]
    rows, columns, epsilons = (np.broadcast_to(x, shape).ravel() for x in corners)
    return rows, columns, epsilons


def _extremes(nodes: Index, size: int, block: Index) -> tuple[Index, Index]:
    """The smallest and the largest node in each of some blocks of `size` columns of one epsilon, a row each."""
    starts = np.arange(0, nodes.shape[1], size)
    least, most = (extreme.reduceat(nodes, starts, axis=1).ravel() for extreme in (np.minimum, np.maximum))
    return least[block], most[block]
