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
        slopes = self.slopes(a, np.broadcast_to(coarse[:, None], a.shape))
        # from the column's own atom downwards: the node of the largest rise over the lowest slope met before it
        lowest = np.minimum.accumulate(slopes[:, ::-1], axis=1)[:, ::-1]
        best = np.argmax(slopes - lowest, axis=1)
        best = np.where(np.max(slopes - lowest, axis=1) > 0.0, best, grid.size - 1)
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
        turns = self._turns(reference)
        slack, near = self._wrong_signs(reference, turns)
        low, high = self._range_in_column(reference, b)
        gains = np.clip(gains, low, high)
        # convexity of the positive part: its mean is at most the chord's for values between low and high
        with np.errstate(invalid="ignore", divide="ignore"):
            chord = np.where(high > low, high * ((gains - low) / (high - low)), np.maximum(gains, 0.0))
        positive = np.where(low >= 0.0, gains, np.where(high <= 0.0, 0.0, chord))
        # a column whose slope is negative throughout pays only if its slack can lift it above zero
        paid = np.minimum(slack, np.maximum(high + slack, 0.0))
        # intervals that end within the fall next to the atom itself: the empty one plus what rises there
        empty = float(self.law.pmf(1.0)) * (t.p[b] - _scaled(self.epsilon, t.q[b]))
        besides = np.where(turns <= b, np.maximum(empty + near, 0.0), 0.0)
        return float(np.sum(positive + paid + besides))

    def _turns(self, reference: Index) -> Index:
        """For every column a node above its reference: the slope rises from there down to it and falls before it.

        One past the column when the slope does not fall at all next to the atom itself, as for most laws of K.
        """
        low, high = reference.copy(), self.columns + 1
        while np.any(high > low):
            middle = (low + high) // 2
            rising = self._rises(middle, self.columns)
            low, high = np.where(rising | (low >= high), low, middle + 1), np.where(rising, middle, high)
        return low

    def _range_in_column(self, a: Index, b: Index) -> tuple[Array, Array]:
        """Bounds on the gain density of atom b over the place inside it, on top of [a, b)."""
        t = self.atoms
        log = self.law.log_derivative
        p_start, p_end = log(t.outside_p(a, b)), log(t.outside_p(a, b + 1))
        q_start, q_end = log(t.outside_q(a, b)), log(t.outside_q(a, b + 1))
        low = t.p[b] * np.exp(p_start) - _scaled(self.epsilon, t.q[b] * np.exp(q_end))
        high = t.p[b] * np.exp(p_end) - _scaled(self.epsilon, t.q[b] * np.exp(q_start))
        return low, high

    def _wrong_signs(self, reference: Index, turns: Index) -> tuple[Array, Array]:
        """For every column what the best slope can exceed its value at the reference by, and the empty interval's by.

        The first sums g+ over the cells before the reference and g- over those from it to the turn, the second g+ over
        the cells after the turn.
        """
        n, first = self.atoms.size, self.first
        pad = np.zeros(first, dtype=np.intp)
        nodes, turned = np.concatenate((pad, reference)), np.concatenate((pad, turns))
        i, j = (x.ravel() for x in np.meshgrid(np.arange(0, n, _BLOCK), np.arange(first, n, _BLOCK), indexing="ij"))
        size = _BLOCK
        while True:
            i_end, j_end = np.minimum(i + size, n), np.minimum(j + size, n)
            kept = i < j_end
            i, i_end, j, j_end = i[kept], i_end[kept], j[kept], j_end[kept]
            top, bottom = self._corner_bounds(i, i_end, j, j_end)
            lowest, highest = _extremes(nodes, j, j_end, size)
            nearest, farthest = _extremes(turned, j, j_end, size)
            outside = (i_end <= lowest) | (i >= farthest)
            inside = (i >= highest) & (i_end <= nearest)
            open_ = ~((inside & (bottom >= 0.0)) | (outside & (top <= 0.0)))
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
        within = (i >= nodes[j]) & (i < turned[j])
        wrong = np.maximum(np.where(within, -bottom, top), 0.0)
        # q_i q_j is the area of a cell, and twice that of a self cell: bounds hold at every place inside the column
        weights = np.where(wrong > 0.0, self.atoms.q[i] * self.atoms.q[j] * wrong, 0.0)
        far = i < turned[j]
        sums = (np.bincount(j[part] - first, weights[part], n - first) for part in (far, ~far))
        slack, near = (_scaled(self.epsilon, s) for s in sums)
        return slack, near

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
