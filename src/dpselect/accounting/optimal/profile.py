"""Optimal profiles as pairs of curves, and those of the best of K runs."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpselect.accounting.optimal.atoms import Atoms, split_atoms
from dpselect.accounting.optimal.direction import Bracketed, Chords, Direction
from dpselect.accounting.optimal.tolerances import KNOTS
from dpselect.caching import CopiedByFields, memoized
from dpselect.numerics.search import Array
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure, merged_by_mass
from dpselect.privacy.losses.pairs import LossPairs, PairSource
from dpselect.privacy.profile import TwoSidedProfile
from dpselect.repetitions import Repetitions

__all__ = ["BestOfLowerProfile", "BestOfProfile", "CachedPairs", "LowerProfile", "TwoSided", "UpperProfile"]

_TABLE_FROM = 129


@dataclass(frozen=True)
class CachedPairs(CopiedByFields):
    """A recipe for pairs that keeps what it has made: both directions ask for the same."""

    source: PairSource

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:
        if atoms not in self._made:
            self._made[atoms] = self.source(atoms)
        return self._made[atoms]

    @cached_property
    def rougher(self) -> CachedPairs:
        """Pairs close above these that are made quicker, or these."""
        return CachedPairs(self.source.rougher()) if isinstance(self.source, LossPairs) else self

    @cached_property
    def _made(self) -> dict[int, tuple[PairEnclosure, PairEnclosure]]:
        return {}


@dataclass(frozen=True)
class TwoSided(CopiedByFields, TwoSidedProfile):
    """Both directions of a search over one of the two pairs of each enclosure."""

    pairs: PairSource
    law: Repetitions
    atoms: int

    @abstractmethod
    def _curve(self, direction: int) -> Bracketed:
        """The curve over the pair of a direction, 0 or 1."""

    def _table_curve(self, direction: int) -> Bracketed:
        """The same curve, quicker and less accurate if it can be: good enough for chords between distant knots."""
        return self.curves[direction]

    @abstractmethod
    def _pick(self, enclosure: PairEnclosure) -> DominatingPair:
        """The pessimistic or the optimistic pair."""

    @cached_property
    def enclosures(self) -> tuple[PairEnclosure, ...]:
        """One for each direction, or a single one when they agree."""
        first, second = self.pairs(self.atoms)
        return (first,) if second is first else (first, second)

    @cached_property
    def curves(self) -> tuple[Bracketed, ...]:
        """The curves over them."""
        return tuple(self._curve(direction) for direction in range(len(self.enclosures)))


class UpperProfile(TwoSided):
    """A certified profile, rounded up. From `pure_epsilon` on it is at most `failure`, which is known otherwise.

    Up to 128 epsilons are evaluated each. More are read from chords in exp(epsilon) over a table of knots, which are
    above the convex true profile. There are so many knots that they cost about as much accuracy as the atoms do.
    """

    pure_epsilon: float
    failure: float

    @property
    def costly(self) -> bool:
        """Whether one value takes long: it does."""
        return True

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at which both directions are seen to be at most `delta`, or inf if none is."""
        limit = self.pure_epsilon if delta >= self.failure else math.inf
        if not delta > 0.0:
            return limit
        found = 0.0
        for curve in self.curves:
            # the first direction mostly needs more, and then one look settles the second
            if found == 0.0 or (found < limit and curve.upper(found) > delta):
                found = max(found, curve.smallest_safe(delta, limit))
        return found

    def approximate_delta(self, epsilon: float) -> float:
        """Mostly close below both directions, in a tenth of the time of `epsilon`: nothing is certified."""
        if epsilon >= self.pure_epsilon:
            return self.failure
        rough = self.pairs.rougher if isinstance(self.pairs, CachedPairs) else self.pairs
        quick = self if rough is self.pairs else replace(self, pairs=rough)
        return max(curve.lower(epsilon) for curve in quick.curves)

    def _pick(self, enclosure: PairEnclosure) -> DominatingPair:
        return enclosure.pessimistic

    def among(self, costly: int) -> UpperProfile:
        """The same by a coarser table if there are many: they share the work of three, but each has a least part.

        Any number of atoms gives a valid bound.
        """
        fewer = max(KNOTS.least, self.atoms * KNOTS.together // max(costly, 1))
        return self if fewer >= self.atoms else replace(self, atoms=fewer)

    def at(self, direction: int, epsilons: Array) -> Array:
        """The curve of a direction at epsilon >= 0."""
        if np.size(epsilons) < _TABLE_FROM:
            values = _each(self.curves[-direction].sharp_upper, epsilons, falling=True)
        else:
            values = self._tables[-direction](np.ravel(epsilons)).reshape(np.shape(epsilons))
        return np.where(epsilons >= self.pure_epsilon, np.minimum(values, self.failure), values)

    @cached_property
    def _tables(self) -> tuple[Chords, ...]:
        return tuple(_tabulated(self))


@memoized
def _tabulated(profile: UpperProfile) -> tuple[Chords, ...]:
    """A table for each curve. An equal profile gets the tables that were made first."""
    knots = max(33, round(KNOTS.knots_per_root * math.sqrt(profile.atoms)))
    return tuple(Chords.of(profile._table_curve(direction), knots) for direction in range(len(profile.enclosures)))


class LowerProfile(TwoSided):
    """Values that mechanisms made of the optimistic pairs attain, each epsilon by one of its own, rounded down."""

    def epsilon_lower_bound(self, delta: float) -> float:
        """An epsilon at which delta is seen to be exceeded, close to the largest; 0 if there is none."""
        found = 0.0
        for curve in self.curves if delta > 0.0 else ():
            if found == 0.0 or curve.lower(found) > delta:
                found = max(found, curve.largest_unsafe(delta))
        return found

    def _pick(self, enclosure: PairEnclosure) -> DominatingPair:
        assert enclosure.optimistic is not None
        return enclosure.optimistic

    def at(self, direction: int, epsilons: Array) -> Array:
        """The curve of a direction at epsilon >= 0."""
        return _each(self.curves[-direction].lower, epsilons)


def _each(curve: Any, epsilons: Array, *, falling: bool = False) -> Array:
    """The curve at every epsilon, equal ones once. `falling`: a bound at one epsilon serves the larger ones too."""
    unique, back = np.unique(np.ravel(epsilons), return_inverse=True)
    values = np.array([curve(float(e)) for e in unique])
    return (np.minimum.accumulate(values) if falling else values)[back].reshape(np.shape(epsilons))


class _BestOf(TwoSided):
    """The best of K runs."""

    def _curve(self, direction: int) -> Bracketed:
        def cut(pieces: int) -> Atoms:
            return split_atoms(self._pick(self.pairs(pieces)[direction]), self.law, pieces)

        return Direction(cut, self.atoms, self.law)

    def _table_curve(self, direction: int) -> Bracketed:
        """Over fewer atoms, closer together where there is more mass."""
        wanted = max(16, round(KNOTS.pieces_per_root * math.sqrt(self.atoms)))

        def cut(levels: int) -> Atoms:
            pair = self._pick(self.pairs(max(self.atoms, KNOTS.finest))[direction])
            return split_atoms(merged_by_mass(pair, wanted), self.law, levels)

        return Direction(cut, max(16, round(KNOTS.levels_per_root * math.cbrt(self.atoms))), self.law)


@dataclass(frozen=True)
class BestOfProfile(_BestOf, UpperProfile):
    """The certified profile of the best of K runs of any mechanism that the pairs dominate."""

    pure_epsilon: float = math.inf
    failure: float = 0.0
    theorem: ClassVar[str] = "optimal accounting of the best of K runs"


@dataclass(frozen=True)
class BestOfLowerProfile(_BestOf, LowerProfile):
    """The profile of a best of K runs that some mechanism attains."""
