"""The guarantee of a sparse vector as a game: pure, Renyi, profile, and what is attained."""

from __future__ import annotations

from dataclasses import asdict, replace

from dpselect.mechanisms.sparse_vector_game.attained import attained_profile
from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.profile import GameProfile, playable
from dpselect.mechanisms.sparse_vector_game.renyi import GameRenyi
from dpselect.numerics import ROUND_UP
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.adjacency import parse_adjacency

__all__ = ["game_guarantee"]


def game_guarantee(
    game: SparseVectorGame,
    *,
    pure_epsilon: float | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """What a sparse vector promises, for any number of queries, each chosen after the answers before it.

    At delta 0 the pure price (none without noise on the threshold); at any other delta the smallest of that, of the
    Renyi divergence of its positives, and of the game's value where `playable` says that it is solved. Rounded up.
    Statement and proof: docs/theory/sparse-vector.md; the pure price: Lyu, Su, Li 2017, Theorems 4 and 5.

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
        profile=GameProfile(game if game.limited else replace(game, queries=None)) if playable(game) else None,
        lower_profile=attained_profile(game),
    )
