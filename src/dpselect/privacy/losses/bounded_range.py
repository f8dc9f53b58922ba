"""Profiles of mechanisms of bounded range: of one, and of several as the value of a game."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from dpselect.caching import CopiedByFields
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.losses.pld import LossSource, profile_loss
from dpselect.privacy.losses.range_game import (
    LossMesh,
    Ranges,
    chord_above,
    game_above,
    game_below,
    mesh_of,
    step_below,
)
from dpselect.privacy.profile import SymmetricProfile

__all__ = [
    "BoundedRangeProfile",
    "RangeGameLowerProfile",
    "RangeGameProfile",
    "RepeatedRangeLowerProfile",
    "games",
    "lower_game",
]

_MOST_SIZES: Final = 8
"""With more ranges than that each has a game of its own, since many games take too long."""
_MOST_STATES: Final = 16
"""Of a game with different ranges: which mechanisms are left."""
_PAIRS: Final = 66
_LEAST_RATIO: Final = 0.5
"""Of two ranges of one game: a mesh that divides the larger one well also divides the smaller one."""


@dataclass(frozen=True)
class BoundedRangeProfile(SymmetricProfile):
    """The largest hockey-stick divergence of a pair with range r: (exp(r/2) - exp(e/2))^2 / (exp(r) - 1).

    Only a mechanism of this range may have it as the profile of its guarantee: `compose` takes the range from it.

    Proof. With R = dP/dQ in [exp(t-r), exp(t)] and E_Q R = 1, E_Q[(R - exp(e))_+] is convex in R, so a two-point R is
    worst. It has P(R = exp(t)) = (exp(r) - exp(t))/(exp(r) - 1). Hence the divergence (exp(r) - exp(t)) (1 - exp(e-t))
    / (exp(r) - 1), largest over t at t = (r + e)/2. Two candidates with suitable scores attain each of these pairs, so
    this is the exact profile of the exponential mechanism.
    Source: Dong, Durfee, Rogers 2020, Lemma 3.2 (the two-point pairs).
    """

    epsilon0: float
    theorem: str = "bounded range (Dong, Durfee, Rogers 2020)"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        if self.epsilon0 == 0.0:
            return np.zeros(np.shape(epsilons))
        gap = -np.expm1(np.minimum(epsilons - self.epsilon0, 0.0) / 2.0)
        return np.asarray(gap * gap / -math.expm1(-self.epsilon0) * ROUND_UP)

    def below(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down."""
        return self.at(epsilons) * (1.0 - 4e-12)


@lru_cache(maxsize=64)
def _solved(ranges: Ranges, mesh: LossMesh) -> Array:
    """The values of a game, kept: a search for the noise of other parts asks for the same one again and again."""
    return game_above(ranges, mesh)


@dataclass(frozen=True)
class RangeGameProfile(SymmetricProfile):
    """An upper bound on the profile of mechanisms of some ranges, run in any order that outputs may decide."""

    ranges: Ranges
    mesh: LossMesh
    theorem: str = "adaptive composition of bounded range (Dong, Durfee, Rogers 2020)"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded up."""
        return chord_above(_solved(self.ranges, self.mesh), self.mesh, np.asarray(epsilons, dtype=np.float64))


@dataclass(frozen=True)
class RangeGameLowerProfile(CopiedByFields, SymmetricProfile):
    """A lower profile of mechanisms of some ranges, the smallest first. Each choice of t follows the outputs so far."""

    ranges: Ranges
    mesh: LossMesh

    @cached_property
    def _solved(self) -> tuple[int, Array]:
        """The range of the mechanism that runs first, in cells, and what the others attain."""
        cells = [(math.floor(size / self.mesh.width), count) for size, count in self.ranges]
        (first, count), *others = sorted(move for move in cells if move[0] > 0)
        return first, game_below([*others[::-1], (first, count - 1)], self.mesh)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down."""
        mesh, (first, values) = self.mesh, self._solved
        end = mesh.cells * mesh.width
        asked = np.minimum(np.asarray(epsilons, dtype=np.float64), end)
        index = np.floor(asked / mesh.width).astype(np.int64)
        found = step_below(values, first, mesh, (index, np.maximum(asked - index * mesh.width, 0.0)))
        return np.asarray(np.where(asked < end, found, 0.0))


