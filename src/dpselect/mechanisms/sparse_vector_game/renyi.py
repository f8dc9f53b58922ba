"""The Renyi divergence of a session: one closed form for every positive, which adds up (T4)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from dpselect.mechanisms.sparse_vector_game.game import QueryMoves, SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.query_pairs import QueryPairs, geometric_pairs, laplace_pairs
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.mechanisms.laplace import laplace_divergence
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.renyi import SEARCH_ORDERS

__all__ = ["GameRenyi", "GameUsed", "candidate_shifts", "divergences", "pairs_of", "rough_epsilon"]

_BLOCK = 1 << 18
"""Numbers in one table of pairs by orders."""


def pairs_of(game: SparseVectorGame, moves: QueryMoves, shift: float) -> QueryPairs:
    """The vertices around the pairs that a query may be when the threshold noise moves by `shift`."""
    interval = moves.interval(shift)
    if game.noise == "geometric":
        return geometric_pairs(game.query_rate, interval, game.steps)
    return laplace_pairs(game.query_rate, interval)


def log_kappa(pairs: QueryPairs, orders: Array) -> Array:
    """log of kappa(a): the most that one positive multiplies the moment exp((a - 1) D_a) by, inf if it has no bound.

    kappa = max over the pairs of S (S/S')^(a-1) / (1 - F (F/F')^(a-1)), and at least 1. With S + F = 1 the quotient is
    exp((a-1) log S/S') / (1 - F/S expm1((a-1) log F/F')), which keeps its digits near a = 1. Pairs are in the last
    axis, orders in a new one before it.
    """
    order = np.asarray(orders, dtype=np.float64)[:, None] - 1.0
    p, p_loss, s, s_loss = (part[..., None, :] for part in pairs)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        falls = p / s * np.expm1(order * p_loss)
        each = np.where(falls < 1.0, order * s_loss - np.log1p(-falls), np.inf)
    return np.asarray(np.max(each * ROUND_UP + 1e-15, axis=-1, initial=0.0))


def log_moment(pairs: QueryPairs, orders: Array) -> Array:
    """log of the largest moment exp((a - 1) D_a) of one coin: the factor of a query, regardless of its answer."""
    order = np.asarray(orders, dtype=np.float64)[:, None] - 1.0
    p, p_loss, s, s_loss = (part[..., None, :] for part in pairs)
    with np.errstate(over="ignore"):
        grown = s * np.expm1(order * s_loss) + p * np.expm1(order * p_loss)
    return np.asarray(np.max(np.log1p(grown) * ROUND_UP + 1e-15, axis=-1, initial=0.0))


@lru_cache(maxsize=256)
def _pairs_of_shifts(game: SparseVectorGame, moves: QueryMoves) -> QueryPairs:
    """The pairs of every shift, one row each. Rows end with pairs that reveal nothing."""
    rows = [pairs_of(game, moves, shift) for shift in game.shifts(moves)]
    shape = len(rows), max(row.negative.size for row in rows)
    found = QueryPairs(np.zeros(shape), np.zeros(shape), np.ones(shape), np.zeros(shape))
    for place, row in enumerate(rows):
        for whole, part in zip(found, row, strict=True):
            whole[place, : part.size] = part
    return found


class _Parts(NamedTuple):
    """Bounds on divergences, a row for each shift: what is paid once, for each positive, and for everything."""

    once: Array
    each: Array
    whole: Array


def _parts(game: SparseVectorGame, moves: QueryMoves, orders: Array) -> _Parts:
    pairs = _pairs_of_shifts(game, moves)
    step = max(_BLOCK // pairs.negative.size, 1)
    blocks = [orders[i : i + step] for i in range(0, max(orders.size, 1), step)]
    losses = np.array([game.threshold_loss(moves, shift) for shift in game.shifts(moves)])
    drawn = laplace_divergence(losses[:, None], orders)
    once = np.zeros_like(drawn) if game.restarts else game.thresholds * drawn
    beside = np.asarray(drawn if game.restarts else np.zeros_like(drawn))
    if game.release_epsilon > 0.0:
        beside = beside + RandomizedResponseRenyi(game.release_epsilon)(orders)
    each = beside + np.concatenate([log_kappa(pairs, block) for block in blocks], axis=1) / (orders - 1.0)
    whole = once + game.positives * each
    if game.queries is not None:
        asked = np.concatenate([log_moment(pairs, block) for block in blocks], axis=1) / (orders - 1.0)
        whole = np.minimum(whole, once + game.queries * asked + game.positives * beside)
    return _Parts(once, each, whole)


def divergences(game: SparseVectorGame, moves: QueryMoves, orders: Array) -> Array:
    """A bound on the Renyi divergence of the game at each of a row of orders, a row for each shift."""
    return np.asarray(_parts(game, moves, orders).whole * ROUND_UP)


@dataclass(frozen=True)
class GameRenyi:
    """The Renyi curve of a sparse vector: the best shift at each order.

    exp((a - 1) x) is multiplied by kappa(a) for each positive, no matter what is asked, or by a coin's moment for each
    query. Source: docs/theory/sparse-vector.md, Theorem 4.
    """

    game: SparseVectorGame
    theorem: str = "sparse vector: Renyi divergence of each positive"

    def __call__(self, orders: Array) -> Array:
        flat = np.ravel(np.asarray(orders, dtype=np.float64))
        found = [np.min(divergences(self.game, one, flat), axis=0) for one in self.game.query_moves]
        return np.asarray(np.max(found, axis=0)).reshape(np.shape(orders))


@dataclass(frozen=True)
class GameUsed:
    """The Renyi divergence that a finished session has used: the threshold and the positives it gave.

    For `OutputGuarantee.used`, and a session during which nothing else runs. At every order the shift is the one that
    the session was reserved at. If a limit of queries was the smaller bound all of it is used: which bound counts is
    fixed in advance. Source: docs/theory/sparse-vector.md, Theorem 4 (refunds).
    """

    game: SparseVectorGame

    def __call__(self, cell: Hashable, orders: Array) -> Array:
        """The divergence at each of a row of orders, at most that of `GameRenyi`.

        After so many positives, or (positives, negatives): nothing for a session that was asked nothing.
        """
        if cell == (0, 0):
            return np.zeros(len(orders))
        positives = cast(int, cell[0] if isinstance(cell, tuple) else cell)
        found = []
        for one in self.game.query_moves:
            parts = _parts(self.game, one, orders)
            best = np.argmin(parts.whole, axis=0)[None, :]
            once, each, whole = (np.take_along_axis(part, best, 0)[0] for part in parts)
            by_positives = once + self.game.positives * each <= whole
            found.append(np.where(by_positives, once + positives * each, whole))
        return np.asarray(np.max(found, axis=0) * ROUND_UP)


@lru_cache(maxsize=256)
def _at_search_orders(game: SparseVectorGame, moves: QueryMoves) -> Array:
    return divergences(game, moves, SEARCH_ORDERS)


def rough_epsilon(game: SparseVectorGame, moves: QueryMoves, delta: float) -> Array:
    """For each shift about the epsilon at this delta: only what to look at is chosen by it."""
    values = _at_search_orders(game, moves)
    at = (np.log(1.0 / delta) - np.log(SEARCH_ORDERS)) / (SEARCH_ORDERS - 1.0) + np.log1p(-1.0 / SEARCH_ORDERS)
    return np.asarray(np.maximum(np.min(values + at, axis=1), 0.0))


@lru_cache(maxsize=256)
def candidate_shifts(game: SparseVectorGame, moves: QueryMoves) -> tuple[float, ...]:
    """The shifts from the smallest to the largest that is best at some delta, as far as Renyi divergences tell."""
    best = [int(np.argmin(rough_epsilon(game, moves, 10.0**-power))) for power in range(1, 16, 2)]
    return game.shifts(moves)[min(best) : max(best) + 1]
