"""The Renyi divergence of a session: one closed form for every positive, which adds up (T4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms.sparse_vector_game.coins import Coins, geometric_coins, laplace_coins
from dpselect.mechanisms.sparse_vector_game.game import Orientation, SparseVectorGame
from dpselect.numerics import ROUND_UP
from dpselect.privacy.mechanisms.laplace import LaplaceRenyi
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.renyi import SEARCH_ORDERS

__all__ = ["GameRenyi", "coins_of", "divergences", "likely_shifts", "rough_epsilon"]

Array = NDArray[np.float64]


def coins_of(game: SparseVectorGame, orientation: Orientation, shift: float) -> Coins:
    """The vertices around the coins that a query may be when the threshold noise moves by `shift`."""
    moves = orientation.moves(shift)
    if game.noise == "geometric":
        return geometric_coins(game.query_rate, moves, game.steps)
    return laplace_coins(game.query_rate, moves)


def log_kappa(coins: Coins, orders: Array) -> Array:
    """log of kappa(a): what one positive multiplies the moment exp((a - 1) D_a) by at most; inf where it has no bound.

    kappa = max over the coins of S (S/S')^(a-1) / (1 - F (F/F')^(a-1)), and at least 1. With S + F = 1 the quotient is
    exp((a-1) log S/S') / (1 - F/S expm1((a-1) log F/F')), which keeps its digits near a = 1.
    """
    order = np.asarray(orders, dtype=np.float64)[..., None] - 1.0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        falls = coins.negative / coins.positive * np.expm1(order * coins.negative_loss)
        each = np.where(falls < 1.0, order * coins.positive_loss - np.log1p(-falls), np.inf)
    return np.asarray(np.max(each * ROUND_UP + 1e-15, axis=-1, initial=0.0))


def divergences(game: SparseVectorGame, orientation: Orientation, shift: float, orders: Array) -> Array:
    """A bound on the Renyi divergence of the game with one shift of the threshold noise."""
    orders = np.asarray(orders, dtype=np.float64)
    total = game.positives * log_kappa(coins_of(game, orientation, shift), orders) / (orders - 1.0)
    loss = game.threshold_loss(orientation, shift)
    if loss > 0.0:
        total = total + (game.positives if game.restarts else game.thresholds) * LaplaceRenyi(loss)(orders)
    if game.release_epsilon > 0.0:
        total = total + game.positives * RandomizedResponseRenyi(game.release_epsilon)(orders)
    return np.asarray(total * ROUND_UP)


@dataclass(frozen=True)
class GameRenyi:
    """The Renyi curve of a sparse vector, for any number of queries: the best shift at each order.

    exp((a - 1) x) is multiplied by kappa(a) for each positive, whatever is asked.
    Source: docs/theory/sparse-vector.md, Theorem 4.
    """

    game: SparseVectorGame
    theorem: str = "sparse vector: Renyi divergence of each positive"

    def __call__(self, orders: Array) -> Array:
        game = self.game
        found = [
            np.min([divergences(game, one, shift, orders) for shift in game.shifts(one)], axis=0)
            for one in game.orientations
        ]
        return np.asarray(np.max(found, axis=0))


@lru_cache(maxsize=256)
def _at_search_orders(game: SparseVectorGame, orientation: Orientation) -> Array:
    return np.array([divergences(game, orientation, s, SEARCH_ORDERS) for s in game.shifts(orientation)])


def rough_epsilon(game: SparseVectorGame, orientation: Orientation, delta: float) -> Array:
    """For each shift about the epsilon at this delta: only what to look at is chosen by it."""
    values = _at_search_orders(game, orientation)
    at = (np.log(1.0 / delta) - np.log(SEARCH_ORDERS)) / (SEARCH_ORDERS - 1.0) + np.log1p(-1.0 / SEARCH_ORDERS)
    return np.asarray(np.maximum(np.min(values + at, axis=1), 0.0))


@lru_cache(maxsize=256)
def likely_shifts(game: SparseVectorGame, orientation: Orientation) -> tuple[float, ...]:
    """The shifts from the smallest to the largest that is best at some delta, as far as Renyi divergences tell."""
    best = [int(np.argmin(rough_epsilon(game, orientation, 10.0**-power))) for power in range(1, 16, 2)]
    return game.shifts(orientation)[min(best) : max(best) + 1]
