"""The game's privacy profile: the smallest value over the shifts of the threshold noise, and its convex minorant."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from dpselect.mechanisms.sparse_vector_game.game import QueryMoves, SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.mesh import Mesh, laplace_losses, pure_losses
from dpselect.mechanisms.sparse_vector_game.renyi import candidate_shifts, pairs_of, rough_epsilon
from dpselect.mechanisms.sparse_vector_game.values import game_values, limited_values
from dpselect.numerics.search import Array
from dpselect.privacy.losses.connect_the_dots import lower_hull
from dpselect.privacy.profile import SymmetricProfile

__all__ = ["GameProfile", "is_solvable"]


_LEAST, _MOST = 1e-6, 2.0
_MOST_POSITIVES = 1000
_LARGEST_LOSS = 300.0
_MOST_CELLS = 1 << 17
_MOST_SHIFTS, _NEAR = 14, 4
_MOST_PLAYED = 20_000
"""Queries times positives, at about half of the shifts together for which a game with a limit is solved."""
_RESOLVED = 1e-18
_FAR = 1e-8


def is_solvable(game: SparseVectorGame) -> bool:
    """Whether the game is solved: losses of 2e-6 to 4 for a positive, and at most 1000 positives."""
    return _LEAST <= game.query_rate <= _MOST and game.positives <= _MOST_POSITIVES


@lru_cache(maxsize=256)
def _solved(game: SparseVectorGame, moves: QueryMoves) -> tuple[float, ...]:
    """The shifts for which the game is solved: those that may be best and have few enough cells, or no loss at all."""
    few = _thinned(candidate_shifts(replace(game, queries=None), moves), _MOST_SHIFTS)
    if game.limited:  # divergences count queries one by one: they know the shift less well
        everything, near = game.shifts(moves), candidate_shifts(game, moves)
        first, last = everything.index(near[0]), everything.index(near[-1])
        queries = cast(int, game.queries)
        most = min(_MOST_PLAYED // (queries * min(game.positives, queries)), _MOST_SHIFTS)
        wide = everything[max(first - _NEAR, 0) : last + _NEAR + 1]
        few = tuple(sorted({*_thinned(wide, most), *_thinned(few, most)}))
    free = tuple(s for s in game.shifts(moves) if game.threshold_loss(moves, s) == 0.0)
    return tuple(s for s in few if _cells(game, moves, s) <= _MOST_CELLS) or free


def _thinned(shifts: tuple[float, ...], most: int) -> tuple[float, ...]:
    return shifts[:: -(-len(shifts) // most)]


def _cells(game: SparseVectorGame, moves: QueryMoves, shift: float) -> float:
    drawn = 1 if game.restarts else game.thresholds
    loss = drawn * game.threshold_loss(moves, shift)
    return (_reach(game, moves, shift) + loss + game.release_epsilon) / game.mesh


def _reach(game: SparseVectorGame, moves: QueryMoves, shift: float) -> float:
    """How far epsilons are kept: where hardly any delta is left, or no loss."""
    place = game.shifts(moves).index(shift)
    return min(float(rough_epsilon(game, moves, _RESOLVED)[place]), game.pure_epsilon, _LARGEST_LOSS)


@lru_cache(maxsize=64)
def _deltas(game: SparseVectorGame, moves: QueryMoves, shift: float) -> Array:
    """A bound on delta at epsilon = 0, mesh, 2 mesh, ... with one shift of the threshold noise."""
    place = game.shifts(moves).index(shift)
    width, reach = game.mesh, _reach(game, moves, shift)
    loss = game.threshold_loss(moves, shift)
    drawn = laplace_losses(loss, width)
    release = pure_losses(game.release_epsilon, width) if game.release_epsilon > 0.0 else None
    between = [
        distribution
        for distribution in (drawn if game.restarts and loss > 0.0 else None, release)
        if distribution is not None
    ]
    first = drawn
    for _ in range(0 if game.restarts else game.thresholds - 1):
        first = first.convolve(drawn)
    above = min(reach, float(rough_epsilon(game, moves, _FAR)[place]))
    mesh = Mesh.between(-reach - first.reach * width, above + first.reach * width, width)
    pairs = pairs_of(game, moves, shift)
    if game.limited:
        values = limited_values(mesh, pairs, game.positives, cast(int, game.queries))
    else:
        values = game_values(mesh, pairs, game.positives, between=between, last=release)
    at = first.expected(mesh, values)[: 1 - mesh.first][::-1]
    return np.minimum.accumulate(at * (1.0 + 2.0**-40))


@dataclass(frozen=True)
class GameProfile(SymmetricProfile):
    """The privacy profile of a sparse vector with any number of queries, each chosen after the answers before it.

    Attained without noise on the threshold. Source: docs/theory/sparse-vector.md, Theorems 1 and 2.
    """

    game: SparseVectorGame
    theorem: str = "sparse vector, as a game of coins"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded up: chords in exp(epsilon) between the points that are known."""
        known, width = _least(self.game), self.game.mesh
        asked = np.asarray(epsilons, dtype=np.float64) * (1.0 - 2.0**-50)
        place = np.minimum(np.floor(asked / width), known.size - 2.0)
        share = np.clip(np.expm1(asked - place * width) / math.expm1(width) - 2.0**-40, 0.0, 1.0)
        left = place.astype(np.int64)
        return np.asarray(known[left] * (1.0 - share) + known[left + 1] * share) * (1.0 + 2.0**-40)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon with one shift of the threshold noise. The search for the best one starts near it."""
        return max(_best_epsilon(self.game, one, float(delta)) for one in self.game.query_moves)


@lru_cache(maxsize=64)
def _least(game: SparseVectorGame) -> Array:
    """The convex minorant of the best shift's delta at each point: for monotonic queries of the worse direction."""
    found = []
    for one in game.query_moves:
        least = np.min(_of_one_length([_deltas(game, one, shift) for shift in _solved(game, one)]), axis=0)
        found.append(lower_hull(np.asarray(np.arange(least.size) * game.mesh), np.asarray(least, dtype=np.float64)))
    return np.max(_of_one_length(found), axis=0)


