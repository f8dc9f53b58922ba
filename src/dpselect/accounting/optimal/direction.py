"""Curves that are bounded from both sides, and their inversion with few evaluations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.columns import column_bounds, columns_bounds
from dpselect.accounting.optimal.recursion import attained, certified
from dpselect.accounting.optimal.tolerances import EFFORT, KNOTS, NEGLIGIBLE, SECANTS, START
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, crossing, root_on_grids
from dpselect.repetitions import Repetitions

__all__ = ["Bracketed", "Chords", "Direction"]

LARGEST_EPSILON = 600.0
"""Its exponential leaves room in float64 for products with masses and numbers of runs."""


class Bracketed(ABC):
    """delta as a function of epsilon >= 0: a certified upper value and an attained lower one, cheaper to have."""

    @abstractmethod
    def upper(self, epsilon: float) -> float:
        """A bound on delta at epsilon, rounded up."""

    @abstractmethod
    def lower(self, epsilon: float) -> float:
        """The value that is attained at epsilon."""

    def sharp_upper(self, epsilon: float) -> float:
        """`upper`, with more effort where it is far from `lower`."""
        return self.upper(epsilon)

    def uppers(self, epsilons: Array) -> Array:
        """`upper` at each epsilon."""
        return np.array([self.upper(e) for e in epsilons.tolist()])

    @abstractmethod
    def smallest_safe(self, delta: float, limit: float = math.inf) -> float:
        """An epsilon with upper(epsilon) <= delta, as small as the bounds allow, or `limit`, or inf if none is."""

    @abstractmethod
    def largest_unsafe(self, delta: float) -> float:
        """An epsilon with lower(epsilon) > delta, close to the largest, or 0 if there is none."""

    @abstractmethod
    def _search_root(self, delta: float) -> tuple[float, float]:
        """About the epsilon at which the attained value crosses delta, and the fall of log delta per epsilon there."""

    def _attained_root(self, delta: float) -> tuple[float, float]:
        """The same, found once."""
        if delta not in self._roots:
            self._roots[delta] = self._search_root(delta)
        return self._roots[delta]

    @cached_property
    def _roots(self) -> dict[float, tuple[float, float]]:
        return {}

    def attained(self, delta: float) -> float:
        """About the epsilon at which the attained value crosses delta: what `smallest_safe` is close above."""
        return self._attained_root(delta)[0]

    def top(self) -> float:
        """An epsilon past which the curve has fallen to 1e-17 or to its floor."""
        least = max(NEGLIGIBLE, self.rough(LARGEST_EPSILON) * 1.001)
        return root_on_grids(
            lambda epsilons: self.roughs(epsilons) <= least, safe=LARGEST_EPSILON, unsafe=0.0, relative=1e-2, points=15
        )

    def rough(self, epsilon: float) -> float:
        """About the value that is attained at epsilon, cheaper than `lower` if a curve has something cheaper."""
        return self.lower(epsilon)

    def roughs(self, epsilons: Array) -> Array:
        """`rough` at each epsilon."""
        return np.array([self.rough(e) for e in epsilons.tolist()])


@dataclass(frozen=True, eq=False)
class Direction(Bracketed):
    """Best-of-K over the atoms of one pair, heavy ones cut into pieces.

    `cut(n)` gives the atoms for about n pieces. If the bracket stays wide, more pieces are tried first, and then,
    for laws of K whose phi' has several scales, the recursion on fewer. One with more pieces looks for its root beside
    that of the one with fewer, and tries nothing after that.
    """

    cut: Callable[[int], Atoms]
    pieces: int
    law: Repetitions
    fewer: Direction | None = None

    @cached_property
    def fine(self) -> Atoms:
        """The atoms on which delta is bounded."""
        return self.cut(self.pieces)

    @cached_property
    def _merged(self) -> Atoms:
        return self.fine.merged(START.merged)

    @cached_property
    def _coarse(self) -> Atoms:
        return self.cut(min(self.pieces, EFFORT.recursion_atoms))

    @cached_property
    def _finer(self) -> Direction:
        return Direction(self.cut, 3 * self.pieces, self.law, fewer=self)

    def _settled(self, epsilon: float) -> bool:
        """Whether more effort changes nothing near `epsilon`: it was made already, or phi' at F' is lost in rounding.

        That is so for laws of K without K = 1 and bases with outcomes of epsilon 25 and more. The bounds stay valid.
        """
        # of the k-th power the best intervals begin at about a k-th of epsilon
        first = float(np.searchsorted(self.fine.losses, epsilon / self._fewest_runs))
        median = float(np.searchsorted(-self.fine.above_p, -0.5))
        places = [min(int(place), self.fine.size - 1) for place in (first, median)]
        mass = max(float(np.min(self.fine.above_q[places])), self.fine.uncertainty)
        lost = self.fine.uncertainty * self.law.second_derivative(1.0 - mass)
        return self.fewer is not None or lost > EFFORT.lost * math.exp(self.law.log_derivative(1.0 - mass))

    @cached_property
    def _fewest_runs(self) -> int:
        """The smallest number of runs, but 0, that is possible."""
        return next((k for k in range(1, EFFORT.largest_power) if self.law.pmf(float(k)) > 0.0), EFFORT.largest_power)

    def upper(self, epsilon: float) -> float:
        """A bound on delta at epsilon >= 0 that holds for every splitting of the atoms, rounded up."""
        return min(1.0, column_bounds(self.fine, self.law, min(epsilon, LARGEST_EPSILON)).upper * ROUND_UP)

    def lower(self, epsilon: float) -> float:
        """The value that an order of the atoms attains at epsilon >= 0."""
        return column_bounds(self.fine, self.law, min(epsilon, LARGEST_EPSILON), certify=False).lower

    def rough(self, epsilon: float) -> float:
        """The value that an order of atoms merged by eights attains: a guess, found faster."""
        return column_bounds(self._merged, self.law, min(epsilon, LARGEST_EPSILON), certify=False).lower

    def uppers(self, epsilons: Array) -> Array:
        """`upper` at each epsilon, all together."""
        asked = np.minimum(epsilons, LARGEST_EPSILON)
        found = columns_bounds(self.fine, self.law, asked, wide=KNOTS.wide)[0]
        return np.minimum(found * ROUND_UP, 1.0)

    def roughs(self, epsilons: Array) -> Array:
        """`rough` at each epsilon, all together."""
        return columns_bounds(self._merged, self.law, np.minimum(epsilons, LARGEST_EPSILON), certify=False)[1]

    def sharp_upper(self, epsilon: float) -> float:
        """`upper`, and the recursion too where the columns leave much open."""
        value = self.upper(epsilon)
        if value > EFFORT.wide_delta * self.lower(epsilon) + NEGLIGIBLE:
            recursed = certified(self._coarse, self.law, np.array([min(epsilon, LARGEST_EPSILON)])) * ROUND_UP
            value = min(value, float(recursed[0]))
        return value

    def smallest_safe(self, delta: float, limit: float = math.inf) -> float:
        """An epsilon with upper(epsilon) <= delta, as small as the bounds allow, or `limit`, or inf if none is."""
        root, slope = self._attained_root(delta)
        epsilon, step, tries = root, 0.0, 0
        while epsilon < min(limit, LARGEST_EPSILON):
            value = self.upper(epsilon)
            if value <= delta:
                return self._sharpened(delta, root, epsilon, limit)
            tries += 1
            growth = 2.0 if tries <= SECANTS.usual_tries else 16.0
            step = max(1.03 * math.log(value / delta) / slope, growth * step) + 1e-9 * epsilon
            epsilon += step
        return self._sharpened(delta, root, limit, limit)

    def _sharpened(self, delta: float, root: float, epsilon: float, limit: float) -> float:
        """A smaller safe epsilon than `epsilon`, with more effort where it is far from the attained `root`."""
        if epsilon > root * (1.0 + EFFORT.wide) and not self._settled(root):
            epsilon = min(epsilon, self._finer.smallest_safe(delta, limit))
            root, near = max(root, self._finer._attained_root(delta)[0]), EFFORT.first_division
            wide = epsilon > root * (1.0 + EFFORT.still_wide)
            while wide and root * (1.0 + near) < min(epsilon, LARGEST_EPSILON):
                epsilon = min(epsilon, self._by_division(delta, root * (1.0 + near)))
                near *= 2.0  # searches: a root by secant steps; each evaluation is expensive
            if epsilon > root * (1.0 + EFFORT.very_wide):
                epsilon = min(epsilon, self._by_recursion(delta, root, min(epsilon, 1.5 * root + 1e-3)))
        return epsilon

    def largest_unsafe(self, delta: float) -> float:
        """An epsilon with lower(epsilon) > delta, close to the largest, or 0 if there is none."""
        root = self._below_root(delta)
        if self._settled(root) or not 0.0 < root < LARGEST_EPSILON or self.upper(root * (1.0 + EFFORT.wide)) <= delta:
            return root
        root = max(root, self._finer.largest_unsafe(delta))
        if self.upper(root * (1.0 + EFFORT.very_wide)) > delta:
            grid = np.linspace(root, 1.02 * root + 1e-3, EFFORT.recursion_points)
            above = attained(self._coarse, self.law, grid) > delta
            root = max(root, float(np.max(grid, where=above, initial=0.0)))
        return root

    def _below_root(self, delta: float) -> float:
        """The same by `lower` alone."""
        root = self._attained_root(delta)[0]
        if math.isinf(root):
            return LARGEST_EPSILON
        shrink = 1e-9
        while root > 0.0 and shrink < 1.0:
            if self.lower(root * (1.0 - shrink)) > delta:
                return root * (1.0 - shrink)
            shrink *= 8.0  # searches: a root by secant steps; each evaluation is expensive
        return 0.0

    def _rough_root(self, delta: float) -> float:
        """About the epsilon at which the attained value crosses delta, inf if there is none: where to start looking."""
        if self.fewer is not None:
            return self.fewer.attained(delta)
        excess = self._excess(self.rough, delta)
        # where E[K] times the divergence of the atoms themselves is delta: small parts add up
        guess = self._merged.crossing(delta / self.law.mean)
        low = high = min(max(guess, START.smallest_guess), LARGEST_EPSILON)
        if excess(low) <= 0.0 and excess(0.0) <= 0.0:
            return 0.0
        # epsilons may have any size: steps are factors
        factor = START.first_factor
        while excess(high) > 0.0:
            if high >= LARGEST_EPSILON:
                return math.inf
            low, high, factor = high, min(factor * high, LARGEST_EPSILON), factor**1.5
        while excess(low) <= 0.0:
            low, high, factor = (low / factor if factor < START.largest_factor else 0.0), low, factor**1.5
        return crossing(excess, low, high, relative=START.rough)

    def _search_root(self, delta: float) -> tuple[float, float]:
        """The epsilon at which the attained value crosses delta, and the fall of log delta per epsilon there."""
        excess = self._excess(self.lower, delta)
        root = min(self._rough_root(delta), LARGEST_EPSILON)
        if root == 0.0 and excess(root) <= 0.0:  # elsewhere more was attained before the root
            return 0.0, 1.0
        if root == LARGEST_EPSILON and excess(root) > 0.0:
            return math.inf, 1.0
        step = (1e-3 * root + 1e-9) * (1.0 if excess(root) > 0.0 else -1.0)
        low, high, other = 0.0, math.inf, root + step
        # orders change from place to place, so nearer points would tell less of it
        fall = max((excess(root) - excess(other)) / step, SECANTS.least_slope)
        for _ in range(SECANTS.steps):
            for x in (root, other):
                low, high = (max(low, x), high) if excess(x) > 0.0 else (low, min(high, x))
            slope = (excess(root) - excess(other)) / (other - root)
            ahead = other + excess(other) / slope if slope > 0.0 else math.inf
            if high - low <= SECANTS.bracket * low:
                return low, fall
            if not low < ahead < high:
                # the curve bends, or is at its floor: between the points that are known
                # searches: a root by secant steps; each evaluation is expensive
                ahead = 0.5 * (low + high) if math.isfinite(high) else min(2.0 * low, LARGEST_EPSILON)
            elif abs(ahead - other) <= SECANTS.step * ahead:
                return ahead, fall
            if ahead == LARGEST_EPSILON and excess(ahead) > 0.0:
                return math.inf, 1.0
            root, other = other, ahead
        root = crossing(excess, low, min(high, LARGEST_EPSILON), relative=1e-8)
        step = 1e-4 * root
        return root, max((excess(root) - excess(root + step)) / step, SECANTS.least_slope)

    @staticmethod
    def _excess(curve: Callable[[float], float], delta: float) -> Callable[[float], float]:
        """The logarithm of a curve over delta, each value computed once."""

        @cache
        def excess(epsilon: float) -> float:
            # far below delta the value does not matter, and a floor keeps the root finder's steps sensible
            return math.log(max(curve(epsilon) / delta, 1e-4))

        return excess

    def _by_division(self, delta: float, epsilon: float) -> float:
        """`epsilon` if delta is seen not to be exceeded there once the atoms that leave much open are divided, or inf.

        Divided atoms are the same pair, and the bound holds for every splitting of it.
        """
        atoms = self.fine
        while atoms.size <= EFFORT.most_growth * self.fine.size:
            found = column_bounds(atoms, self.law, epsilon)
            if found.upper * ROUND_UP <= delta:
                return epsilon
            loose = found.open > EFFORT.left_open * delta
            # each open cell is counted in its row and in its column
            if found.upper - 0.5 * float(np.sum(found.open)) > delta or not np.any(loose):
                break
            atoms = atoms.divided(np.where(loose, EFFORT.parts, 1))
        return math.inf

    def _by_recursion(self, delta: float, low: float, high: float) -> float:
        """The smallest safe epsilon by the recursion, in two rounds over a few at once. Any safe one is an answer."""
        best = math.inf
        for _ in range(2):
            grid = np.linspace(low, high, EFFORT.recursion_points)
            safe = certified(self._coarse, self.law, grid) * ROUND_UP <= delta
            if not np.any(safe):
                break
            first = int(np.argmax(safe))
            best = min(best, float(grid[first]))
            if first == 0 or grid[first] - grid[first - 1] < 1e-4 * best:
                break
            low, high = float(grid[first - 1]), float(grid[first])
        return best


@dataclass(frozen=True, eq=False)
class Chords:
    """A table of a curve at increasing epsilons from 0: chords in exp(epsilon), the last value past the end."""

    epsilons: Array
    deltas: Array

    @classmethod
    def of(cls, curve: Bracketed, knots: int) -> Chords:
        """`knots` values of the upper curve from 0 to where it has fallen.

        A chord errs by the square of the fall between its ends, and widens losses by the square of its own length. So
        the knots are spread in part by the fall of log delta and in part evenly, as far as delta matters.
        """
        scan = np.linspace(0.0, curve.top(), KNOTS.scan)
        fall = -np.log(np.maximum(np.minimum.accumulate(curve.roughs(scan)), 1e-300))
        fall -= fall[0]
        steep = KNOTS.deep * np.arctan(fall / KNOTS.deep)
        near = np.append(0.0, np.cumsum(np.exp(-np.square(0.5 * (fall[1:] + fall[:-1]) / KNOTS.far))))
        way = steep / (steep[-1] + 1e-9) + KNOTS.even_share * near / near[-1]
        way += KNOTS.flat_share * np.linspace(0.0, 1.0, KNOTS.scan)
        epsilons = np.interp(np.linspace(0.0, way[-1], knots), way, scan)
        return cls(epsilons, np.minimum.accumulate(curve.uppers(epsilons)))

    def __call__(self, epsilons: Array) -> Array:
        known, deltas = self.epsilons, self.deltas
        right = np.clip(np.searchsorted(known, epsilons, side="right"), 1, known.size - 1)
        left = right - 1
        # weight of the right end in exp(epsilon)
        with np.errstate(invalid="ignore"):
            weight = np.exp(np.minimum(epsilons - known[right], 0.0)) * (
                np.expm1(known[left] - epsilons) / np.expm1(known[left] - known[right])
            )
        chord = deltas[left] + (deltas[right] - deltas[left]) * np.clip(weight, 0.0, 1.0)
        return np.asarray(np.where(epsilons >= known[-1], deltas[-1], chord * ROUND_UP))
