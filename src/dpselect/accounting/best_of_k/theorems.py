"""The published Renyi theorems on best-of-K, one function each; vectorised over orders.

Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy". In all of them one run Q of the
base mechanism has Renyi divergence at most `epsilon` at `order` (the paper's lambda) in both directions, K is
independent of the data, and the result bounds the Renyi divergence, at the same order, of the best of K runs.
Preconditions on numbers are checked; that the base guarantee is true is owed by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.accounting.best_of_k.lemma7 import with_empty_outcome
from dpselect.errors import ArgumentError, number
from dpselect.numerics import ROUND_UP
from dpselect.repetitions import Poisson, Repetitions

__all__ = [
    "NegativeBinomialLaw",
    "composition_bound",
    "corollary_3",
    "corollary_4",
    "corollary_21",
    "lemma_20",
    "lemma_22",
    "refined_theorem_2",
    "second_order_cost",
    "theorem_2",
    "theorem_2_constant",
    "theorem_6",
]

Array = NDArray[np.float64]


class NegativeBinomialLaw(Protocol):
    """A truncated negative binomial law: geometric and logarithmic ones too."""

    @property
    def eta(self) -> float:
        """The shape, above -1."""
        ...

    @property
    def gamma(self) -> float:
        """The scale, in (0, 1)."""
        ...

    @property
    def mean(self) -> float:
        """E[K]."""
        ...


def _orders(order: ArrayLike) -> Array:
    orders = np.asarray(order, dtype=np.float64)
    if not np.all(orders > 1.0):
        raise ArgumentError("order must be above 1")
    return orders


def theorem_2(
    *, law: NegativeBinomialLaw, order: ArrayLike, epsilon: ArrayLike, hat_order: ArrayLike, hat_epsilon: ArrayLike
) -> Array:
    """epsilon + (1+eta)(1 - 1/hat_order) hat_epsilon + (1+eta) log(1/gamma)/hat_order + log E[K]/(order - 1).

    For K truncated negative binomial; the base is (order, epsilon)- and (hat_order, hat_epsilon)-Renyi private,
    hat_order >= 1 (at 1 hat_epsilon does not matter). Source: Papernot, Steinke 2022, Theorem 2.
    """
    h = _hat_orders(hat_order)
    middle = (1.0 - 1.0 / h) * _at_one(h, hat_epsilon) + math.log(1.0 / law.gamma) / h
    return np.asarray(np.asarray(epsilon) + (1.0 + law.eta) * middle + math.log(law.mean) / (_orders(order) - 1.0))


def refined_theorem_2(
    *, law: NegativeBinomialLaw, order: ArrayLike, epsilon: ArrayLike, hat_order: ArrayLike, hat_epsilon: ArrayLike
) -> Array:
    """Theorem 2 with log(1/gamma) replaced by log(1/gamma - 1 + exp(-(hat_order - 1) hat_epsilon)): never larger.

    The last but one line of the proof of Theorem 2 in Papernot, Steinke 2022; it does not decrease in hat_epsilon, so
    an upper bound may stand for it.
    """
    constant = theorem_2_constant(law=law, hat_order=hat_order, hat_epsilon=hat_epsilon)
    return np.asarray(np.asarray(epsilon) + constant + math.log(law.mean) / (_orders(order) - 1.0))


def theorem_2_constant(*, law: NegativeBinomialLaw, hat_order: ArrayLike, hat_epsilon: ArrayLike) -> Array:
    """The part of the refined Theorem 2 that does not depend on the order; minimise it over hat_order once a curve."""
    h = _hat_orders(hat_order)
    return second_order_cost(law, h, _at_one(h, hat_epsilon))


def second_order_cost(law: NegativeBinomialLaw, hat_orders: Array, hat_epsilons: Array) -> Array:
    """`theorem_2_constant` at orders above 1, unchecked."""
    excess = hat_orders - 1.0
    tail = np.log((1.0 - law.gamma) / law.gamma + np.exp(-excess * hat_epsilons))
    return np.asarray((1.0 + law.eta) * (excess * hat_epsilons + tail) / hat_orders)


def _hat_orders(hat_order: ArrayLike) -> Array:
    h = np.asarray(hat_order, dtype=np.float64)
    if not np.all(h >= 1.0):
        raise ArgumentError("hat_order must be at least 1")
    return h


def _at_one(hat_order: Array, hat_epsilon: ArrayLike) -> Array:
    """hat_epsilon, with anything (inf too) replaced by 0 where hat_order is 1."""
    return np.where(hat_order == 1.0, 0.0, np.asarray(hat_epsilon, dtype=np.float64))


def corollary_3(*, law: NegativeBinomialLaw, epsilon: SupportsFloat) -> float:
    """(2 + eta) epsilon: the pure privacy of the best of K runs, for every gamma.

    Source: Papernot, Steinke 2022, Corollary 3. `pure_shift` is smaller for every gamma.

    >>> from dpselect.repetitions import Geometric
    >>> corollary_3(law=Geometric(gamma=0.1), epsilon=1.0)
    3.0
    """
    return (2.0 + law.eta) * number("epsilon", epsilon, at_least=0.0)


def corollary_4(*, law: NegativeBinomialLaw, order: ArrayLike, rho: SupportsFloat) -> Array:
    """The closed form for a rho-zCDP base, already closed monotonically in the order.

    With L = log E[K] and order0 = 1 + sqrt(L / rho): rho (m - 1) + L / (m - 1) + 2 (1+eta) sqrt(rho log(1/gamma))
    - eta rho at m = max(order, order0). Raises `ArgumentError` for rho > log(1/gamma), where the formula, printed
    without that condition's consequence, is not a bound: use `theorem_2` with hat_order = 1 there.
    Source: Papernot, Steinke 2022, Corollary 4.
    """
    rho = number("rho", rho, above=0.0)
    span = math.log(1.0 / law.gamma)
    if rho > span:
        raise ArgumentError(f"rho must be at most log(1/gamma) = {span:g}, got {rho!r}")
    log_mean = math.log(law.mean)
    excess = np.maximum(_orders(order) - 1.0, math.sqrt(log_mean / rho))
    return np.asarray(rho * excess + log_mean / excess + 2.0 * (1.0 + law.eta) * math.sqrt(rho * span) - law.eta * rho)


def theorem_6(*, law: Poisson, order: ArrayLike, epsilon: ArrayLike, hat_delta: ArrayLike) -> Array:
    """epsilon + E[K] hat_delta + log E[K] / (order - 1) for K Poisson, as printed.

    `hat_delta` is the base's delta at hat_epsilon = log(order / (order - 1)), the largest that the theorem admits;
    with the base's exact profile this is the optimum of Lemma 7. Raises `ArgumentError` for E[K] < 1, where the
    printed form is false (equal base laws make it negative). `best_of` adds the outcome K = 0 at every mean.
    Source: Papernot, Steinke 2022, Theorem 6.
    """
    if law.mean < 1.0:
        raise ArgumentError(f"law must have a mean of at least 1 for the printed theorem, got {law.mean!r}")
    return np.asarray(
        np.asarray(epsilon) + law.mean * np.asarray(hat_delta) + math.log(law.mean) / (_orders(order) - 1.0)
    )


def composition_bound(*, law: Repetitions, order: ArrayLike, epsilon: ArrayLike) -> Array:
    """log phi(exp((order-1) epsilon)) / (order - 1): the price of publishing all K runs; inf outside the radius.

    exp((order-1) D) of a mixture over k of k-fold products is at most the mixture of their bounds (joint convexity).
    Good at low orders and for a fixed number of runs, where it is ordinary composition.
    """
    excess = _orders(order) - 1.0
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
    decomposition must serve every order and both directions (owed by the caller; `Guarantee.failure` promises it).
    Source: Papernot, Steinke 2022, Lemma 20.
    """
    failure = number("failure", failure, at_least=0.0, below=1.0)
    return (law.tilted(1.0 - failure), law.success_probability(failure)) if failure > 0.0 else (law, 0.0)


