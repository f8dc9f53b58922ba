"""One direction of an optimal profile: evaluation at one epsilon, and inversion with few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.columns import column_bounds
from dpselect.accounting.optimal.recursion import attained, certified
from dpselect.numerics import ROUND_UP
from dpselect.repetitions import Repetitions

__all__ = ["Chords", "Direction"]

Array = NDArray[np.float64]

LARGEST_EPSILON = 600.0
_WIDE_DELTA = 1.02
_WIDE_EPSILON = 5e-4
_RECURSION_POINTS = 9
_SMALLEST = 1e-300
_NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class Direction:
    """Atoms on which delta is bounded, fine for `columns`, and coarser ones (built on demand) for `recursion`."""

    fine: Atoms
    coarse: Callable[[], Atoms]
    law: Repetitions

    @cached_property
    def _coarse(self) -> Atoms:
        return self.coarse()

    def upper(self, epsilon: float) -> float:
        """A bound on delta at epsilon >= 0 that holds for every splitting of the atoms; rounded up."""
        if epsilon > LARGEST_EPSILON:
            return self.upper(LARGEST_EPSILON)
        found = column_bounds(self.fine, self.law, epsilon)
        value = found.upper
        if value > _WIDE_DELTA * found.lower:
            value = min(value, float(certified(self._coarse, self.law, np.array([epsilon]))[0]))
        return min(1.0, value * ROUND_UP)

    def lower(self, epsilon: float) -> float:
        """What an order of the atoms attains at epsilon >= 0."""
        return column_bounds(self.fine, self.law, min(epsilon, LARGEST_EPSILON), certify=False).lower

    def smallest_safe(self, delta: float, limit: float = math.inf) -> float:
        """An epsilon with upper(epsilon) <= delta, as small as the bounds allow, or `limit`; inf if there is none."""
        start, slope = self._attained_root(delta)
        epsilon, step = start, 0.0
        while True:
            if epsilon >= min(limit, LARGEST_EPSILON):
                epsilon = limit
                break
            value = column_bounds(self.fine, self.law, epsilon).upper * ROUND_UP
            if value <= delta:
                break
            step = max(1.03 * math.log(value / delta) / slope, 2.0 * step) + 1e-9 * epsilon
            epsilon += step
        if epsilon > start * (1.0 + _WIDE_EPSILON) and start < math.inf:
            return min(epsilon, self._by_recursion(delta, start, min(epsilon, 1.5 * start + 1e-3)))
        return epsilon

    def largest_unsafe(self, delta: float) -> float:
        """An epsilon with lower(epsilon) > delta, close to the largest; 0 if there is none."""
        root = self._attained_root(delta)[0]
        if math.isinf(root):
            return LARGEST_EPSILON
        shrink = 1e-9
        while root > 0.0 and shrink < 1.0:
            if self.lower(root * (1.0 - shrink)) > delta:
                root *= 1.0 - shrink
                break
            shrink *= 8.0
        else:
            root = 0.0
        bounds = column_bounds(self.fine, self.law, root)
        if bounds.upper > _WIDE_DELTA * bounds.lower:
            grid = np.linspace(root, 1.02 * root + 1e-3, _RECURSION_POINTS)
            above = attained(self._coarse, self.law, grid) > delta
            return max(root, float(np.max(grid, where=above, initial=0.0)))
        return root

    def top(self) -> float:
        """An epsilon past which the curve has fallen to 1e-17 or to its floor."""
        floor = float(self.law.increment(complement_after=0.0, mass=self.fine.infinite))
        return min(self._attained_root(max(_NEGLIGIBLE, floor * 1.001))[0], LARGEST_EPSILON)

    def _attained_root(self, delta: float) -> tuple[float, float]:
        """The epsilon at which the attained value crosses delta, and the fall of log delta per epsilon there."""

        def excess(epsilon: float) -> float:
            return math.log(max(self.lower(epsilon), _SMALLEST) / delta)

        low, high = 0.0, 0.5
        if excess(low) <= 0.0:
            return 0.0, 1.0
        while excess(high) > 0.0:
            low, high = high, 2.0 * high
            if low >= LARGEST_EPSILON:
                return math.inf, 1.0
        root = float(brentq(excess, low, high, xtol=1e-12, rtol=1e-9, maxiter=60))
        step = 1e-3 * root + 1e-6
        slope = (excess(root) - excess(root + step)) / step
        return root, max(slope, 1e-3)

    def _by_recursion(self, delta: float, low: float, high: float) -> float:
        """The same from the recursion: two rounds over a few epsilons at once. Any safe epsilon is an answer."""
        best = math.inf
        for _ in range(2):
            grid = np.linspace(low, high, _RECURSION_POINTS)
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
    def of(cls, direction: Direction, knots: int) -> Chords:
        """`knots` values of the upper curve from 0 to where it has fallen."""
        epsilons = np.linspace(0.0, direction.top(), knots)
        return cls(epsilons, np.minimum.accumulate([direction.upper(float(e)) for e in epsilons]))

    def __call__(self, epsilons: Array) -> Array:
        known, deltas = self.epsilons, self.deltas
        right = np.clip(np.searchsorted(known, epsilons, side="right"), 1, known.size - 1)
        left = right - 1
        # weight of the right end in exp(epsilon)
        weight = np.exp(np.minimum(epsilons - known[right], 0.0)) * (
            np.expm1(known[left] - epsilons) / np.expm1(known[left] - known[right])
        )
        chord = deltas[left] + (deltas[right] - deltas[left]) * np.clip(weight, 0.0, 1.0)
        return np.asarray(np.where(epsilons >= known[-1], deltas[-1], chord * ROUND_UP))
