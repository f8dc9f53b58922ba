"""The guarantee of a sparse vector as a game: pure, Renyi, profile, and what is attained."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.mesh import Mesh
from dpselect.mechanisms.sparse_vector_game.profile import GameProfile, is_solvable
from dpselect.mechanisms.sparse_vector_game.query_pairs import gaussian_pairs
from dpselect.mechanisms.sparse_vector_game.renyi import GameRenyi
from dpselect.mechanisms.sparse_vector_game.values import limited_values
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.below import AttainedPair, parts_below
from dpselect.privacy.losses.pairs import RandomizedResponsePairs
from dpselect.privacy.losses.pld import suitable_interval
from dpselect.privacy.profile import GaussianProfile, MinimumProfile, PrivacyProfile, TabulatedProfile

__all__ = ["game_guarantee", "gaussian_game_guarantee"]

_MOST = 3000
"""Queries times positives up to which a game with Gaussian noise is solved."""


def game_guarantee(
    game: SparseVectorGame,
    *,
    pure_epsilon: float | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """The guarantee of a sparse vector, for any number of queries, each chosen after the answers before it.

    At delta 0 it is the pure price (none without noise on the threshold). At any other delta it is the smallest of
    that, of the Renyi divergence of its positives, and of the game's value where `is_solvable` says that it is solved.
    Rounded up. Statement and proof: docs/theory/sparse-vector.md. The pure price: Lyu, Su, Li 2017, Theorems 4 and 5.

    Args:
        game: the noises and the number of positives.
        pure_epsilon: the pure price where the caller knows it exactly.
        adjacency: which data sets are neighbours.

    >>> noisy = SparseVectorGame(threshold_rate=0.03, query_rate=0.025, positives=100)
    >>> round(game_guarantee(noisy).epsilon(delta=1e-6), 3), round(game_guarantee(noisy).epsilon(delta=0), 3)
    (1.584, 5.03)
    """
    pure = game.pure_epsilon * ROUND_UP if pure_epsilon is None else pure_epsilon
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="sparse vector",
        terms={"mechanism": "sparse vector", **asdict(game)},
        pure_epsilon=pure,
        renyi_curve=GameRenyi(game),
        profile=GameProfile(game if game.limited else replace(game, queries=None)) if is_solvable(game) else None,
        lower_profile=_attained_profile(game),
    )


def _attained_profile(game: SparseVectorGame) -> PrivacyProfile | None:
    """The profile that queries far below their thresholds attain, if half of them move up and half down.

    Randomised response with loss `query_rate` (half of it for monotonic queries), once for each positive.

    Ask two queries in turn until one is positive, so far below the threshold that every probability is a tail of the
    noise. On the neighbour one has moved up by a sensitivity and the other down (or one has moved, for monotonic ones).
    Regardless of the noise on the threshold, the odds that the one rather than the other is positive have moved by the
    factor exp(2 query_rate). With their thresholds a sensitivity apart they are exp(query_rate) and one over it. None
    with a limit of queries, which far thresholds do not have, with other noise, and where the losses have no mesh.
    Source: docs/theory/sparse-vector.md, Theorem 5.
    """
    if game.noise != "laplace" or game.queries is not None:
        return None
    loss = game.query_rate * (0.5 if game.monotonic else 1.0) * (1.0 - 2.0**-50)
    one = AttainedPair(RandomizedResponsePairs(loss))
    return parts_below([(one, game.positives)], suitable_interval(None, game.positives * loss))


def gaussian_game_guarantee(
    *, noise_multiplier: float, positives: int, queries: int | None, adjacency: Adjacency | str = "add_or_remove_one"
) -> Guarantee:
    """The guarantee of a sparse vector with Gaussian noise of `noise_multiplier` sensitivities on its queries.

    For at most so many positives and queries, any noise on the threshold (or none) and queries that move anywhere.
    Never more than the composition of so many Gaussian mechanisms. Raises `ArgumentError` without a limit of queries:
    one positive far out then tells everything. Source: docs/theory/sparse-vector.md, Theorem 9.

    >>> round(gaussian_game_guarantee(noise_multiplier=20.0, positives=3, queries=100).epsilon(delta=1e-6), 1)
    1.2
    """
    scale = number("noise_multiplier", noise_multiplier, at_least=1.0, at_most=1e3, rounding="down")
    most = integer("positives", positives, at_least=1)
    if queries is None:
        raise ArgumentError("queries must be given: Gaussian noise protects no unlimited number of them")
    asked = integer("queries", queries, at_least=1)
    if asked * min(most, asked) > _MOST:
        raise ArgumentError(f"queries times positives must be at most {_MOST}: the game is not solved for more")
    whole = gaussian(noise_multiplier=scale / math.sqrt(asked), adjacency=parse_adjacency(adjacency))
    shift, trivial = 1.0 / scale, math.sqrt(asked) / scale
    width = max(shift / 20.0, trivial / 2000.0)
    reach = min(0.5 * trivial * trivial + 6.0 * trivial, 6000.0 * width)
    mesh = Mesh.between(-reach, reach, width)
    pairs, lost = gaussian_pairs(shift)
    values = limited_values(mesh, pairs, most, asked, lost)
    deltas = np.minimum.accumulate(values[: 1 - mesh.first][::-1])
    table = TabulatedProfile(
        tuple((np.arange(len(deltas)) * width).tolist()),
        tuple((np.minimum(deltas, 1.0)).tolist()),
        theorem="sparse vector with Gaussian noise, as a game of coins",
    )
    return Guarantee(
        adjacency=whole.adjacency,
        theorem="sparse vector with Gaussian noise",
        terms={"mechanism": "gaussian sparse vector", "noise_multiplier": scale, "positives": most, "queries": asked},
        renyi_curve=whole.renyi_curve,
        profile=MinimumProfile((table, GaussianProfile(trivial * (1.0 + 1e-12)))),
    )
