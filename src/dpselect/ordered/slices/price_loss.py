"""Privacy losses of a Reorder-Slice-Compute run, one query after another.

A run against the proof's holder has two ways to begin. It fails and shows two slices that differ by a swap, then begins
again. Or it synchronises, shows two slices that differ by an insertion, and is done. So the pair for j queries is a sum
of two products of finite pairs. Each component is replaced by a finite pair that dominates it, and the sum is coarsened
upwards if it has too many point masses. Both are post-processings turned round, so the result dominates the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.caching import CopiedByFields
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.ordered.slices.synchronisation import Synchronisation, synchronisation
from dpselect.privacy import Guarantee
from dpselect.privacy.losses.discretise import DominatingPair, coarsen, loss_grid
from dpselect.privacy.profile import PrivacyProfile, extend

__all__ = ["SlicePairProfile", "slice_pair"]

_ATOMS = 6000
_COMPONENT_ATOMS = 64
_NEGLIGIBLE = math.log(1e-18)
_MERGED = 1e-10


@dataclass(frozen=True)
class _Atoms:
    """Finite losses with their masses. The masses that only one side has are what is missing to one."""

    losses: Array
    upper: Array
    lower: Array

    @classmethod
    def of(cls, pair: DominatingPair) -> _Atoms:
        kept = np.isfinite(pair.losses) & ((pair.upper > 0.0) | (pair.lower > 0.0))
        return cls(pair.losses[kept], pair.upper[kept], pair.lower[kept])

    def times(self, other: _Atoms) -> _Atoms:
        return _Atoms(
            np.add.outer(self.losses, other.losses).ravel(),
            np.multiply.outer(self.upper, other.upper).ravel(),
            np.multiply.outer(self.lower, other.lower).ravel(),
        )

    def pair(self) -> DominatingPair:
        order = np.argsort(self.losses, kind="stable")
        upper, lower = self.upper[order], self.lower[order]
        return DominatingPair(
            losses=np.concatenate(([-np.inf], self.losses[order], [np.inf])),
            upper=np.concatenate(([0.0], upper, [max(0.0, 1.0 - float(np.sum(upper)))])),
            lower=np.concatenate(([max(0.0, 1.0 - float(np.sum(lower)))], lower, [0.0])),
        )

    def merged(self) -> _Atoms:
        """Losses that are equal up to rounding put together: what that moves is less than `_MERGED`."""
        order = np.argsort(self.losses, kind="stable")
        losses, upper, lower = self.losses[order], self.upper[order], self.lower[order]
        starts = np.flatnonzero(np.diff(losses, prepend=-np.inf) > 1e-13)
        return _Atoms(losses[starts], np.add.reduceat(upper, starts), np.add.reduceat(lower, starts))


def _component(guarantee: Guarantee) -> _Atoms:
    enclosure, _ = guarantee.pair_source()(_COMPONENT_ATOMS)
    return _Atoms.of(enclosure.pessimistic)


def slice_pair(sync: Synchronisation, insertion: Guarantee, swap: Guarantee, slices: int | None) -> DominatingPair:
    """A pair (the larger data set, the smaller one) that dominates a run of at most `slices` slices (None: any number).

    If so many failures happen that their probability is below 1e-18, all that is left counts as revealed.
    """
    inserted, swapped = _component(insertion), _component(swap)
    upper, lower, losses = np.array(sync.upper), np.array(sync.lower), np.full(3, sync.epsilon)
    held = lower > 0.0  # the first outcome may have no mass
    losses[held] = np.log(upper[held] / lower[held])
    synchronised = inserted.times(_Atoms(losses, upper, lower))
    failed = swapped.times(_Atoms(np.array([sync.epsilon]), np.array([sync.fail_upper]), np.array([sync.fail_lower])))
    rounds = math.ceil(_NEGLIGIBLE / math.log(sync.fail_upper))
    nothing = np.zeros(0)
    found = _Atoms(nothing, nothing, nothing)
    if slices is not None and slices <= rounds:
        rounds, found = slices, _Atoms(np.zeros(1), np.ones(1), np.ones(1))
    for _ in range(rounds):
        again = failed.times(found)
        found = _Atoms(
            np.concatenate((again.losses, synchronised.losses)),
            np.concatenate((again.upper, synchronised.upper)),
            np.concatenate((again.lower, synchronised.lower)),
        ).merged()
        if found.losses.size > _ATOMS:
            pair = found.pair()
            found = _Atoms.of(coarsen(pair, loss_grid(pair, _ATOMS // 3)).pessimistic)
    return found.pair()


@dataclass(frozen=True)
class SlicePairProfile(CopiedByFields, PrivacyProfile):
    """The privacy profile of one run, from its numeric losses, built when first asked for.

    Source: docs/theory/reorder-slice-compute.md, Theorem C.
    """

    slice_epsilon: float
    insertion: Guarantee
    swap: Guarantee
    slices: int | None
    theorem: str = "Reorder-Slice-Compute, privacy losses of the holder's transcript (Cohen et al. 2022, Lemma 2.5)"

    @cached_property
    def pair(self) -> DominatingPair:
        """(Larger data set, smaller one)."""
        return slice_pair(synchronisation(self.slice_epsilon), self.insertion, self.swap, self.slices)

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        pair = self.pair
        return self._up(extend(epsilons - _MERGED, pair.hockey_stick, pair.swapped().hockey_stick))

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        pair = self.pair
        return self._up(extend(epsilons - _MERGED, pair.swapped().hockey_stick, pair.hockey_stick))

    @staticmethod
    def _up(values: Array) -> Array:
        """Sums of up to a few thousand masses, in a few hundred rounds, lose less than 1e-11 of themselves."""
        return np.asarray(values * ROUND_UP * (1.0 + 1e-11))
