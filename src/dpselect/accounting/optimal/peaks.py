"""The places at which the slopes of the columns peak. Their accuracy only changes the width of the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpselect.accounting.optimal.atoms import Index
from dpselect.accounting.optimal.problem import Problem, Truth

__all__ = ["Peaks", "find_peaks", "rescan"]

_COARSE_COLUMNS = 16
_COARSE_NODES = 64
_FINE_NODES = 512


@dataclass(frozen=True)
class Peaks:
    """For every column two nodes at which its slope peaks, the nearer to the column itself and a farther one.

    The slope falls from `near` down to `turn` and rises from there down to `far`. With a single peak `far` equals
    `near` and `turn` is one past the column. Nodes run from 0 to one past the column. That last one represents an
    interval that stays empty within the atom too.
    """

    near: Index
    turn: Index
    far: Index

    def of(self, columns: Index) -> Peaks:
        """Those of some columns."""
        return Peaks(self.near[columns], self.turn[columns], self.far[columns])

    def differ(self, other: Peaks) -> Truth:
        """The columns at which these are not the same as others."""
        return np.asarray((self.near != other.near) | (self.turn != other.turn) | (self.far != other.far))


def find_peaks(problem: Problem) -> Peaks:
    """Peaks of every column: a coarse scan of some columns, a scan of those where peaks jump, bisection in all."""
    columns, ends, width = problem.columns, problem.ends, problem.width
    # the first and the last column of each epsilon are among them
    some = np.unique(np.concatenate((columns[columns % width % _COARSE_COLUMNS == 0], columns[width - 1 :: width])))
    near, far = _scan(problem, some, _COARSE_NODES)
    apart = 3 * max(1, problem.atoms.size // _COARSE_NODES)
    jumps = np.flatnonzero((np.abs(np.diff(near)) > apart) | (np.abs(np.diff(far)) > apart))
    if jumps.size:
        more = np.concatenate([np.arange(some[k] + 1, some[k + 1]) for k in jumps])
        extra = _scan(problem, more, _COARSE_NODES)
        order = np.argsort(np.append(some, more))
        some = np.append(some, more)[order]
        near, far = np.append(near, extra[0])[order], np.append(far, extra[1])[order]
    # peaks move slowly from column to column: look between the neighbours' and a little beyond
    right = np.searchsorted(some, columns)
    left = np.where(some[right] == columns, right, np.maximum(right - 1, 0))

    def between(nodes: Index, columns: Index) -> Index:
        one, other, past = nodes[left[columns]], nodes[right[columns]], ends[columns] + 1
        low, high = np.minimum(one, other) - 2, np.maximum(one, other) + 2
        return _climb(problem, columns, np.clip(low, 0, past), np.clip(high, 0, past))

    found, differ = between(near, columns), near != far
    return _with_turns(problem, found, _where_they_differ(between, differ[left] | differ[right], far, found))


def _where_they_differ(look: Callable[[Index, Index], Index], differ: Truth, far: Index, near: Index) -> Index:
    """The far peaks, which `look(far, columns)` finds: they are the near ones in all columns but those that differ."""
    found, columns = near.copy(), np.flatnonzero(differ)
    if columns.size:
        found[columns] = look(far, columns)
    return found


def rescan(problem: Problem, peaks: Peaks, chosen: Index) -> Peaks:
    """The same with the peaks of some columns looked for on a fine scan."""
    near, far = peaks.near.copy(), peaks.far.copy()
    near[chosen], far[chosen] = _scan(problem, chosen, _FINE_NODES)
    return _with_turns(problem, near, far)


def _with_turns(problem: Problem, near: Index, far: Index) -> Peaks:
    turns = _climb(problem, problem.columns, far, np.maximum(near, far), rising=False)
    return Peaks(near=near, turn=np.where(far < near, turns, problem.ends + 1), far=far)


def _scan(problem: Problem, columns: Index, count: int) -> tuple[Index, Index]:
    """The near and the far peak of each column, on `count` nodes and bisected between them. A single peak is both.

    Reading from the column's own atom downwards, the first fall ends the near peak and a later rise leads to a far one.
    The highest of those is taken.
    """
    grid = np.unique(np.linspace(0, problem.atoms.size, count + 1).astype(np.intp))[::-1]
    nodes = np.minimum(grid[None, :], problem.ends[columns, None])
    rise, cost = problem.slope_terms(nodes, np.broadcast_to(columns[:, None], nodes.shape))
    slopes = rise - cost
    step = np.diff(slopes, axis=1)
    # differences within rounding of the terms say nothing
    noise = 1e-13 * (rise + cost)[:, 1:]
    fallen = np.maximum.accumulate(step < -noise, axis=1)
    near = np.where(fallen[:, -1], np.argmax(fallen, axis=1), grid.size - 1)
    rises = np.maximum.accumulate(fallen & (step > noise), axis=1)
    after = np.arange(grid.size)[None, :] > np.argmax(rises, axis=1)[:, None]
    far = np.where(rises[:, -1], np.argmax(np.where(after, slopes, -np.inf), axis=1), near)

    def refined(best: Index, rows: Index) -> Index:
        return _refine(problem, columns[rows], nodes[rows], best[rows])

    found = refined(near, np.arange(columns.size))
    return found, _where_they_differ(refined, near != far, far, found)


def _refine(problem: Problem, columns: Index, nodes: Index, best: Index) -> Index:
    """The peak between the scanned nodes beside the best one of each scanned column."""
    rows = np.arange(columns.size)
    at = nodes[rows, best]
    above, below = nodes[rows, np.maximum(best - 1, 0)], nodes[rows, np.minimum(best + 1, nodes.shape[1] - 1)]
    # scanned nodes pile up at the column itself; past it lies the empty interval
    above = np.where(above > at, above, problem.ends[columns] + 1)
    up = problem.rises(at, columns)
    return _climb(problem, columns, np.where(up, at, below), np.where(up, above, at))


def _climb(problem: Problem, columns: Index, low: Index, high: Index, *, rising: bool = True) -> Index:
    """The first node from low to high of each column at which the slope is not `rising` with the node, by bisection."""
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(high > low)
    while open_.size:
        middle = (low[open_] + high[open_]) // 2  # searches: as many integer searches as there are columns, at once
        on = problem.rises(middle, columns[open_]) == rising
        low[open_], high[open_] = np.where(on, middle + 1, low[open_]), np.where(on, high[open_], middle)
        open_ = open_[high[open_] > low[open_]]
    return low
