"""The optimal order one column at a time: an upper bound by relaxation, and a lower bound by an order that attains it.

In an optimal order (docs/theory/optimal-selection.md) the outcomes consumed so far are always an interval [a, b) of the
list sorted by loss, and an outcome b that joins S then adds its slope (problem.py). Along a path a falls while b grows.
Letting every b choose its own a can only raise the total, so

    delta(epsilon) <= integral over outcomes b of  max(0, max over a <= b of slope(a, b)).

The maximum needs no search to be certified: at a reference node the slope is known, and elsewhere it exceeds that by at
most the integral of g+ over the cells below the reference and of g- over those above it. The sign of g is settled for
whole blocks of cells at a time; the few cells left are what the bound costs. When the chosen a falls with b the
relaxation costs nothing, and the references are an order that attains the value on the same atoms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect.accounting.optimal.atoms import Array, Atoms, Index
from dpselect.accounting.optimal.peaks import Peaks, find_peaks, rescan
from dpselect.accounting.optimal.problem import Density, Problem, scaled
from dpselect.accounting.optimal.recursion import ROUND_DOWN
from dpselect.repetitions import Repetitions

__all__ = ["ColumnBounds", "column_bounds"]

_BLOCK = 16
_SPLIT = 4
_NEGLIGIBLE = 2e-10
_LOOSE = 2e-5
_WIDE = 3e-4
_MOST_RESCANNED = 400


@dataclass(frozen=True)
class ColumnBounds:
    """`upper` bounds delta for every splitting of the atoms; `lower` is attained by an order of whole atoms."""

    upper: float
    lower: float


def column_bounds(atoms: Atoms, law: Repetitions, epsilon: float, *, certify: bool = True) -> ColumnBounds:
    """Bounds on the supremum over orders of H_{exp(epsilon)}(best-of-K of P || best-of-K of P'), epsilon >= 0.

    With `certify` false only `lower` is worked out, in a fraction of the time, and `upper` is 1.
    """
    problem = Problem(atoms, law, epsilon)
    infinite = float(law.increment(complement_after=0.0, mass=atoms.infinite))
    if problem.first == atoms.size:
        return ColumnBounds(upper=infinite, lower=infinite * (1.0 - ROUND_DOWN))
    peaks = find_peaks(problem)
    gains = _peak_gains(problem, peaks)
    surely = infinite * (1.0 - ROUND_DOWN)
    lower = surely + _path_value(problem, peaks, gains)
    if not certify:
        return ColumnBounds(upper=1.0, lower=min(1.0, lower))
    columns = _certified(problem, peaks, gains, lower)
    excess = columns - np.maximum(np.maximum(*gains), 0.0)
    total = float(np.sum(excess))
    loose = np.flatnonzero(excess > _LOOSE * (lower + total))
    if total > _WIDE * lower and 0 < loose.size <= _MOST_RESCANNED:
        peaks = rescan(problem, peaks, loose)
        gains = _peak_gains(problem, peaks)
        lower = max(lower, surely + _path_value(problem, peaks, gains))
        columns = np.minimum(columns, _certified(problem, peaks, gains, lower))
    upper = infinite + float(np.sum(columns))
    return ColumnBounds(upper=min(1.0, upper), lower=min(1.0, lower))


def _peak_gains(problem: Problem, peaks: Peaks) -> tuple[Array, Array]:
    """What every column gains on its far and on its near peak."""
    far = problem.gains(peaks.far)
    return far, far if np.array_equal(peaks.near, peaks.far) else problem.gains(peaks.near)


def _path_value(problem: Problem, peaks: Peaks, gains: tuple[Array, Array]) -> float:
    """The value of an order of the atoms: S from some column t on, N atoms below t taken from the better peak.

    Rounded down.
    """
    b = problem.columns
    far, near = gains
    chosen = np.minimum(np.where(far >= near, peaks.far, peaks.near), b)
    start, best = _last_maximum(np.cumsum(np.maximum(far, near)[::-1])[::-1]), 0.0
    for _ in range(2):
        first, move = b[start], 0
        falling = np.minimum.accumulate(chosen[start:]), np.maximum.accumulate(chosen[start:][::-1])[::-1]
        for nodes in falling:
            # atoms before t alone can be N atoms
            gained = problem.gains_of(np.minimum(nodes, first), b[start:], rounding=ROUND_DOWN)
            tails = np.cumsum(gained[::-1])[::-1]
            if tails[0] > best:
                best, move = float(tails[0]), _last_maximum(tails)
        start += move
    return best


def _last_maximum(tails: Array) -> int:
    """The last place, up to rounding, at which the largest value is taken."""
    largest = float(np.max(tails))
    return int(np.flatnonzero(tails >= largest - 1e-12 * abs(largest))[-1])


def _certified(problem: Problem, peaks: Peaks, gains: tuple[Array, Array], scale: float) -> Array:
    """For every column a bound on the integral of the positive part of the best slope."""
    b = problem.columns
    far_density, near_density = problem.density(peaks.far, b), problem.density(peaks.near, b)
    far_slack, near_slack = _wrong_signs(problem, peaks, (far_density, near_density), scale)
    far = _Candidate(gains[0], *far_density.range(), far_slack)
    double = peaks.turn <= problem.columns
    if not np.any(double):
        return far.positive()
    near = _Candidate(gains[1], *near_density.range(), near_slack)
    # the better of two peaks, and what the other can exceed it by somewhere inside the atom
    both = np.minimum(far.positive() + near.excess_over(far), near.positive() + far.excess_over(near))
    return np.asarray(np.where(double, both, far.positive()))


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
        """A bound on how far (density + slack) can lie above the positive part of the other's density."""
        return np.maximum(self.high + self.slack - np.maximum(other.low, 0.0), 0.0)


def _wrong_signs(
    problem: Problem, peaks: Peaks, densities: tuple[Density, Density], scale: float
) -> tuple[Array, Array]:
    """For every column what the slope can exceed its value at the far peak by before the turn, and at the near peak
    after it: the integral of g+ over the cells below a peak and of g- over those above it.

    Blocks whose sign is settled contribute nothing; blocks that cannot contribute more than a tiny part of `scale`
    contribute their bound; the others are split.
    """
    n, first, t = problem.atoms.size, problem.first, problem.atoms
    negligible = _NEGLIGIBLE * scale / float(scaled(problem.epsilon, np.ones(1))[0])
    i, j = (x.ravel() for x in np.meshgrid(np.arange(0, n, _BLOCK), np.arange(first, n, _BLOCK), indexing="ij"))
    i, j = _on_triangle(i, j, _BLOCK)
    size, small = _BLOCK, np.zeros(n - first)
    while True:
        i_end, j_end = np.minimum(i + size, n), np.minimum(j + size, n)
        top, bottom = problem.cross_bounds(i, i_end, j, j_end)
        block = (j - first) // size
        (far_0, far_1), (turn_0, turn_1), (near_0, near_1) = (
            _extremes(nodes, size, block) for nodes in (peaks.far, peaks.turn, peaks.near)
        )
        above_peak = (i >= far_1) & ((i_end <= turn_0) | (i >= near_1))
        below_peak = (i_end <= far_0) | ((i >= turn_1) & (i_end <= near_0))
        open_ = np.flatnonzero(~((above_peak & (bottom >= 0.0)) | (below_peak & (top <= 0.0))))
        i, j, top, bottom, block = i[open_], j[open_], top[open_], bottom[open_], block[open_]
        if size == 1:
            break
        weight = t.between(i, i_end[open_])[1] * np.maximum(np.maximum(top, -bottom), 0.0)
        tiny = weight * t.between(j, j_end[open_])[1] <= negligible
        small += np.repeat(np.bincount(block[tiny], weight[tiny], -(-(n - first) // size)), size)[: n - first]
        i, j = _quartered(i[~tiny], j[~tiny], size // _SPLIT)
        size //= _SPLIT
        i, j = _on_triangle(i[i < n], j[i < n], size)
        i, j = i[j < n], j[j < n]
    column = j - first
    within_far = i < peaks.turn[column]
    above = np.where(within_far, i >= peaks.far[column], i >= peaks.near[column])
    wrong, right = (np.maximum(np.where(x, -bottom, top), 0.0) for x in (above, ~above))
    # q_i q_j is the area of a cell, and twice that of a self cell: bounds hold at every place inside the column
    weights = np.where(wrong > 0.0, t.q[i] * t.q[j] * wrong, 0.0)
    # of which inside the cell, beyond both of its ends, no more is left: up at one rate and down at the other
    inside = weights * np.where(np.isfinite(wrong), right / np.maximum(wrong + right, 1e-300), 1.0)
    weights, inside = scaled(problem.epsilon, weights), scaled(problem.epsilon, inside)
    small = scaled(problem.epsilon, small * t.q[first:])
    far, near = (
        small + _slack(problem, density, column[part], (i + above)[part], weights[part], inside[part])
        for part, density in zip((within_far, ~within_far), densities, strict=True)
    )
    return far, near


def _slack(problem: Problem, density: Density, column: Index, node: Index, weights: Array, inside: Array) -> Array:
    """For every column what its density may exceed that of its reference by, given the cells of unsettled sign.

    `weights` bounds what a cell may add on the way from the reference to its farther end `node`, and `inside` by how
    much a place within it may lie above both of its ends. The sum of the weights of a column is a bound. So is the
    largest excess of the density at such a node, which is worked out there, plus the largest of the insides: settled
    cells do not rise on the way, so a place in one is no better than the node before it, or than the reference.
    """
    count = problem.columns.size
    sums: Array = np.asarray(np.bincount(column, weights, count), dtype=np.float64)
    kept = np.flatnonzero((weights > 0.0) & (sums[column] > 0.0))
    if not kept.size:
        return sums
    column, node, inside = column[kept], node[kept], inside[kept]
    excess = problem.density(node, problem.columns[column]).excess_over(density.of(column))
    largest, worst = np.zeros(count), np.zeros(count)
    np.maximum.at(largest, column, excess)
    np.maximum.at(worst, column, inside)
    return np.minimum(sums, largest + worst)


def _on_triangle(i: Index, j: Index, size: int) -> tuple[Index, Index]:
    """The blocks that have a cell whose row is not after its column."""
    kept = i < j + size
    return i[kept], j[kept]


def _quartered(i: Index, j: Index, size: int) -> tuple[Index, Index]:
    """The corners of the smaller blocks, of the given size, that blocks are cut into."""
    step = size * np.arange(_SPLIT)
    shape = (i.size, _SPLIT, _SPLIT)
    rows, columns = i[:, None, None] + step[:, None], j[:, None, None] + step
    return np.broadcast_to(rows, shape).ravel(), np.broadcast_to(columns, shape).ravel()


def _extremes(nodes: Index, size: int, block: Index) -> tuple[Index, Index]:
    """The smallest and the largest node in each of some blocks of `size` columns."""
    starts = np.arange(0, nodes.size, size)
    return np.minimum.reduceat(nodes, starts)[block], np.maximum.reduceat(nodes, starts)[block]
