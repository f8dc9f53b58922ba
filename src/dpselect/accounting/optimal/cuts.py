"""First acceptable outcome of a random number of tries: two cut points in the sorted list of outcomes.

There are T tries, with T independent of the data and of generating function phi. The first outcome in a set U fixed in
advance is released, or "none". With u = P(U), P(S and released) = P(S) h(u) for S inside U, where
u h(u) = 1 - phi(1 - u). At the optimum for an adversary the outcomes sorted by loss are N (acceptable, not in S),
R (rejected), S, each an interval (docs/theory/optimal-selection.md). So delta at epsilon >= 0 is the largest value over
cuts x <= y of

    J = A - E A',   A = P(S) h(u) [+ phi(1 - u)],   N = [0, x), S = [y, n), u = P(N) + P(S),

with the bracketed term when "none" belongs to the adversary's set too, and A' the same under P'. Branch and bound over
boxes of cuts, inside atoms too, each divided along the side that leaves more open. The bound on a box is J at one
corner plus the most that J can grow along two sides, or A and A' bounded by themselves, or A - A' by its slopes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cut_sides import Sides, atom_at, last_atom
from dpselect.accounting.optimal.cut_slopes import (
    Masses,
    largest_fall,
    least_fall,
    n_growth,
    nothing,
    released,
    s_growth,
)
from dpselect.accounting.optimal.direction import LARGEST_EPSILON, Bracketed
from dpselect.accounting.optimal.recursion import ROUND_DOWN
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["Cuts"]

_START = 16
_PARTS = 4
_SHARES = np.linspace(0.0, 1.0, _PARTS + 1)

_RELATIVE = 2e-4
"""Boxes that may exceed the best value by this share are given up."""
_NEGLIGIBLE = 1e-18
_SMALLEST_SIDE = 1e-12
_MOST_WORK = 1_000_000
_LITTLE_WORK = 20_000
"""Boxes after which the search ends with the bound it has: for losses so small that all cuts are nearly alike."""

_ROUNDING = 1e-12
_SLOPE_ROUNDING = 1e-11
_LARGEST_EXPONENT = 690.0

_MOST_STEPS = 60
_ROOT = 2e-5
_GRID = 129
_HEAVY_GRID = 65
_CLOSER = 21
_ZOOMS = 9


class Found(NamedTuple):
    """The best cut met, the masses A and A' of the adversary's set there, its J, and a bound on J over all cuts."""

    best: float
    mass: float
    other_mass: float
    top: float


class _Bounds(NamedTuple):
    """For each box: J, A and A' at a corner, a bound on J, what rounding may add to it, what the sides leave open."""

    values: Array
    masses: Array
    top: Array
    rounding: Array
    still_open: Array


