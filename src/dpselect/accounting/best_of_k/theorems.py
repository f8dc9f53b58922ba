"""The published Renyi theorems that hold for every law of K, one function each. Those of one law are in its file.

Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy". In all of them one run Q of the
base mechanism has Renyi divergence at most `epsilon` at `order` (the paper's lambda) in both directions, K is
independent of the data, and the result bounds the Renyi divergence, at the same order, of the best of K runs.
Lemma 7 is in a numeric form, with a certified supremum. Preconditions on numbers are checked. You must ensure that
the base guarantee is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from dpselect.accounting.best_of_k.cells import partition, smooth_records
from dpselect.accounting.best_of_k.feasible_region import TradeOff, symmetric_trade_off
from dpselect.errors import number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions
from dpselect.repetitions.one_run import orders_above_one

__all__ = ["best_records", "composition_bound", "lemma_7", "lemma_20", "lemma_22", "supremum", "with_empty_outcome"]


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


def best_records(law: Repetitions, pair: tuple[TradeOff, TradeOff]) -> Array:
    """Records for `supremum` that cover both directions, from few evaluations: 512 cells, or 112 of a convex law."""
    if not law.convex_log_derivative:
        return partition(law, symmetric_trade_off(pair), points=512).records
    forward = smooth_records(law, pair[0], points=112)
    if pair[0] is pair[1]:
        return forward
    return np.concatenate((forward, smooth_records(law, pair[1], points=112)), axis=1)


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

    `order` is the paper's lambda, above 1. `epsilon` bounds D(Q || Q') at this order, and `trade_off` bounds the events
    of the base in the matching direction (you must ensure this). The existential pair (q, q') is replaced by the
    supremum over all that the trade-off allows, rounded up: `points` cells, each bounded by monotonicity. The outcome
    "no run" is counted, unlike in the paper's proof. Source: Papernot, Steinke 2022, Lemma 7.
    """
    order = number("order", order, above=1.0)
    epsilon = number("epsilon", epsilon, at_least=0.0, finite=False, rounding="up")
    orders = np.array([order])
    found = supremum(partition(law, trade_off, points=points).records, orders - 1.0) / (orders - 1.0)
    value = with_empty_outcome((epsilon + found) * ROUND_UP, orders, law.zero_probability)
    return max(float(value[0]), 0.0)


def composition_bound(*, law: Repetitions, order: ArrayLike, epsilon: ArrayLike) -> Array:
    """log phi(exp((order-1) epsilon)) / (order - 1): the price of publishing all K runs, inf outside the radius.

    exp((order-1) D) of a mixture over k of k-fold products is at most the mixture of their bounds (joint convexity).
    Good at low orders and for a fixed number of runs, where it is ordinary composition.
    """
    excess = orders_above_one(order) - 1.0
    exponent = excess * np.asarray(epsilon, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # phi is known to about 1e-14 of itself, and is near 1 at low orders
        found = np.log(law.pgf(np.exp(np.minimum(exponent, 700.0)))) * ROUND_UP + 1e-13
        found = np.where(exponent > 700.0, np.inf, found)
        if law.limit is not None:
            found = np.minimum(found, law.limit * exponent)
        return np.asarray(np.where(np.isnan(found), np.inf, found) / excess)


def lemma_20(*, law: Repetitions, failure: SupportsFloat) -> tuple[Repetitions, float]:
    """The law of K given that no run failed, and the probability that one did: (tilted law, 1 - phi(1 - failure)).

    When Q = (1 - failure) Q1 + failure Q2, and the same for the neighbour, the best of K runs of Q is, outside mass
    1 - phi(1 - failure), the best of K' runs of Q1 with P(K' = k) proportional to P(K = k) (1 - failure)^k. One
    decomposition must serve every order and both directions (you must ensure this; `Guarantee.failure` promises
    it). Source: Papernot, Steinke 2022, Lemma 20.
    """
    failure = number("failure", failure, at_least=0.0, below=1.0, rounding="up")
    return (law.tilted(1.0 - failure), law.success_probability(failure)) if failure > 0.0 else (law, 0.0)


def lemma_22(*, law: Repetitions, limit: int, order: ArrayLike, bound: Callable[[Array], Array]) -> Array:
    """A Renyi bound for K redrawn until K <= limit, from a Lemma 7 bound for K itself.

    bound(order) + log(1 / P(K <= limit)) / (order - 1) - log(1 - t), t = E[K 1{K > limit}] / E[K]. The last term is
    not divided. `bound` must come from Lemma 7 (Theorems 2 and 6 do), without the outcome K = 0, which is added here.
    Source: Papernot, Steinke 2022, Lemma 22.
    """
    orders = orders_above_one(order)
    outside, biased = law.survival(float(limit)), law.size_biased_survival(float(limit))
    if biased >= 1.0:
        return np.full(orders.shape, np.inf)
    value = bound(orders) - math.log1p(-outside) / (orders - 1.0) - math.log1p(-biased)
    return with_empty_outcome(value, orders, law.zero_probability / (1.0 - outside))
