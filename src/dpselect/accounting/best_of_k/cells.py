"""A partition of the event probabilities [0, 1] on which a law of K and a trade-off are bounded cell by cell.

With v the probability of "better than y" and T(v) its largest value under the neighbour, the weight phi'(1 - v) and
the shift log phi'(1 - v) - log phi'(1 - T(v)) are what every bound for best-of-K needs. On a cell [a, b] both are
bounded by monotonicity alone: phi'(1 - v) <= phi'(1 - a) and the shift <= log phi'(1 - a) - log phi'(1 - T(b)).
So a supremum or a sum over cells is certified. A finer partition only makes it tighter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.accounting.best_of_k.feasible_region import TradeOff
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["Cells", "partition", "smooth_records"]


# logits of the first, coarse partition; the lower end leaves room for every gamma down to 1e-60
_COARSE = np.concatenate((np.linspace(-150.0, -40.0, 23)[:-1], np.linspace(-40.0, 36.0, 115)))
_COARSE_POINTS = np.concatenate(([0.0], 1.0 / (1.0 + np.exp(-_COARSE)), [1.0]))
_COARSE_LOGITS = np.concatenate(([_COARSE[0] - 1.0], _COARSE, [_COARSE[-1] + 1.0]))


@dataclass(frozen=True, eq=False)
class Cells:
    """`edges` (n + 1), `log_weights` = log phi'(1 - v) at the edges, `shifts` (n): the bound on the shift in a cell."""

    edges: Array
    log_weights: Array
    shifts: Array

    @cached_property
    def records(self) -> Array:
        """Rows log weight and shift of the cells whose shift no cell to their left reaches: all a supremum needs."""
        best = np.maximum.accumulate(self.shifts)
        new = np.concatenate(([True], self.shifts[1:] > best[:-1]))
        return np.stack((self.log_weights[:-1][new], self.shifts[new]))


def _measure(law: Repetitions, trade_off: TradeOff, points: Array) -> tuple[Array, Array]:
    """log phi' at the points and at their largest counterparts."""
    logs = law.log_derivative(np.concatenate((points, np.minimum(trade_off(points), 1.0))))
    return logs[: points.size], logs[points.size :]


def partition(law: Repetitions, trade_off: TradeOff, *, points: int) -> Cells:
    """Cells that share out evenly what the weight and its counterpart change by, where that can matter."""
    edges = _edges(law, trade_off, points)
    log_weights, counterparts = _measure(law, trade_off, edges)
    with np.errstate(invalid="ignore"):
        shifts = log_weights[:-1] - counterparts[1:]
    # -inf - -inf: no weight on either side, nothing to shift; rounding of the logarithms is absolute
    shifts = np.where(np.isnan(shifts), np.inf, shifts) + 4e-15 * (1.0 + np.abs(log_weights[:-1]))
    return Cells(edges=edges, log_weights=log_weights, shifts=np.maximum(shifts, 0.0))


def _edges(law: Repetitions, trade_off: TradeOff, points: int) -> Array:
    """0, `points` - 1 values between, and 1: even steps of change on the coarse partition.

    Past the largest shift only cells whose shift comes near it matter to a supremum, so they may be wider.
    """
    here, there = _measure(law, trade_off, _COARSE_POINTS)
    with np.errstate(invalid="ignore"):
        change = np.abs(here[1:] - here[:-1]) + np.abs(there[1:] - there[:-1])
        shift = here - there
    if not (np.isfinite(here[-1]) and np.isfinite(there[-1])):
        change = np.where(np.isfinite(change), np.minimum(change, 50.0), 50.0)
        shift = np.where(np.isfinite(shift), shift, 50.0)
    top = int(np.argmax(shift))
    highest = max(float(shift[top]), 1e-12)
    density = change / (0.05 * highest)
    later = np.maximum(highest - np.maximum(shift[top + 1 :], shift[top:-1]), 0.0)
    density[top:] = change[top:] / (0.05 * highest + later)
    # a tenth of the cells evenly, for small orders
    reached = np.concatenate(([0.0], np.cumsum(density + (1e-12 + 0.1 * float(density.sum())) / density.size)))
    logits = np.interp(np.linspace(0.0, reached[-1], points - 1), reached, _COARSE_LOGITS)
    return np.concatenate(([0.0], 1.0 / (1.0 + np.exp(-logits)), [1.0]))


def smooth_records(law: Repetitions, trade_off: TradeOff, *, points: int) -> Array:
    """Like `Cells.records`, to second order in the cells' width, for convex log weights and concave counterparts.

    Needs log phi'(1 - v) convex and -log phi'(1 - T(v)) concave in v: a concave T, and a law that says so. In a cell
    the first is below its chord and the second below both neighbouring chords, extended. All three are straight, so
    the largest value is at an edge or at the crossing of the two extensions: two records for each cell.
    """
    v = _edges(law, trade_off, points)
    # without the cells whose width is lost in rounding near 1
    v = np.concatenate((v[:-1][v[1:] > v[:-1]], [1.0]))
    weight, counterpart = _measure(law, trade_off, v)
    rise, width = -counterpart, v[1:] - v[:-1]
    # slopes of the chords, rounded outwards by what the logarithms may be wrong
    slope, noise = (rise[1:] - rise[:-1]) / width, 4e-15 * (1.0 + np.abs(rise).max()) / width
    before, after, width = (slope + noise)[:-2], (slope - noise)[2:], width[1:-1]
    # rise[i] + before x = rise[i + 1] - after (width - x), x measured from the cell's left edge
    x = np.clip((rise[2:-1] - rise[1:-2] - after * width) / np.maximum(before - after, 1e-300), 0.0, width)
    peak = np.minimum(np.maximum(rise[1:-2] + before * x, rise[2:-1] - after * (width - x)), rise[2:-1])
    inside = weight[1:-2] + (weight[2:-1] - weight[1:-2]) * (x / width)
    # the first and the last cell by monotonicity
    weights = np.concatenate((weight, inside, weight[[0, -2]]))
    shifts = np.concatenate((weight + rise, inside + peak, weight[[0, -2]] + rise[[1, -1]]))
    return np.stack((weights, shifts + 1e-11 * (1.0 + np.abs(weights))))
