"""First acceptable outcome of a random number of tries: two cut points in the sorted list of outcomes.

T tries, T independent of the data with generating function phi; the first outcome in a set U fixed in advance is
released, or "none". With u = P(U), P(S and released) = P(S) h(u) for S inside U, where u h(u) = 1 - phi(1 - u). At the
optimum for an adversary the outcomes sorted by loss are N (acceptable, not in S), R (rejected), S, each an interval
(docs/theory/optimal-selection.md), so delta at epsilon >= 0 is the largest value over cuts x <= y of

    J = P(S) h(u) [+ phi(1 - u)]  -  E ( P'(S) h(u') [+ phi(1 - u')] ),     N = [0, x), S = [y, n), u = P(N) + P(S),

with the bracketed terms when "none" belongs to the adversary's set too. Branch and bound over boxes of cuts, inside
atoms too: J at the middle plus half the largest change along either side. h falls and is convex, so the ends of the
ranges of u bound h and its derivative over a box.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpselect.accounting.optimal.atoms import Array, Atoms
from dpselect.accounting.optimal.direction import LARGEST_EPSILON, Bracketed
from dpselect.numerics import ROUND_UP
from dpselect.repetitions import Repetitions

__all__ = ["Cuts"]

_START = 32
_RELATIVE = 1e-4
_MOST_BOXES = 20_000
_SMALLEST_BOX = 1e-12
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class Cuts(Bracketed):
    """One direction of the first acceptable outcome among T tries, over the atoms of a pair."""

    atoms: Atoms
    law: Repetitions
    _found: dict[float, tuple[float, float]] = field(default_factory=dict, repr=False)

    def upper(self, epsilon: float) -> float:
        """A bound on delta at epsilon >= 0, for cuts anywhere, inside atoms too; rounded up."""
        return self._search(epsilon)[1]

    def lower(self, epsilon: float) -> float:
        """The best value met at a cut: attained by some mechanism and some set."""
        return self._search(epsilon)[0]

    def _search(self, epsilon: float) -> tuple[float, float]:
        """The best value met and a bound on all values; remembered, because upper and lower come from one search."""
        if epsilon not in self._found:
            self._found[epsilon] = self._searched(epsilon)
        return self._found[epsilon]

    def _searched(self, epsilon: float) -> tuple[float, float]:
        factor = float(np.exp(min(epsilon, LARGEST_EPSILON)))
        best, dropped = 0.0, 0.0
        if not self.atoms.size:
            t, nothing = self.atoms, np.zeros(1)
            for none in (True, False):
                rise = self._mass(nothing, np.array([t.infinite]), none)
                best = max(best, float((rise - factor * self._mass(np.array([t.zero]), nothing, none))[0]))
            return best, min(1.0, best * ROUND_UP)
        for none in (True, False):
            best, dropped = self._halve(factor, none, best, dropped)
        return best, min(1.0, max(best, dropped) * ROUND_UP)

    def _halve(self, factor: float, none: bool, best: float, dropped: float) -> tuple[float, float]:
        """Halve boxes that may hold more than the best value; that, and the largest bound over those given up."""
        n = float(self.atoms.size)
        size = n / _START
        x, y = (v.ravel() for v in np.meshgrid(size * np.arange(_START), size * np.arange(_START), indexing="ij"))
        while True:
            inside = (x < y + size) & (x < n) & (y < n)
            x, y = x[inside], y[inside]
            middle, top = self._box(factor, none, x, np.minimum(x + size, n), y, np.minimum(y + size, n))
            best = max(best, float(np.max(middle)))
            kept = top > best * (1.0 + _RELATIVE) + _NEGLIGIBLE
            dropped = max(dropped, float(np.max(top[~kept], initial=0.0)))
            x, y, top = x[kept], y[kept], top[kept]
            if not x.size or x.size > _MOST_BOXES or size < _SMALLEST_BOX:
                return best, max(dropped, float(np.max(top, initial=0.0)))
            size *= 0.5
            x, y = np.concatenate((x, x, x + size, x + size)), np.concatenate((y, y + size, y, y + size))

    def _box(self, factor: float, none: bool, x_0: Array, x_1: Array, y_0: Array, y_1: Array) -> tuple[Array, Array]:
        """J at a cut in each box of cuts, and a bound on J over the box."""
        t = self.atoms
        x, y = 0.5 * (x_0 + x_1), np.maximum(0.5 * (y_0 + y_1), 0.5 * (x_0 + x_1))
        at_cut = [
            self._mass(_from_below(below, x, masses), _from_above(above, y, masses), none)
            for below, above, masses in ((t.below_p, t.above_p, t.p), (t.below_q, t.above_q, t.q))
        ]
        p, q = (
            _Ranges.of(
                self.law,
                none,
                tuple(_from_below(below, v, masses) for v in (x_0, x_1)),
                tuple(_from_above(above, v, masses) for v in (y_1, y_0)),
                tuple(_between(below, above, masses, *side) for side in ((x_0, x_1), (y_0, y_1))),
            )
            for below, above, masses in ((t.below_p, t.above_p, t.p), (t.below_q, t.above_q, t.q))
        )
        top = self._mass(*p.middle, none) - factor * self._mass(*q.middle, none)
        for k, (start, end) in enumerate(((x_0, x_1), (y_0, y_1))):
            (p_low, p_high), (q_low, q_high) = p.slopes[k], q.slopes[k]
            p_step, q_step = p.steps[k], factor * q.steps[k]
            change = np.maximum(np.abs(p_step * p_high - q_step * q_low), np.abs(p_step * p_low - q_step * q_high))
            top = top + 0.5 * change + 0.25 * self._bend(start, end) * q.steps[k] * p_high
        top = np.minimum(top, p.largest - factor * q.smallest)
        if not none and t.infinite == 0.0:
            # J is P'(S) times at most (largest ratio) h(u) - E h(u'): settles boxes in which S may vanish
            largest = np.exp(min(float(t.losses[-1]), LARGEST_EPSILON))
            top = np.where(largest * p.released[1] <= factor * q.released[0], 0.0, top)
        return at_cut[0] - factor * at_cut[1], top

    def _bend(self, start: Array, end: Array) -> Array:
        """How far likelihood ratios differ between two places: masses of P follow those of P' along a curve."""
        last = self.atoms.size - 1
        low = np.minimum(start.astype(np.intp), last)
        high = np.clip(np.ceil(end).astype(np.intp) - 1, low, last)
        ratios = np.exp(np.minimum(self.atoms.losses, LARGEST_EPSILON))
        return np.asarray(ratios[high] - ratios[low])

    def _mass(self, low: Array, high: Array, none: bool) -> Array:
        """P(S) h(u), and phi(1 - u) with it if the adversary's set holds "none"."""
        u = np.minimum(low + high, 1.0)
        released = high * _released(self.law, u)
        return released + self.law.pgf(np.maximum(1.0 - u, 0.0)) if none else np.asarray(released)