def _of_one_length(tables: list[Array]) -> list[Array]:
    """The tables at the length of the longest: one that ends early continues with its last value."""
    longest = max(map(len, tables))
    return [np.pad(table, (0, longest - len(table)), mode="edge") for table in tables]


@lru_cache(maxsize=1024)
def _best_epsilon(game: SparseVectorGame, moves: QueryMoves, delta: float) -> float:
    shifts = _solved(game, moves)
    rough = rough_epsilon(game, moves, min(max(delta, 1e-300), 0.5))
    everything = game.shifts(moves)
    order = [float(rough[everything.index(s)]) for s in shifts]
    start = int(np.argmin(order))
    first = best = _epsilon(game, moves, shifts[start], delta)
    for step in (-1, 1):
        if best < first:  # it falls to one side only
            break
        place = start + step
        while 0 <= place < len(shifts) and (found := _epsilon(game, moves, shifts[place], delta)) < best:
            best, place = found, place + step
    return best


def _epsilon(game: SparseVectorGame, moves: QueryMoves, shift: float, delta: float) -> float:
    """The first point of the table at which delta is reached, or a point on the chord before it. Rounded up."""
    table, width = _deltas(game, moves, shift), game.mesh
    reached = np.flatnonzero(table <= delta)
    if not reached.size:
        return math.inf
    last = int(reached[0])
    if last == 0:
        return 0.0
    before, after = float(table[last - 1]), float(table[last])
    share = (before - delta) / (before - after) * (1.0 + 2.0**-40)
    return min((last - 1) * width + math.log1p(min(share, 1.0) * math.expm1(width)), last * width) * (1.0 + 2.0**-40)