def corollary_21(*, law: Poisson, epsilon: SupportsFloat, failure: SupportsFloat) -> tuple[float, float, float]:
    """(largest order, Renyi epsilon, failure) of Poisson repetition of an (epsilon, failure)-private base.

    For orders up to 1 + 1/(exp(epsilon) - 1) the result is failure'-approximate Renyi private with
    epsilon' = epsilon + (exp(epsilon) - 1) log E[K] and failure' = 1 - exp(-E[K] failure); E[K] >= 1 is needed.
    Source: Papernot, Steinke 2022, Corollary 21 (whose epsilon in the range of orders is the base's).
    """
    epsilon = number("epsilon", epsilon, above=0.0)
    failure = number("failure", failure, at_least=0.0, below=1.0)
    if law.mean < 1.0:
        raise ArgumentError(f"law must have a mean of at least 1, got {law.mean!r}")
    growth = math.expm1(epsilon)
    return 1.0 + 1.0 / growth, epsilon + growth * math.log(law.mean), law.success_probability(failure)


def lemma_22(*, law: Repetitions, limit: int, order: ArrayLike, bound: Callable[[Array], Array]) -> Array:
    """A Renyi bound for K redrawn until K <= limit, from a Lemma 7 bound for K itself.

    bound(order) + log(1 / P(K <= limit)) / (order - 1) - log(1 - t), t = E[K 1{K > limit}] / E[K]; the last term is
    not divided. `bound` must come from Lemma 7 (Theorems 2 and 6 do), without the outcome K = 0, which is added here.
    Source: Papernot, Steinke 2022, Lemma 22.
    """
    orders = _orders(order)
    outside, biased = law.survival(float(limit)), law.size_biased_survival(float(limit))
    if biased >= 1.0:
        return np.full(orders.shape, np.inf)
    value = bound(orders) - math.log1p(-outside) / (orders - 1.0) - math.log1p(-biased)
    return with_empty_outcome(value, orders, law.zero_probability / (1.0 - outside))