@dataclass(frozen=True)
class _Ranges:
    """Under one distribution, over each box: the middle, the steps across it, bounds on the slopes along its sides.

    The mass of the adversary's set falls with N at a rate between the two `slopes[0]` and grows with S at one between
    the two `slopes[1]`.
    """

    middle: tuple[Array, Array]
    steps: tuple[Array, Array]
    slopes: tuple[tuple[Array, Array], tuple[Array, Array]]
    released: tuple[Array, Array]
    smallest: Array
    largest: Array

    @classmethod
    def of(
        cls, law: Repetitions, none: bool, low: tuple[Array, ...], high: tuple[Array, ...], steps: tuple[Array, ...]
    ) -> _Ranges:
        """From the smallest and largest masses of N and of S, and the masses of the sides of the box."""
        u_low, u_high = np.minimum(low[0] + high[0], 1.0), np.minimum(low[1] + high[1], 1.0)
        h_high, h_low = _released(law, u_low), _released(law, u_high)
        fall_low, fall_high = _fall(law, u_high, h_low)[0], _fall(law, u_low, h_high)[1]
        # with S the slope of P(S) h(u) is h - P(S) |h'|, with N it is P(S) |h'|; with "none" N and S change places
        own = low if none else high
        own_slope = np.maximum(h_low - own[1] * fall_high, 0.0), np.maximum(h_high - own[0] * fall_low, 0.0)
        other_slope = own[0] * fall_low, own[1] * fall_high
        smallest, largest = (
            high[0] * _released(law, np.minimum(low[1] + high[0], 1.0)),
            high[1] * _released(law, np.minimum(low[0] + high[1], 1.0)),
        )
        if none:
            smallest = smallest + law.pgf(np.maximum(1.0 - low[1] - high[0], 0.0))
            largest = largest + law.pgf(np.maximum(1.0 - low[0] - high[1], 0.0))
        return cls(
            middle=(0.5 * (low[0] + low[1]), 0.5 * (high[0] + high[1])),
            steps=(steps[0], steps[1]),
            slopes=(own_slope, other_slope) if none else (other_slope, own_slope),
            released=(h_low, h_high),
            smallest=smallest,
            largest=largest,
        )


def _released(law: Repetitions, u: Array) -> Array:
    """h(u) = (1 - phi(1 - u)) / u, E[T] at 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(u > 0.0, law.success_probability(u) / u, law.mean)


def _fall(law: Repetitions, u: Array, h: Array) -> tuple[Array, Array]:
    """Bounds on -h'(u) = (h(u) - phi'(1 - u)) / u, half a mean of phi'' between 1 - u and 1."""
    slope = np.exp(law.log_derivative(u))
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient = np.where(u > 0.0, (h - slope) / u, 0.0)
        error = np.where(u > 0.0, 1e-12 * h / u, np.inf)
    smallest, largest = 0.5 * law.second_derivative(u), 0.5 * float(law.second_derivative(0.0))
    return np.maximum(smallest, quotient - error), np.minimum(largest, quotient + error)


def _from_below(running: Array, place: Array, masses: Array) -> Array:
    """The mass below a place that may lie inside an atom."""
    atom = np.minimum(place.astype(np.intp), masses.size - 1)
    return np.asarray(running[atom] + (place - atom) * masses[atom])


def _from_above(running: Array, place: Array, masses: Array) -> Array:
    """The mass above a place that may lie inside an atom."""
    atom = np.minimum(place.astype(np.intp), masses.size - 1)
    return np.asarray(running[atom + 1] + (1.0 - (place - atom)) * masses[atom])


def _between(below: Array, above: Array, masses: Array, start: Array, end: Array) -> Array:
    """The mass between two places, rounded up."""
    first, last = (np.minimum(v.astype(np.intp), masses.size - 1) for v in (start, end))
    lower = _from_below(below, end, masses) - _from_below(below, start, masses)
    upper = _from_above(above, start, masses) - _from_above(above, end, masses)
    far = np.where(below[last] <= above[first], lower, upper)
    return np.asarray(np.where(first == last, (end - start) * masses[first], far)) * (1.0 + 1e-9)