@dataclass(frozen=True)
class RepeatedRangeLowerProfile(SymmetricProfile):
    """A lower profile of mechanisms of one range that all have one pair, the best of some at each epsilon."""

    epsilon0: float
    count: int

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down."""
        from scipy.stats import binom  # takes half a second to import

        asked = np.asarray(epsilons, dtype=np.float64)[..., None]
        times = np.arange(self.count + 1)
        best = np.zeros(asked.shape[:-1])
        if self.epsilon0 == 0.0:
            return best
        for t in self.epsilon0 * np.linspace(0.0, 1.0, _PAIRS)[1:-1]:
            p = math.expm1(t - self.epsilon0) / math.expm1(-self.epsilon0)
            losses = times * t - (self.count - times) * (self.epsilon0 - t)
            gains = -np.expm1(np.minimum(asked - losses, 0.0))
            best = np.maximum(best, gains @ binom.pmf(times, self.count, p))
        return np.asarray(best * (1.0 - 1e-11))


def games(sources: Sequence[tuple[LossSource, int]]) -> tuple[tuple[LossSource, int], ...]:
    """The same composition, with games in the place of mechanisms of bounded range.

    Each game has a dominating pair of its own, so games compose as other parts do. Mechanisms whose game would take too
    long stay as they are. Source: docs/theory/bounded-range.md, Theorem 2.
    """
    others, sizes = _by_range(sources)
    groups = list(_groups(sizes))
    return (*others, *(part for group in groups for part in _played(group, len(groups))))


def lower_game(sources: Sequence[tuple[LossSource, int]]) -> RangeGameLowerProfile | None:
    """The lower profile of a composition, or None if a part has no bounded range or the game would take too long."""
    others, sizes = _by_range(sources)
    mesh = None if others or not sizes else mesh_of(sizes, sum(count for _, count in sizes))
    if mesh is None:
        return None
    steps = round(sizes[0][0] / mesh.width)
    width = sizes[0][0] / steps * (1.0 - 1e-15)  # so that no range is above that of its mechanism
    return RangeGameLowerProfile(sizes, LossMesh(width, mesh.cells + 1))


def _by_range(sources: Sequence[tuple[LossSource, int]]) -> tuple[list[tuple[LossSource, int]], Ranges]:
    """The parts of other kinds, and the positive ranges from the largest down."""
    others: list[tuple[LossSource, int]] = []
    sizes: dict[float, int] = {}
    for source, count in sources:
        if isinstance(source, profile_loss) and isinstance(source.profile, BoundedRangeProfile):
            size = source.profile.epsilon0
            sizes[size] = sizes.get(size, 0) + count
        else:
            others.append((source, count))
    return others, tuple(sorted(((r, n) for r, n in sizes.items() if r > 0.0), reverse=True))


def _groups(sizes: Ranges) -> Iterator[Ranges]:
    most = _MOST_STATES if len(sizes) <= _MOST_SIZES else 0
    group: list[tuple[float, int]] = []
    for size, count in sizes:
        states = math.prod(n + 1 for _, n in [*group, (size, count)])
        if group and (states > most or size < _LEAST_RATIO * group[0][0]):
            yield tuple(group)
            group = []
        group.append((size, count))
    if group:
        yield tuple(group)


def _played(group: Ranges, groups: int) -> list[tuple[LossSource, int]]:
    """The game of a group, whose mesh is as fine as so many groups allow."""
    moves = math.prod(count + 1 for _, count in group) * (2 * len(group) - 1) * groups
    mesh = mesh_of(group, moves) if sum(count for _, count in group) > 1 else None
    if mesh is None:
        return [(profile_loss(BoundedRangeProfile(size)), count) for size, count in group]
    return [(profile_loss(RangeGameProfile(group, mesh)), 1)]
