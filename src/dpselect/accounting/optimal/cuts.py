"""First acceptable outcome of a random number of tries: two cut points in the sorted list of outcomes.

T tries, T independent of the data with generating function phi; the first outcome in a set U fixed in advance is
released, or "none". With u = P(U), P(S and released) = P(S) h(u) for S inside U, where u h(u) = 1 - phi(1 - u). At the
optimum for an adversary the outcomes sorted by loss are N (acceptable, not in S), R (rejected), S, each an interval
(docs/theory/optimal-selection.md), so delta at epsilon >= 0 is the largest value over cuts x <= y of

    J = P(S) h(u) [+ phi(1 - u)]  -  E ( P'(S) h(u') [+ phi(1 - u')] ),     N = [0, x), S = [y, n), u = P(N) + P(S),

with the bracketed terms when "none" belongs to the adversary's set too. P(S) h(u) and phi(1 - u) + P(S) h(u) grow with
P(S) and fall with P(N), so corners of a box of cuts bound J in it, inside atoms too: branch and bound finds the maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect.accounting.optimal.atoms import Array, Atoms
from dpselect.accounting.optimal.direction import LARGEST_EPSILON, Bracketed
from dpselect.numerics import ROUND_UP
from dpselect.repetitions import Repetitions

__all__ = ["Cuts"]

_START = 48
_RELATIVE = 2e-5
_MOST_BOXES = 200_000
_NEGLIGIBLE = 1e-22


@dataclass(frozen=True, eq=False)
class Cuts(Bracketed):
    """One direction of the first acceptable outcome among T tries, over the atoms of a pair."""

    atoms: Atoms
    law: Repetitions

    def upper(self, epsilon: float) -> float:
        """A bound on delta at epsilon >= 0, for cuts anywhere, inside atoms too; rounded up."""
        return max(self._search(min(epsilon, LARGEST_EPSILON), none)[1] for none in (False, True))

    def lower(self, epsilon: float) -> float:
        """The best value met at a cut: attained by some mechanism and some set."""
        return max(self._search(min(epsilon, LARGEST_EPSILON), none)[0] for none in (False, True))

    def _search(self, epsilon: float, none: bool) -> tuple[float, float]:
        """The best value met and a bound on all values, by halving boxes that may hold more than the best."""
        n = float(self.atoms.size)
        edges = np.linspace(0.0, n, _START + 1)
        x, y = (v.ravel() for v in np.meshgrid(edges[:-1], edges[:-1], indexing="ij"))
        size = float(edges[1])
        x, y = x[x < y + size], y[x < y + size]
        best, dropped = 0.0, 0.0
        while True:
            x_1, y_1 = np.minimum(x + size, n), np.minimum(y + size, n)
            top = self._value(epsilon, none, x, x_1, y, y_1)
            best = max(best, float(np.max(self._value(epsilon, none, x, x, np.maximum(y, x), np.maximum(y, x)))))
            kept = top > best * (1.0 + _RELATIVE) + _NEGLIGIBLE
            dropped = max(dropped, float(np.max(top[~kept], initial=0.0)))
            x, y, top = x[kept], y[kept], top[kept]
            if 4 * x.size > _MOST_BOXES or size < 1e-9:
                dropped = max(dropped, float(np.max(top, initial=0.0)))
                x = x[:0]
            if not x.size:
                return best, min(1.0, max(best, dropped) * ROUND_UP)
            size *= 0.5
            x, y = np.concatenate((x, x, x + size, x + size)), np.concatenate((y, y + size, y, y + size))
            inside = (x < y + size) & (x < n) & (y < n)
            x, y = x[inside], y[inside]

    def _value(self, epsilon: float, none: bool, x_0: Array, x_1: Array, y_0: Array, y_1: Array) -> Array:
        """J with N under P up to x_0 and under P' up to x_1, S under P from y_0 and under P' from y_1.

        J at a cut where the two agree, and an upper bound over the box between them.
        """
        t = self.atoms
        rise = self._mass(_from_below(t.below_p, x_0, t.p), _from_above(t.above_p, y_0, t.p), none)
        cost = self._mass(_from_below(t.below_q, x_1, t.q), _from_above(t.above_q, y_1, t.q), none)
        return np.asarray(rise - np.exp(epsilon) * cost)

    def _mass(self, low: Array, high: Array, none: bool) -> Array:
        """P(S) h(u), and phi(1 - u) with it if the adversary's set holds "none"."""
        u = np.minimum(low + high, 1.0)
        success = self.law.success_probability(u)
        with np.errstate(invalid="ignore", divide="ignore"):
            released = np.where(u > 0.0, high * (success / u), 0.0)
        return released + self.law.pgf(np.maximum(1.0 - u, 0.0)) if none else np.asarray(released)


def _from_below(running: Array, place: Array, masses: Array) -> Array:
    """The mass below a place that may lie inside an atom."""
    atom = np.minimum(place.astype(np.intp), masses.size - 1)
    return running[atom] + (place - atom) * masses[atom]


def _from_above(running: Array, place: Array, masses: Array) -> Array:
    """The mass above a place that may lie inside an atom."""
    atom = np.minimum(place.astype(np.intp), masses.size - 1)
    return running[atom + 1] + (1.0 - (place - atom)) * masses[atom]
