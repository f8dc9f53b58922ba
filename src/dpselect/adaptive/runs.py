"""Sparse vectors that run one after another, each up to its first positive: what all of them tell of a row."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.price import game_guarantee
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee

__all__ = [
    "response_trade_off",
    "response_vertices",
    "runs_guarantee",
    "runs_trade_off",
    "runs_trade_off_inverse",
]

_LINES, _GRID = 600, 64
_FAR = 10.0
"""Lines are drawn up to the epsilon of so many deviations of randomised responses."""


def response_trade_off(epsilon: float, times: int, probabilities: Array) -> Array:
    """h(q) of randomised response at `epsilon` done `times` times, exactly: the Neyman-Pearson power. Rounded up.

    Dominates every adaptive composition of as many epsilon-private mechanisms (Kairouz, Oh, Viswanath 2015).

    >>> response_trade_off(0.5, 1, np.array([0.1])).round(6).tolist()
    [0.164872]
    """
    level, power = response_vertices(epsilon, times)
    return np.minimum(1.0, np.interp(probabilities, level, power) * (1.0 + 1e-9) + 1e-300)


def response_vertices(epsilon: float, times: int) -> tuple[Array, Array]:
    """The corners of the trade-off curve: tails of two binomial laws."""
    from scipy.stats import binom  # takes half a second to import

    truth = 1.0 / (1.0 + math.exp(-epsilon))
    counts = np.arange(times, -1, -1, dtype=np.float64)
    level, power = binom.sf(counts, times, 1.0 - truth), binom.sf(counts, times, truth)
    return np.append(level, 1.0), np.append(power, 1.0)


def runs_guarantee(
    epsilon_threshold: float, epsilon_queries: float, times: int, *, release_epsilon: float = 0.0
) -> Guarantee:
    """The guarantee of `times` runs of a sparse vector with these epsilons for a replaced row.

    Each has noise of its own on its threshold, ends with its first positive, and may be followed by something
    `release_epsilon`-private. Source: docs/theory/sparse-vector.md, Theorem 1 (fresh noise after each positive).

    >>> runs_guarantee(0.03, 0.05, 100).epsilon(1e-6) < 1.65
    True
    """
    game = SparseVectorGame(
        threshold_rate=epsilon_threshold,
        query_rate=epsilon_queries / 2.0,
        positives=times,
        restarts=True,
        release_epsilon=release_epsilon,
    )
    return game_guarantee(game, adjacency=Adjacency.REPLACE_ONE)


def _lines(epsilon_threshold: float, epsilon_queries: float, times: int) -> tuple[Array, Array]:
    """exp(epsilon) and delta(epsilon) at some epsilons: each pair is a line above the trade-off curve.

    Of epsilons that are rounded up to a grid, so that plans that hardly differ share them: more noise only forgets.
    """
    return _lines_of(_on_grid(epsilon_threshold), _on_grid(epsilon_queries), times)


def _on_grid(epsilon: float) -> float:
    return float(2.0 ** (math.ceil(math.log2(epsilon) * _GRID) / _GRID)) * (1.0 + 1e-12)


@lru_cache(maxsize=64)
def _lines_of(epsilon_threshold: float, epsilon_queries: float, times: int) -> tuple[Array, Array]:
    each = epsilon_threshold + epsilon_queries
    epsilons = np.linspace(0.0, each * min(times, _FAR * math.sqrt(times)), _LINES)
    deltas = runs_guarantee(epsilon_threshold, epsilon_queries, times).delta(epsilons)
    return np.exp(epsilons) * (1.0 + 1e-12), deltas


def runs_trade_off(epsilon_threshold: float, epsilon_queries: float, times: int, probabilities: Array) -> Array:
    """h(q): how likely at most, on neighbouring rows, is what has probability q. Rounded up.

    P(S) <= exp(epsilon) P'(S) + delta(epsilon) at every epsilon, with the profile of `runs_guarantee`. It is at most
    that of randomised responses of the runs' whole epsilon.

    >>> level = np.array([0.01])
    >>> bool(runs_trade_off(0.01, 0.02, 30, level)[0] < 0.9 * response_trade_off(0.03, 30, level)[0])
    True
    """
    asked = np.asarray(probabilities, dtype=np.float64)
    found = response_trade_off(epsilon_threshold + epsilon_queries, times, asked)
    if times == 1:  # that is no more than one randomised response says
        return found
    slopes, deltas = _lines(epsilon_threshold, epsilon_queries, times)
    played = np.min(slopes * asked[..., None] + deltas, axis=-1) * (1.0 + 1e-12)
    return np.asarray(np.minimum(found, played))


def runs_trade_off_inverse(epsilon_threshold: float, epsilon_queries: float, times: int, power: float) -> float:
    """Nearly the largest q with h(q) <= power."""
    level, at = response_vertices(epsilon_threshold + epsilon_queries, times)
    found = float(np.interp(power, at, level))
    if times == 1:
        return found
    slopes, deltas = _lines(epsilon_threshold, epsilon_queries, times)
    return max(found, float(np.max((power - deltas) / slopes)))
