"""Papernot and Steinke's closed forms for truncated negative binomial K, as published (2022, Theorem 2 to Corollary 4).

Searches are charged by the laws themselves (`renyi_forms`, `pure_shift`), which never give more.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError, number
from dpselect.repetitions.distribution import FloatArray
from dpselect.repetitions.negative_binomial import Geometric, Logarithmic, TruncatedNegativeBinomial, second_order_cost
from dpselect.repetitions.one_run import orders_above_one

__all__ = ["corollary_3", "corollary_4", "refined_theorem_2", "theorem_2"]

NegativeBinomial = TruncatedNegativeBinomial | Geometric | Logarithmic


def theorem_2(
    *, law: NegativeBinomial, order: ArrayLike, epsilon: ArrayLike, hat_order: ArrayLike, hat_epsilon: ArrayLike
) -> FloatArray:
    """epsilon + (1+eta)(1 - 1/hat_order) hat_epsilon + (1+eta) log(1/gamma)/hat_order + log E[K]/(order - 1).

    For K truncated negative binomial. The base is (order, epsilon)- and (hat_order, hat_epsilon)-Renyi private,
    hat_order >= 1 (at 1 hat_epsilon does not matter). Source: Papernot, Steinke 2022, Theorem 2 (page 5).
    """
    h = _hat_orders(hat_order)
    middle = (1.0 - 1.0 / h) * _at_one(h, hat_epsilon) + math.log(1.0 / law.gamma) / h
    return np.asarray(
        np.asarray(epsilon) + (1.0 + law.eta) * middle + math.log(law.mean) / (orders_above_one(order) - 1.0)
    )


def refined_theorem_2(
    *, law: NegativeBinomial, order: ArrayLike, epsilon: ArrayLike, hat_order: ArrayLike, hat_epsilon: ArrayLike
) -> FloatArray:
    """Theorem 2 with log(1/gamma) replaced by log(1/gamma - 1 + exp(-(hat_order - 1) hat_epsilon)): never larger.

    The last but one line of the proof. It does not decrease in hat_epsilon, so an upper bound may replace it.
    Source: Papernot, Steinke 2022, Theorem 2 (page 5).
    """
    h = _hat_orders(hat_order)
    constant = second_order_cost(law, h, _at_one(h, hat_epsilon))
    return np.asarray(np.asarray(epsilon) + constant + math.log(law.mean) / (orders_above_one(order) - 1.0))


def _hat_orders(hat_order: ArrayLike) -> FloatArray:
    h = np.asarray(hat_order, dtype=np.float64)
    if not np.all(h >= 1.0):
        raise ArgumentError("hat_order must be at least 1")
    return h


def _at_one(hat_order: FloatArray, hat_epsilon: ArrayLike) -> FloatArray:
    """hat_epsilon, with anything (inf too) replaced by 0 where hat_order is 1."""
    return np.where(hat_order == 1.0, 0.0, np.asarray(hat_epsilon, dtype=np.float64))


def corollary_3(*, law: NegativeBinomial, epsilon: SupportsFloat) -> float:
    """(2 + eta) epsilon: the pure privacy of the best of K runs, for every gamma.

    Source: Papernot, Steinke 2022, Corollary 3 (page 6). `pure_shift` is smaller for every gamma.

    >>> corollary_3(law=Geometric(gamma=0.1), epsilon=1.0)
    3.0
    """
    return (2.0 + law.eta) * number("epsilon", epsilon, at_least=0.0)


def corollary_4(*, law: NegativeBinomial, order: ArrayLike, rho: SupportsFloat) -> FloatArray:
    """The closed form for a rho-zCDP base, already closed monotonically in the order.

    Let L = log E[K] and m = max(order, 1 + sqrt(L / rho)). The form is
    rho (m - 1) + L / (m - 1) + 2 (1+eta) sqrt(rho log(1/gamma)) - eta rho. Raises `ArgumentError` for
    rho > log(1/gamma), where the formula is not a bound, as the paper does not say. Use `theorem_2` with hat_order = 1.
    Source: Papernot, Steinke 2022, Corollary 4 (page 6).
    """
    rho = number("rho", rho, above=0.0)
    span = math.log(1.0 / law.gamma)
    if rho > span:
        raise ArgumentError(f"rho must be at most log(1/gamma) = {span:g}, got {rho!r}")
    log_mean = math.log(law.mean)
    excess = np.maximum(orders_above_one(order) - 1.0, math.sqrt(log_mean / rho))
    return np.asarray(rho * excess + log_mean / excess + 2.0 * (1.0 + law.eta) * math.sqrt(rho * span) - law.eta * rho)
