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
    reference = problem.reference()
    gains = problem.gains(reference, problem.columns)
    lower = infinite + problem.path_value(reference, gains)
    upper = infinite + problem.certified(reference, gains) if certify else np.inf
    return ColumnBounds(upper=min(1.0, max(upper, lower)), lower=min(1.0, lower))


class _Problem:
    """One (atoms, law, epsilon): masses, derivatives and the columns that can matter."""

    def __init__(self, atoms: Atoms, law: Repetitions, epsilon: float) -> None:
        self.atoms, self.law, self.epsilon = atoms, law, epsilon
        # For E >= 1 an interval of losses <= 0 has F <= F', so its end never gains: columns start at positive losses.
        self.first = int(np.searchsorted(atoms.losses, 0.0, side="right"))
        self.columns = np.arange(self.first, atoms.size)

    def gains(self, a: Index, b: Index) -> Array:
        """What atom b adds to S on top of [a, b): the difference of increments of phi."""
        t = self.atoms
        with np.errstate(over="ignore"):
            rise = self.law.increment(complement_after=t.outside_p(a, b + 1), mass=t.p[b])
            cost = self.law.increment(complement_after=t.outside_q(a, b + 1), mass=t.q[b])
            return np.asarray(rise - _scaled(self.epsilon, cost))

    def slopes(self, a: Index, b: Index) -> Array:
        """The gain per P'-mass at the start of atom b on top of [a, b), divided by E."""
        t = self.atoms
        rise = t.losses[b] - self.epsilon + self.law.log_derivative(t.outside_p(a, b))
        cost = self.law.log_derivative(t.outside_q(a, b))
        return np.asarray(np.exp(np.minimum(rise, _LARGEST_EXPONENT)) - np.exp(cost))

    # ---- the reference: a good a for every column -------------------------------------------------------------------

    def reference(self) -> Index:
        """For every column a node that nearly maximises its slope; soundness does not depend on how nearly."""
        columns = self.columns
        coarse = np.unique(np.append(columns[::_COARSE_COLUMNS], columns[-1]))
        grid = np.unique(np.linspace(0, self.atoms.size, _COARSE_NODES + 1).astype(np.intp))
        a = np.minimum(grid[None, :], coarse[:, None])
        best = np.argmax(self.slopes(a, np.broadcast_to(coarse[:, None], a.shape)), axis=1)
        rows = np.arange(coarse.size)
        low, high = a[rows, np.maximum(best - 1, 0)], a[rows, np.minimum(best + 1, grid.size - 1)]
        found = self._climb(coarse, low, high)
        # the best node moves slowly from column to column: look between the neighbours' and a little beyond
        right = np.searchsorted(coarse, columns)
        left = np.maximum(right - 1, 0)
        margin = 2
        low = np.minimum(found[left], found[right]) - margin
        high = np.minimum(np.maximum(found[left], found[right]) + margin, columns)
        return self._climb(columns, np.maximum(np.minimum(low, high), 0), high)

    def _climb(self, b: Index, low: Index, high: Index) -> Index:
        """Bisection on the sign of slope(a + 1) - slope(a) between nodes low and high of each column."""
        low, high = low.copy(), high.copy()
        while np.any(high > low):
            middle = (low + high) // 2
            rising = self._rises(middle, b)
            low, high = np.where(rising & (high > low), np.minimum(middle + 1, high), low), np.where(rising, high, middle)
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

    def path_value(self, reference: Index, gains: Array) -> float:
        """The value of an order of the atoms: S from some column t on, N atoms below t taken as the reference says."""
        b = self.columns
        best = 0.0
        for nodes in (np.minimum.accumulate(reference), np.maximum.accumulate(reference[::-1])[::-1]):
            values = gains if np.array_equal(nodes, reference) else self.gains(nodes, b)
            for _ in range(2):
                tails = np.cumsum(values[::-1])[::-1]
                start = int(np.argmax(tails))
                inside = np.minimum(nodes[start:], b[start])
                if np.array_equal(inside, nodes[start:]):
                    best = max(best, float(tails[start]))
                    break
                values = values.copy()
                values[start:] = self.gains(inside, b[start:])
                best = max(best, float(np.sum(values[start:])))
        return best

    # ---- the certificate ----------------------------------------------------------------------------------------

    def certified(self, reference: Index, gains: Array) -> float:
        """The sum over columns of a bound on the integral of the positive part of the best slope."""
        t, b = self.atoms, self.columns
        slack = self._wrong_signs(reference)
        low, high = self._range_in_column(reference, b)
        gains = np.clip(gains, low, high)
        # convexity of the positive part: its mean is at most the chord's for values between low and high
        with np.errstate(invalid="ignore", divide="ignore"):
            chord = np.where(high > low, high * ((gains - low) / (high - low)), np.maximum(gains, 0.0))
        positive = np.where(low >= 0.0, gains, np.where(high <= 0.0, 0.0, chord))
        # a column whose slope is negative throughout pays only if its slack can lift it above zero
        paid = np.where(high + slack > 0.0, np.minimum(slack, np.maximum(high + slack, 0.0)), 0.0)
        return float(np.sum(positive + paid))

    def _range_in_column(self, a: Index, b: Index) -> tuple[Array, Array]:
        """Bounds on the gain density of atom b over the place inside it, on top of [a, b)."""
        t = self.atoms
        log = self.law.log_derivative
        p_start, p_end = log(t.outside_p(a, b)), log(t.outside_p(a, b + 1))
        q_start, q_end = log(t.outside_q(a, b)), log(t.outside_q(a, b + 1))
        low = t.p[b] * np.exp(p_start) - _scaled(self.epsilon, t.q[b] * np.exp(q_end))
        high = t.p[b] * np.exp(p_end) - _scaled(self.epsilon, t.q[b] * np.exp(q_start))
        return low, high

    def _wrong_signs(self, reference: Index) -> Array:
        """For every column: the integral of g+ over the cells below its reference and of g- over those above it."""
        n, first = self.atoms.size, self.first
        nodes = np.concatenate((np.zeros(first, dtype=np.intp), reference))
        row = np.arange(0, n, _BLOCK)
        column = np.arange(first, n, _BLOCK)
        i, j = (x.ravel() for x in np.meshgrid(row, column, indexing="ij"))
        size = _BLOCK
        while True:
            i_end, j_end = np.minimum(i + size, n), np.minimum(j + size, n)
            kept = i < j_end
            i, i_end, j, j_end = i[kept], i_end[kept], j[kept], j_end[kept]
            top, bottom = self._corner_bounds(i, i_end, j, j_end)
            lowest, highest = _extremes(nodes, j, j_end, size)
            # settled: every cell on the side of the reference where its sign is the right one
            settled = ((i >= highest) & (bottom >= 0.0)) | ((i_end <= lowest) & (top <= 0.0))
            i, j = i[~settled], j[~settled]
            if size == 1:
                top, bottom = top[~settled], bottom[~settled]
                break
            size //= _SPLIT
            offsets = size * np.arange(_SPLIT)
            i = (i[:, None, None] + offsets[:, None]) + np.zeros_like(offsets)
            j_grid = (j[:, None, None] + offsets[None, :]) + np.zeros_like(offsets)[:, None]
            i, j = i.ravel(), j_grid.ravel()
            kept = (i < n) & (j < n)
            i, j = i[kept], j[kept]
        t = self.atoms
        wrong = np.where(i >= nodes[j], np.maximum(-bottom, 0.0), np.maximum(top, 0.0))
        # q_i q_j is the area of a cell, and twice that of a self cell: bounds hold at every place inside the column
        weights = np.where(wrong > 0.0, t.q[i] * t.q[j] * wrong, 0.0)
        return _scaled(self.epsilon, np.bincount(j - first, weights, n - first))

    def _corner_bounds(self, i: Index, i_end: Index, j: Index, j_end: Index) -> tuple[Array, Array]:
        """Upper and lower bounds on g / (E q_i q_j) over the cells i .. i_end-1 by j .. j_end-1 with row <= column."""
        t, second = self.atoms, self.law.second_derivative
        inner_i = np.minimum(i_end, j)
        p_large = second(t.outside_p(i, j_end))
        q_large = second(t.outside_q(i, j_end))
        apart = i_end <= j
        p_small = second(np.where(apart, t.outside_p(inner_i, j), 1.0))
        q_small = second(np.where(apart, t.outside_q(inner_i, j), 1.0))
        largest = t.losses[i_end - 1] + t.losses[j_end - 1] - self.epsilon
        smallest = t.losses[i] + t.losses[j] - self.epsilon
        top = np.exp(np.minimum(largest, _LARGEST_EXPONENT)) * p_large - q_small
        top = np.where((largest > _LARGEST_EXPONENT) & (p_large > 0.0), np.inf, top)
        bottom = np.exp(np.minimum(smallest, _LARGEST_EXPONENT)) * p_small - q_large
        return top, bottom


def _extremes(nodes: Index, start: Index, end: Index, size: int) -> tuple[Index, Index]:
    """The smallest and largest of nodes[start:end] for blocks of at most `size`."""
    if size == 1:
        return nodes[start], nodes[start]
    window = nodes[np.minimum(start[:, None] + np.arange(size), end[:, None] - 1)]
    return np.min(window, axis=1), np.max(window, axis=1)


def _scaled(epsilon: float, values: Array) -> Array:
    """exp(epsilon) times values, in two steps so that only the product can leave the range."""
    half = np.exp(0.5 * epsilon)
    return np.asarray(values * half * half)
