"""The numeric form of Papernot and Steinke (2022), Lemma 7, for every law of K, with a certified supremum."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np

from dpselect.accounting.best_of_k.cells import partition, smooth_records
from dpselect.accounting.best_of_k.feasible_region import TradeOff, symmetric_trade_off
from dpselect.errors import number
from dpselect.numerics import ROUND_UP, Array
from dpselect.repetitions import Repetitions

__all__ = ["best_records", "lemma_7", "supremum", "with_empty_outcome"]


def supremum(records: Array, excess: Array) -> Array:
    """An upper bound on sup over v of log phi'(1-v) + excess (log phi'(1-v) - log phi'(1-T(v))), at each excess > 0.

    `records` are rows of log weight and shift, `excess` is order - 1. The supremum of lines in it: two-column matrix
    products instead of transcendental functions.
    """
    if not np.isfinite(records[1].max()):
        return np.full(excess.shape, np.inf)
    factors = np.ones((excess.size, 2))
    factors[:, 1] = excess
    rows = max(1, (1 << 21) // records.shape[1])
    if excess.size <= rows:
        return np.asarray((factors @ records).max(axis=1))
    return np.concatenate([(factors[i : i + rows] @ records).max(axis=1) for i in range(0, excess.size, rows)])


def best_records(law: Repetitions, pair: tuple[TradeOff, TradeOff], *, points: int | None = None) -> Array:
    """Records for `supremum` that cover both directions, from few evaluations: 512 cells, or 112 of a convex law."""
    if not law.convex_log_derivative:
        return partition(law, symmetric_trade_off(pair), points=points or 512).records
    forward = smooth_records(law, pair[0], points=points or 112)
    if pair[0] is pair[1]:
        return forward
    return np.concatenate((forward, smooth_records(law, pair[1], points=points or 112)), axis=1)


def with_empty_outcome(epsilons: Array, orders: Array, zero_probability: float) -> Array:
    """Count the outcome "no run" (K = 0), which the proof of Lemma 7 leaves out.

    It adds P(K = 0) to exp((order-1) epsilon). Without it the printed bounds are false for E[K] < 1: with equal base
    laws and a Poisson mean below 1 they are negative.
    """
    if zero_probability == 0.0:
        return epsilons
    excess = orders - 1.0
    return np.logaddexp(np.log(zero_probability), excess * epsilons) / excess


def lemma_7(
    *,
    law: Repetitions,
    order: SupportsFloat,
    epsilon: SupportsFloat,
    trade_off: TradeOff,
    points: int = 8000,
) -> float:
    """D(A || A') <= D(Q || Q') + log(phi'(q)^order phi'(q')^(1-order)) / (order - 1) for some feasible q, q'.

    `order` is the paper's lambda, above 1; `epsilon` bounds D(Q || Q') at this order; `trade_off` bounds the events of
    the base in the matching direction (the caller must ensure it). The existential pair (q, q') is replaced by the
    supremum over all that the trade-off allows, rounded up: `points` cells, each bounded by monotonicity. The outcome
    "no run" is counted, unlike in the paper's proof. Source: Papernot, Steinke 2022, Lemma 7.
    """
    order = number("order", order, above=1.0)
    epsilon = number("epsilon", epsilon, at_least=0.0, finite=False)
    orders = np.array([order])
    found = supremum(partition(law, trade_off, points=points).records, orders - 1.0) / (orders - 1.0)
    value = with_empty_outcome((epsilon + found) * ROUND_UP, orders, law.zero_probability)
    return max(float(value[0]), 0.0)
