"""The optimal order one column at a time: an upper bound by relaxation, and a lower bound by an order that attains it.

Notation. K has generating function phi; atoms of finite loss are sorted; F[a, b) and F'[a, b) are the P- and P'-masses
of the atoms between nodes a and b. In an optimal order (docs/theory/optimal-selection.md) the outcomes consumed so far
are always an interval [a, b) of the sorted list, and an outcome of loss l that joins S when the interval is [a, b) adds
    P' dy ( exp(l) phi'(F[a, b)) - E phi'(F'[a, b)) ),      E = exp(epsilon).
Along a path a falls while b grows. Letting every b choose its own a can only raise the total, so

    delta(epsilon) <= integral over outcomes b of  max(0, max over a <= b of that).

The maximum needs no search to be certified: for any reference node the rest is bounded by the cells in which
    g = exp(l_a + l_b) phi''(F) - E phi''(F')
has the wrong sign, and phi'' is monotone, so corners of a block of cells bound g in it. When the chosen a falls with b
the relaxation costs nothing and the reference path is an order that attains the value on the same atoms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.repetitions import Repetitions

__all__ = ["ColumnBounds", "column_bounds"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_BLOCK = 16
_SPLIT = 4
_COARSE_COLUMNS = 16
_COARSE_NODES = 64
_FINE_NODES = 512
_LOOSE = 2e-5
_MOST_RESCANNED = 400
_LARGEST_EXPONENT = 690.0


@dataclass(frozen=True)
class ColumnBounds:
    """`upper` bounds delta for every splitting of the atoms; `lower` is attained by an order of the atoms as they are."""

    upper: float
    lower: float


def column_bounds(atoms: Atoms, law: Repetitions, epsilon: float, *, certify: bool = True) -> ColumnBounds:
    """Bounds on the supremum over orders of H_{exp(epsilon)}(best-of-K of P || best-of-K of P'), epsilon >= 0."""
    problem = _Problem(atoms, law, epsilon)
    infinite = float(law.increment(complement_after=0.0, mass=atoms.infinite))
    if problem.first == atoms.size:
        return ColumnBounds(upper=infinite, lower=infinite)
    peaks = problem.peaks()
    lower = infinite + problem.path_value(peaks)
    if not certify:
        return ColumnBounds(upper=1.0, lower=min(1.0, lower))
    columns = problem.certified(peaks)
    excess = columns - np.maximum(problem.best_gains(peaks), 0.0)
    loose = np.flatnonzero(excess > _LOOSE * (lower + np.sum(excess)))
    if 0 < loose.size <= _MOST_RESCANNED:
        peaks = problem.rescanned(peaks, loose)
        lower = max(lower, infinite + problem.path_value(peaks))
        columns = np.minimum(columns, problem.certified(peaks))
    upper = infinite + float(np.sum(columns))
    return ColumnBounds(upper=min(1.0, max(upper, lower)), lower=min(1.0, lower))


@dataclass(frozen=True)
class _Peaks:
    """For every column two nodes at which its slope peaks, the nearer to the column itself and a farther one.

    The slope falls from `near` down to `turn` and rises from there down to `far`; with a single peak `far` equals
    `near` and `turn` is one past the column. Nothing but the width of the bounds depends on how well they are found.
    """

    near: Index
    turn: Index
    far: Index
    """Nodes from 0 to one past the column; that one stands for an interval that stays empty within the atom too."""


class _Problem:
    """One (atoms, law, epsilon): masses, derivatives and the columns that can matter."""

    def __init__(self, atoms: Atoms, law: Repetitions, epsilon: float) -> None:
        self.atoms, self.law, self.epsilon = atoms, law, epsilon
        # For E >= 1 an interval of losses <= 0 has F <= F', so its end never gains: columns start at positive losses.
        self.first = int(np.searchsorted(atoms.losses, 0.0, side="right"))
        self.columns = np.arange(self.first, atoms.size)

    def gains(self, a: Index, b: Index) -> Array:
        """What atom b adds to S on top of [a, b): the difference of increments of phi; a = b + 1 keeps it empty."""
        t, within = self.atoms, np.minimum(a, b)
        rise = self.law.increment(complement_after=t.outside_p(within, b + 1), mass=t.p[b])
        cost = self.law.increment(complement_after=t.outside_q(within, b + 1), mass=t.q[b])
        alone = float(self.law.pmf(1.0))
        rise, cost = np.where(a > b, alone * t.p[b], rise), np.where(a > b, alone * t.q[b], cost)
        return np.asarray(rise - _scaled(self.epsilon, cost))

    def slopes(self, a: Index, b: Index) -> Array:
        """The gain per P'-mass at the start of atom b on top of [a, b), divided by E."""
        t = self.atoms
        rise = t.losses[b] - self.epsilon + self.law.log_derivative(t.outside_p(a, b))
        cost = self.law.log_derivative(t.outside_q(a, b))
        return np.asarray(np.exp(np.minimum(rise, _LARGEST_EXPONENT)) - np.exp(cost))

    # ---- the peaks: good intervals for every column ----------------------------------------------------------------

    def peaks(self) -> _Peaks:
        """Peaks of every column: a coarse scan of some columns, a scan of those where peaks jump, bisection in all."""
        columns = self.columns
        some = np.unique(np.append(columns[::_COARSE_COLUMNS], columns[-1]))
        near, far = self._scan(some, _COARSE_NODES)
        apart = 3 * max(1, self.atoms.size // _COARSE_NODES)
        jumps = (np.abs(np.diff(near)) > apart) | (np.abs(np.diff(far)) > apart)
        if np.any(jumps):
            ranges = [np.arange(some[k] + 1, some[k + 1]) for k in np.flatnonzero(jumps)]
            more = np.concatenate(ranges)
            extra = self._scan(more, _COARSE_NODES)
            order = np.argsort(np.append(some, more))
            some = np.append(some, more)[order]
            near, far = np.append(near, extra[0])[order], np.append(far, extra[1])[order]
        # peaks move slowly from column to column: look between the neighbours' and a little beyond
        right = np.searchsorted(some, columns)
        left = np.maximum(right - 1, 0)
        left = np.where(some[right] == columns, right, left)
        near, far = (
            self._climb(
                columns,
                np.clip(np.minimum(nodes[left], nodes[right]) - 2, 0, columns + 1),
                np.clip(np.maximum(nodes[left], nodes[right]) + 2, 0, columns + 1),
            )
            for nodes in (near, far)
        )
        return self._with_turns(near, far)

    def rescanned(self, peaks: _Peaks, chosen: Index) -> _Peaks:
        """The same with the peaks of some columns looked for on a fine scan."""
        near, far = peaks.near.copy(), peaks.far.copy()
        near[chosen], far[chosen] = self._scan(self.columns[chosen], _FINE_NODES)
        return self._with_turns(near, far)

    def _with_turns(self, near: Index, far: Index) -> _Peaks:
        double = far < near
        return _Peaks(near=near, turn=np.where(double, self._turns(far, near), self.columns + 1), far=far)

    def _scan(self, columns: Index, count: int) -> tuple[Index, Index]:
        """The near and the far peak of each column, on `count` nodes and bisected between them; equal if there is one.

        Reading from the column's own atom downwards, the first fall ends the near peak and a later rise leads to a far
        one, of which the highest is taken.
        """
        grid = np.unique(np.linspace(0, self.atoms.size, count + 1).astype(np.intp))[::-1]
        nodes = np.minimum(grid[None, :], columns[:, None])
        slopes = self.slopes(nodes, np.broadcast_to(columns[:, None], nodes.shape))
        step = np.diff(slopes, axis=1)
        noise = 1e-10 * np.max(np.abs(slopes), axis=1, keepdims=True)
        fallen = np.maximum.accumulate(step < -noise, axis=1)
        near = np.where(fallen[:, -1], np.argmax(fallen, axis=1), grid.size - 1)
        rises = np.maximum.accumulate(fallen & (step > noise), axis=1)
        after = np.arange(grid.size)[None, :] > np.argmax(rises, axis=1)[:, None]
        far = np.where(rises[:, -1], np.argmax(np.where(after, slopes, -np.inf), axis=1), near)
        return self._refine(columns, nodes, near), self._refine(columns, nodes, far)

    def _refine(self, columns: Index, nodes: Index, best: Index) -> Index:
        """The peak between the scanned nodes beside the best one of each scanned column."""
        rows = np.arange(columns.size)
        above, below = np.maximum(best - 1, 0), np.minimum(best + 1, nodes.shape[1] - 1)
        # scanned nodes pile up at the column itself; past it lies the empty interval
        above = np.where(nodes[rows, above] > nodes[rows, best], nodes[rows, above], columns + 1)
        return self._climb(columns, nodes[rows, below], above)

    def _turns(self, low: Index, high: Index) -> Index:
        """The lowest slope between two peaks, by bisection."""
        low, high = low.copy(), high.copy()
        while np.any(high > low):
            middle = (low + high) // 2
            rising = self._rises(middle, self.columns)
            low, high = np.where(rising | (low >= high), low, middle + 1), np.where(rising, middle, high)
        return low

    def _climb(self, b: Index, low: Index, high: Index) -> Index:
        """Bisection on the sign of slope(a + 1) - slope(a) between nodes low and high of each column."""
        low, high = low.copy(), high.copy()
        while np.any(high > low):
            middle = (low + high) // 2
            rising = self._rises(middle, b)
            low, high = (
                np.where(rising & (high > low), np.minimum(middle + 1, high), low),
                np.where(rising, high, middle),
            )
        return low

    def _rises(self, a: Index, b: Index) -> NDArray[np.bool_]:
        """Whether taking atom a out of the interval raises the slope: g < 0 in the middle of the cell."""
        t = self.atoms
        a = np.minimum(a, b)
        inside = np.where(a < b, 0.5, 0.0)
        with np.errstate(divide="ignore"):
            v_p = np.clip(t.outside_p(a, b) + inside * t.p[a] - 0.5 * t.p[b], 0.0, 1.0)
            v_q = np.clip(t.outside_q(a, b) + inside * t.q[a] - 0.5 * t.q[b], 0.0, 1.0)
            keep, drop = np.log(self.law.second_derivative(v_p)), np.log(self.law.second_derivative(v_q))
        keep, drop = np.maximum(keep, -1e300), np.maximum(drop, -1e300)
        return np.asarray(t.losses[a] + t.losses[b] - self.epsilon + keep < drop)

    # ---- an order that attains ----------------------------------------------------------------------------------

    def best_gains(self, peaks: _Peaks) -> Array:
        """For every column the larger gain of its two peaks."""
        return np.maximum(self.gains(peaks.far, self.columns), self.gains(peaks.near, self.columns))

    def path_value(self, peaks: _Peaks) -> float:
        """The value of an order of the atoms: S from some column t on, N atoms below t taken from the better peak."""
        b = self.columns
        gains = self.gains(peaks.far, b), self.gains(peaks.near, b)
        chosen = np.minimum(np.where(gains[0] >= gains[1], peaks.far, peaks.near), b)
        start, best = _last_maximum(np.cumsum(np.maximum(*gains)[::-1])[::-1]), 0.0
        for _ in range(2):
            first, move = b[start], 0
            for nodes in _falling(chosen[start:]):
                # atoms before t alone can be N atoms
                tails = np.cumsum(self.gains(np.minimum(nodes, first), b[start:])[::-1])[::-1]
                if tails[0] > best:
                    best, move = float(tails[0]), _last_maximum(tails)
            start += move
        return best

    # ---- the certificate ----------------------------------------------------------------------------------------

    def certified(self, peaks: _Peaks) -> Array:
        """For every column a bound on the integral of the positive part of the best slope."""
        far_slack, near_slack = self._wrong_signs(peaks)
        far = _Candidate(self.gains(peaks.far, self.columns), *self._range_in_column(peaks.far), far_slack)
        total = far.positive()
        double = peaks.turn <= self.columns
        if np.any(double):
            near = _Candidate(self.gains(peaks.near, self.columns), *self._range_in_column(peaks.near), near_slack)
            # the better of two peaks, and what the other can exceed it by somewhere inside the atom
            first = far.positive() + near.excess_over(far)
            second = near.positive() + far.excess_over(near)
            total = np.where(double, np.minimum(first, second), total)
        return np.asarray(total)

    def _range_in_column(self, a: Index) -> tuple[Array, Array]:
        """Bounds on the gain density of atom b over the place inside it, on top of [a, b), for every column b."""
        t, b = self.atoms, self.columns
        log = self.law.log_derivative
        p_start, p_end = log(t.outside_p(a, b)), log(t.outside_p(a, b + 1))
        q_start, q_end = log(t.outside_q(a, b)), log(t.outside_q(a, b + 1))
        low = t.p[b] * np.exp(p_start) - _scaled(self.epsilon, t.q[b] * np.exp(q_end))
        high = t.p[b] * np.exp(p_end) - _scaled(self.epsilon, t.q[b] * np.exp(q_start))
        return low, high

    def _wrong_signs(self, peaks: _Peaks) -> tuple[Array, Array]:
        """For every column what the slope can exceed its value at the far peak by before the turn, and at the near
        peak after it: the integral of g+ over the cells below a peak and of g- over those above it.
        """
        n, first = self.atoms.size, self.first
        i, j = (x.ravel() for x in np.meshgrid(np.arange(0, n, _BLOCK), np.arange(first, n, _BLOCK), indexing="ij"))
        size = _BLOCK
        while True:
            i_end, j_end = np.minimum(i + size, n), np.minimum(j + size, n)
            kept = i < j_end
            i, i_end, j, j_end = i[kept], i_end[kept], j[kept], j_end[kept]
            top, bottom = self._corner_bounds(i, i_end, j, j_end)
            extremes = (_extremes(nodes, size, (j - first) // size) for nodes in (peaks.far, peaks.turn, peaks.near))
            (far_0, far_1), (turn_0, turn_1), (near_0, near_1) = extremes
            above_peak = (i >= far_1) & ((i_end <= turn_0) | (i >= near_1))
            below_peak = (i_end <= far_0) | ((i >= turn_1) & (i_end <= near_0))
            open_ = ~((above_peak & (bottom >= 0.0)) | (below_peak & (top <= 0.0)))
            i, j = i[open_], j[open_]
            if size == 1:
                break
            size //= _SPLIT
            step = size * np.arange(_SPLIT)
            i, j = (
                np.broadcast_to(i[:, None, None] + step[:, None], (i.size, _SPLIT, _SPLIT)).ravel(),
                np.broadcast_to(j[:, None, None] + step, (j.size, _SPLIT, _SPLIT)).ravel(),
            )
            kept = (i < n) & (j < n)
            i, j = i[kept], j[kept]
        top, bottom = self._cell_bounds(i, j, top[open_], bottom[open_])
        column = j - first
        within_far = i < peaks.turn[column]
        above = np.where(within_far, i >= peaks.far[column], i >= peaks.near[column])
        wrong = np.maximum(np.where(above, -bottom, top), 0.0)
        # q_i q_j is the area of a cell, and twice that of a self cell: bounds hold at every place inside the column
        weights = np.where(wrong > 0.0, self.atoms.q[i] * self.atoms.q[j] * wrong, 0.0)
        sums = (np.bincount(column[part], weights[part], n - first) for part in (within_far, ~within_far))
        far_slack, near_slack = (_scaled(self.epsilon, s) for s in sums)
        return far_slack, near_slack

    def _corner_bounds(self, i: Index, i_end: Index, j: Index, j_end: Index) -> tuple[Array, Array]:
        """Upper and lower bounds on g / (E q_i q_j) over the cells i .. i_end-1 by j .. j_end-1 with row <= column."""
        t, second = self.atoms, self.law.second_derivative
        p_large, q_large = second(t.outside_p(i, j_end)), second(t.outside_q(i, j_end))
        apart = i_end <= j
        inner = np.minimum(i_end, j)
        p_small = second(np.where(apart, t.outside_p(inner, j), 1.0))
        q_small = second(np.where(apart, t.outside_q(inner, j), 1.0))
        largest = t.losses[i_end - 1] + t.losses[j_end - 1] - self.epsilon
        smallest = t.losses[i] + t.losses[j] - self.epsilon
        top = np.exp(np.minimum(largest, _LARGEST_EXPONENT)) * p_large - q_small
        top = np.where((largest > _LARGEST_EXPONENT) & (p_large > 0.0), np.inf, top)
        bottom = np.exp(np.minimum(smallest, _LARGEST_EXPONENT)) * p_small - q_large
        return top, bottom

    def _cell_bounds(self, i: Index, j: Index, top: Array, bottom: Array) -> tuple[Array, Array]:
        """The same for single cells, sharpened: the value in the middle plus half the largest derivatives.

        Both derivatives are differences of the same kind as g, so that their leading parts cancel as in g itself.
        """
        t, third = self.atoms, self.law.third_derivative
        exponent = t.losses[i] + t.losses[j] - self.epsilon
        ratio = np.exp(np.minimum(exponent, _LARGEST_EXPONENT))
        v_p, v_q = t.outside_p(i, j + 1), t.outside_q(i, j + 1)
        apart = i < j
        # F at the corners of the cell; the self cell runs over F = 0 .. p
        p_span, q_span = t.p[j] + np.where(apart, t.p[i], 0.0), t.q[j] + np.where(apart, t.q[i], 0.0)
        p_far, q_far = np.minimum(v_p + p_span, 1.0), np.minimum(v_q + q_span, 1.0)
        second = self.law.second_derivative
        centre = ratio * second(np.minimum(v_p + 0.5 * p_span, 1.0)) - second(np.minimum(v_q + 0.5 * q_span, 1.0))
        p_range, q_range = (third(p_far), third(v_p)), (third(q_far), third(v_q))
        reach = np.zeros(i.size)
        for p, q in ((t.p[j], t.q[j]), (np.where(apart, t.p[i], 0.0), np.where(apart, t.q[i], 0.0))):
            rises = ratio * p * p_range[1] - q * q_range[0]
            falls = ratio * p * p_range[0] - q * q_range[1]
            reach += 0.5 * np.maximum(np.abs(rises), np.abs(falls))
        usable = exponent <= _LARGEST_EXPONENT
        top = np.where(usable, np.minimum(top, centre + reach), top)
        bottom = np.where(usable, np.maximum(bottom, centre - reach), bottom)
        return top, bottom


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


def _last_maximum(tails: Array) -> int:
    """The last place, up to rounding, at which the largest value is taken."""
    largest = float(np.max(tails))
    return int(np.flatnonzero(tails >= largest - 1e-12 * abs(largest))[-1])


def _falling(nodes: Index) -> tuple[Index, Index]:
    """The nearest sequences that never rise, from below and from above."""
    return np.minimum.accumulate(nodes), np.maximum.accumulate(nodes[::-1])[::-1]


def _extremes(nodes: Index, size: int, block: Index) -> tuple[Index, Index]:
    """The smallest and the largest node in each of some blocks of `size` columns."""
    starts = np.arange(0, nodes.size, size)
    return np.minimum.reduceat(nodes, starts)[block], np.maximum.reduceat(nodes, starts)[block]


def _scaled(epsilon: float, values: Array) -> Array:
    """exp(epsilon) times values, in two steps so that only the product can leave the range."""
    half = np.exp(0.5 * epsilon)
    return np.asarray(values * half * half)