@dataclass(frozen=True, eq=False)
class Cuts(Bracketed):
    """One direction of the first acceptable outcome among T tries, over the atoms of a pair.

    With probability 1 - `chance`, regardless of the data, there is no try and the release is "none".
    """

    atoms: Atoms
    law: Repetitions
    chance: float = 1.0
    _found: dict[tuple[float, float, int], Found] = field(default_factory=dict, repr=False)

    def upper(self, epsilon: float) -> float:
        """A bound on delta at epsilon >= 0, for cuts anywhere, inside atoms too, rounded up."""
        return self._searched(epsilon).top

    def lower(self, epsilon: float) -> float:
        """The best value met at a cut, rounded down: attained by some mechanism and some set."""
        found = self._searched(epsilon)
        return max(0.0, found.best - ROUND_DOWN * (2.0 * found.mass - found.best))

    def smallest_safe(self, delta: float, limit: float = math.inf) -> float:
        """An epsilon with upper(epsilon) <= delta, as small as the bounds allow, or `limit`, or inf if none is."""
        root, slope = self._attained_root(delta)
        first = step = max(2e-4 * root, 1.5 * _RELATIVE / slope) + 1e-12 * root
        epsilon = root + step if root > 0.0 else 0.0
        while epsilon < min(limit, LARGEST_EPSILON):
            found = self._searched(epsilon, delta)
            if found.top <= delta:
                return epsilon
            own = _own_epsilon(found, delta)
            # a cut that the guesses missed, or else a bound that is not sharp enough
            epsilon, step = (own + first, step) if own > epsilon else (epsilon + step, 2.0 * step + 1e-9)
        return limit

    def largest_unsafe(self, delta: float) -> float:
        """An epsilon that some cut attains with delta, close to the largest, or 0 if there is none."""
        root, own = 0.0, self._attained_root(delta)[0]
        while root * (1.0 + _ROOT) < own < LARGEST_EPSILON:
            # a short search of all cuts, for those that the guesses missed
            root, own = own, _own_epsilon(self._searched(own * (1.0 + _ROOT), delta, _LITTLE_WORK), delta)
        return min(max(root, own), LARGEST_EPSILON) * (1.0 - 1e-15)

    def _search_root(self, delta: float) -> tuple[float, float]:
        """The largest epsilon met at which some cut attains delta, and the fall of log J per epsilon there.

        Every cut met attains delta at an epsilon of its own, log((A - delta) / A'), however it was found. The next
        epsilon is Newton's for log J, whose slope is that of the best cut, or where that leaves the bracket (J of a
        pure base falls to 0 like a square) for the root of J, or else halves the bracket.
        """
        root, slope, high, below = 0.0, 1.0, LARGEST_EPSILON, (0.0, 0.0, 0.0)
        epsilon = min(self.atoms.crossing(delta / self.law.mean), LARGEST_EPSILON)
        for _ in range(_MOST_STEPS):
            found = self._met(epsilon)
            step = found.best / (found.mass - found.best) if 0.0 < found.best < found.mass else 0.0
            if found.best > delta:
                below = epsilon, step, found.best
            else:
                high = epsilon
            if found.other_mass <= 0.0 and found.mass > delta:
                return math.inf, 1.0
            own = _own_epsilon(found, delta)
            if own > root:
                root, slope = own, (found.mass - delta) / delta
            if high <= root * (1.0 + _ROOT) or high == 0.0:
                break
            ahead = epsilon + math.log(found.best / delta) * step if step else math.inf
            if not root < ahead < high:
                ahead = below[0] + 2.0 * below[1] * (1.0 - math.sqrt(delta / below[2])) if below[1] else math.inf
            if not root < ahead < high:
                # searches: a root by Newton's steps; each evaluation is a search
                ahead = 0.5 * (root + min(high, 2.0 * root + 1.0)) if root > 0.0 else 0.0
            if ahead <= root * (1.0 + _ROOT) and found.best <= delta * (1.0 + 1e-3):
                break
            epsilon = ahead
        return root, max(slope, 1e-3)

    def _met(self, epsilon: float) -> Found:
        """The best cut of a grid of cuts, which is drawn ever more closely about it: a quick guess."""
        best, scale = Found(0.0, 1.0, 1.0, 0.0), math.exp(epsilon)
        for none, (x, y, masses) in zip((False, True), self._grids, strict=True):
            xs = ys = self._places
            for _ in range(_ZOOMS):
                values = masses[0] - scale * masses[1]
                k = int(np.argmax(values))
                if values[k] > best.best:
                    best = Found(float(values[k]), float(masses[0, k]), float(masses[1, k]), 0.0)
                xs, ys = _about(xs, x[k]), _about(ys, y[k])
                x, y, masses = self._cuts_at(none, xs, ys)
        return best

    @cached_property
    def _places(self) -> Array:
        """Places for a first look: equally far apart in atoms, and in mass, of which heavy atoms hold most."""
        mass = np.sum(self._sides.masses, axis=0)[: self.atoms.size]
        reached = np.append(0.0, np.cumsum(mass))
        nodes = np.arange(self.atoms.size + 1.0)
        heavy = np.interp(np.linspace(0.0, reached[-1], _HEAVY_GRID), reached, nodes)
        return np.unique(np.append(np.linspace(0.0, self.atoms.size, _GRID), heavy))

    @cached_property
    def _grids(self) -> tuple[tuple[Array, Array, Array], ...]:
        """The cuts at these places, without and with "none". They are the same for every epsilon."""
        return tuple(self._cuts_at(none, self._places, self._places) for none in (False, True))

    def _cuts_at(self, none: bool, xs: Array, ys: Array) -> tuple[Array, Array, Array]:
        """The pairs x <= y of some places, with A and A' there."""
        x, y = (z.ravel() for z in np.meshgrid(xs, ys, indexing="ij"))
        x, y = x[x <= y], y[x <= y]
        return x, y, self._at_cut(none, x, y)

    def _at_cut(self, none: bool, x: Array, y: Array) -> Array:
        """A and A' at cuts x <= y."""
        low, high = self._sides.below(x), self._sides.above(y)
        u = np.minimum(low + high, 1.0)
        return self._mass(none, high, u, self._sides.rejected(x, y, u))

    def _searched(self, epsilon: float, enough: float = 0.0, most_work: int = _MOST_WORK) -> Found:
        """The search itself. A bound of `enough` or less, or that is near the best value met, is not sharpened.

        The result is remembered, because upper and lower come from one search.
        """
        asked = epsilon, enough, most_work = min(epsilon, LARGEST_EPSILON), enough, most_work
        if asked not in self._found:
            found, given_up = self._met(epsilon), 0.0
            for none in (False, True):
                found, given_up = self._divide(epsilon, none, found, given_up, enough, most_work)
            top = max(found.best, given_up) * ROUND_UP
            self._found[asked] = found._replace(top=min(1.0, top))
        return self._found[asked]

    def _divide(
        self, epsilon: float, none: bool, found: Found, given_up: float, enough: float, most_work: int
    ) -> tuple[Found, float]:
        """Divide boxes that may hold more than the best value. Returns that, and the largest bound given up."""
        boxes, work = self._first_boxes, 0
        while True:
            at = self._bounds(epsilon, none, boxes)
            k = int(np.argmax(at.values))
            if at.values[k] > found.best:
                found = Found(float(at.values[k]), float(at.masses[0, k]), float(at.masses[1, k]), 0.0)
            settled = max(found.best * (1.0 + _RELATIVE) + _NEGLIGIBLE, enough)
            small = boxes[1::2] - boxes[::2] < _SMALLEST_SIDE
            kept = (at.top > settled) & ~np.all(small, axis=0)
            work += boxes.shape[1]
            if work > most_work:
                kept[:] = False
            given_up = max(given_up, float(np.max((at.top + at.rounding)[~kept], initial=0.0)))
            if not np.any(kept):
                return found, given_up
            wide = ((at.still_open >= 0.5 * np.max(at.still_open, axis=0)) | small[::-1]) & ~small
            boxes = _divided(boxes[:, kept], wide[:, kept])

    @cached_property
    def _first_boxes(self) -> Array:
        """Boxes of cuts (x_0, x_1, y_0, y_1) that cover all cuts x <= y."""
        nodes = np.unique(np.round(np.linspace(0.0, self.atoms.size, _START + 1)))
        if nodes.size == 1:
            return np.zeros((4, 1))
        first, second = np.triu_indices(nodes.size - 1)
        return np.array([nodes[first], nodes[first + 1], nodes[second], nodes[second + 1]])

    def _bounds(self, epsilon: float, none: bool, boxes: Array) -> _Bounds:
        """J at the corner (x_0, y_1) of every box, and bounds on J over it.

        From that corner every cut of the box is reached by raising x and then lowering y, or the other way round,
        with x <= y all the way. The first of the two moves along an edge of the box.
        """
        t, law, scale = self._sides, self.law, math.exp(epsilon)
        x_0, x_1, y_0, y_1 = boxes
        low, low_end, high, high_start = t.below(x_0), t.below(x_1), t.above(y_1), t.above(y_0)
        u_0 = np.minimum(low + high, 1.0)
        h_0 = released(law, u_0)
        masses = self._mass(none, high, u_0, t.rejected(x_0, y_1, u_0))
        values = masses[0] - scale * masses[1]

        # What A gains by more N or S, per mass, falls with u: bounds at the smallest and the largest u of either way.
        slope, fall = np.exp(law.log_derivative(u_0)), largest_fall(law, u_0, h_0)
        ends = np.array(
            [low_end[0] + high[0], low_end[0] + high_start[0], low_end[1] + high_start[1], low[1] + high_start[1]]
        )
        ends = np.minimum(ends, 1.0)
        least_slope, small_fall = np.exp(law.log_derivative(ends)), least_fall(law, ends)
        in_n, in_s = (1.0, 0.0) if none else (0.0, 1.0)
        n_gain = in_n * slope[1] + np.array([high[1], high_start[1]]) * fall[1]
        n_cost = in_n * least_slope[:2] + high[0] * small_fall[:2]
        s_gain = in_s * slope[0] + np.array([low_end[0], low[0]]) * fall[0]
        s_cost = in_s * least_slope[2:] + low[1] * small_fall[2:]
        # where P' of N rises by dm, P does by at least exp(loss at x_0) dm; where P of S does, P' by exp(-loss at y_1)
        n_loss, s_loss = t.losses[atom_at(x_0, t.size)], t.losses[last_atom(y_1, t.size)]
        n_step, s_step = t.between(x_0, x_1)[1], t.between(y_0, y_1)[0]
        n_cost = n_cost * np.exp(_clipped(n_loss - epsilon))
        s_cost = s_cost * np.exp(_clipped(epsilon - s_loss))
        up, down = 1.0 + _SLOPE_ROUNDING, 1.0 - _SLOPE_ROUNDING
        n_rate, s_rate = scale * (up * n_gain - down * n_cost), up * s_gain - down * s_cost
        # the same without a difference of near terms; x first in the first row
        n_apart, s_apart = t.apart(t.excess_below, x_0, x_1), t.apart(t.excess_above, y_0, y_1)
        at_x, at_y = t.apart(t.excess_below, x_0, x_0)[0], t.apart(t.excess_above, y_1, y_1)[0]
        n_losses = n_loss, t.losses[last_atom(x_1, t.size)]
        s_losses = t.losses[atom_at(y_0, t.size)], s_loss
        both = Masses((low, low_end), (high, high_start), n_apart, s_apart)
        only_n = both._replace(s=(high, high), s_apart=(at_y, at_y))
        only_s = both._replace(n=(low, low), n_apart=(at_x, at_x))
        n_rate = np.minimum(n_rate, [n_growth(law, epsilon, none, held, n_losses) for held in (only_n, both)])
        s_rate = np.minimum(s_rate, [s_growth(law, epsilon, none, held, s_losses) for held in (both, only_s)])
        n_open = self.chance * n_step * np.maximum(n_rate, 0.0)
        s_open = self.chance * s_step * np.maximum(s_rate, 0.0)
        x_first = n_open[0] + s_open[0] <= n_open[1] + s_open[1]
        still_open = np.where(x_first, [n_open[0], s_open[0]], [n_open[1], s_open[1]])

        # A rises with S and falls with N
        u = np.minimum(np.array([low[0] + high_start[0], low_end[1] + high[1]]), 1.0)
        left = np.array([1.0 - u[0], t.rejected(x_1, y_1, u)[1]])
        most = self._mass(none, np.array([high_start[0], high[1]]), u, left)
        # A - A' is at most its largest slopes times P'(N) - P(N) and P(S) - P'(S), both small where losses are
        shift_n = np.maximum(low[1] - low[0] - n_step * np.minimum(np.expm1(_clipped(n_loss)), 0.0), 0.0)
        shift_s = np.maximum(high[0] - high[1] - s_step * np.minimum(np.expm1(_clipped(-s_loss)), 0.0), 0.0)
        worst_slope, worst_fall = np.max(slope, axis=0), np.max(fall, axis=0)
        apart = (in_n * worst_slope + np.max(high_start, axis=0) * worst_fall) * shift_n
        apart = apart + (in_s * worst_slope + np.max(low_end, axis=0) * worst_fall) * shift_s
        apart = self.chance * apart - math.expm1(epsilon) * most[1]
        sharp, crude = values + np.sum(still_open, axis=0), np.minimum(most[0] - scale * most[1], apart)
        rounding = _ROUNDING * np.where(sharp <= crude, masses[0] + scale * masses[1], most[0])
        return _Bounds(values, masses, np.minimum(sharp, crude), rounding, still_open)

    def _mass(self, none: bool, high: Array, u: Array, rejected: Array) -> Array:
        """P(S) h(u), and with it the probability of "none" if the adversary's set holds it."""
        mass = self.chance * high * released(self.law, u)
        return mass + self.chance * nothing(self.law, u, rejected) + (1.0 - self.chance) if none else mass

    @cached_property
    def _sides(self) -> Sides:
        t, none = self.atoms, np.zeros(1)
        if not t.size:  # an atom without mass stands for none
            t = Atoms(losses=none, p=none, q=none, infinite=t.infinite, zero=t.zero)
        return Sides(
            t.losses,
            np.array([t.p, t.q]),
            np.array([t.below_p, t.below_q]),
            np.array([t.above_p, t.above_q]),
            t.excess_below,
            t.excess_above,
        )


