"""The optimal profile of best-of-K as a pair of curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpselect.accounting.optimal.atoms import Atoms, split_atoms
from dpselect.accounting.optimal.direction import Chords, Direction
from dpselect.privacy import DominatingPair
from dpselect.privacy.discretise import PairEnclosure
from dpselect.privacy.pairs import PairSource
from dpselect.privacy.profile import extend
from dpselect.repetitions import Repetitions

__all__ = ["OptimalLowerProfile", "OptimalProfile"]

Array = NDArray[np.float64]

_RECURSION_ATOMS = 1000
_TABLE_FROM = 129
_TABLE_KNOTS = 200


@dataclass(frozen=True)
class _Optimal:
    """Both directions of best-of-K over one of the two pairs of each enclosure."""

    pairs: PairSource
    law: Repetitions
    atoms: int

    def _pick(self, enclosure: PairEnclosure) -> DominatingPair:
        raise NotImplementedError

    def _value(self, direction: Direction, epsilon: float) -> float:
        raise NotImplementedError

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)} of the search on the larger data set against the smaller."""
        first, second = self._curves
        return extend(epsilons, first, second)

    def add(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)} of the search on the smaller data set against the larger."""
        first, second = self._curves
        return extend(epsilons, second, first)

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        """One for each direction, or a single one when they agree."""
        first, second = self.pairs(self.atoms)
        found = (first,) if second is first else (first, second)

        def build(k: int) -> Direction:
            def coarse() -> Atoms:
                return split_atoms(self._pick(self.pairs(_RECURSION_ATOMS)[k]), self.law, _RECURSION_ATOMS)

            return Direction(split_atoms(self._pick(found[k]), self.law, self.atoms), coarse, self.law)

        return tuple(build(k) for k in range(len(found)))

    @property
    def _curves(self) -> tuple[Any, Any]:
        first, last = self.directions[0], self.directions[-1]
        return (lambda e: self._curve(first, e)), (lambda e: self._curve(last, e))

    def _curve(self, direction: Direction, epsilons: Array) -> Array:
        # equal epsilons, such as the padding of a grid, are priced once
        unique, back = np.unique(np.ravel(epsilons), return_inverse=True)
        values = np.array([self._value(direction, float(e)) for e in unique])
        return values[back].reshape(np.shape(epsilons))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the recipe, not the atoms."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True)
class OptimalProfile(_Optimal):
    """The certified profile of the best of K runs of any mechanism that the pairs dominate. Rounded up.

    Up to 128 epsilons are evaluated each; more are read from chords in exp(epsilon) over a table of knots, which lie
    above the convex true profile. From `pure_epsilon` on the answer is at most `failure`, exactly (pure_bounds.py).
    """

    pure_epsilon: float = math.inf
    failure: float = 0.0
    theorem: ClassVar[str] = "optimal accounting of the best of K runs"

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at which both directions are seen to be at most `delta`; inf if none is found."""
        limit = self.pure_epsilon if delta >= self.failure else math.inf
        if delta <= 0.0:
            return limit
        return max(d.smallest_safe(delta, limit) for d in self.directions)

    def _pick(self, enclosure: PairEnclosure) -> DominatingPair:
        return enclosure.pessimistic

    def _value(self, direction: Direction, epsilon: float) -> float:
        value = direction.upper(epsilon)
        return min(value, self.failure) if epsilon >= self.pure_epsilon else value

    def _curve(self, direction: Direction, epsilons: Array) -> Array:
        if np.size(epsilons) < _TABLE_FROM:
            return super()._curve(direction, epsilons)
        table = self._tables[0 if direction is self.directions[0] else -1]
        return table(np.ravel(epsilons)).reshape(np.shape(epsilons))

    @cached_property
    def _tables(self) -> tuple[Chords, ...]:
        return tuple(Chords.of(d, _TABLE_KNOTS) for d in self.directions)


@dataclass(frozen=True)
class OptimalLowerProfile(_Optimal):
    """A profile that some mechanism dominated by the pairs attains, hence below every valid bound."""

    def largest_epsilon(self, delta: float) -> float:
        """An epsilon at which delta is seen to be exceeded, close to the largest; 0 if there is none."""
        return max(d.largest_unsafe(delta) for d in self.directions) if delta > 0.0 else 0.0

    def _pick(self, enclosure: PairEnclosure) -> DominatingPair:
        assert enclosure.optimistic is not None
        return enclosure.optimistic

    def _value(self, direction: Direction, epsilon: float) -> float:
        return direction.lower(epsilon)