def _own_epsilon(found: Found, delta: float) -> float:
    """The epsilon at which the cut that was found attains delta, rounded down, or 0 if at none."""
    sure = found.mass * (1.0 - ROUND_DOWN) - delta
    if not sure > 0.0 or not found.best > 0.0 or not found.other_mass > 0.0:
        return 0.0
    return math.log(sure) - math.log(found.other_mass) - ROUND_DOWN


def _about(places: Array, best: float) -> Array:
    """Places between the next but one to the best of some, on either side."""
    k = int(np.searchsorted(places, best))
    return np.unique(np.linspace(places[max(k - 2, 0)], places[min(k + 2, places.size - 1)], _CLOSER))


def _clipped(exponent: Array) -> Array:
    """An exponent, lower where exp of it would leave double precision."""
    return np.minimum(exponent, _LARGEST_EXPONENT)


def _divided(boxes: Array, wide: NDArray[np.bool_]) -> Array:
    """Boxes cut into parts along x, along y or both, at nodes if a side spans several atoms. Only those with x <= y."""
    for side in (0, 1):
        cut = wide[side]
        start, end = boxes[2 * side, cut], boxes[2 * side + 1, cut]
        places = start + (end - start) * _SHARES[:, None]
        places = np.where(end - start > 1.5, np.round(places), places)
        places[0], places[-1] = start, end
        divided = np.repeat(boxes[:, None, cut], _PARTS, axis=1)
        divided[2 * side], divided[2 * side + 1] = places[:-1], places[1:]
        some = (places[:-1] < places[1:]).ravel()
        divided = divided.reshape(4, -1)[:, some]
        follow = np.tile(wide[:, cut], (1, _PARTS))[:, some]
        boxes, wide = np.concatenate((boxes[:, ~cut], divided), axis=1), np.concatenate((wide[:, ~cut], follow), axis=1)
    return boxes[:, boxes[0] <= boxes[3]]
