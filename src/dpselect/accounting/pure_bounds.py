"""The pure privacy of the best of K runs, exactly: epsilon plus the largest shift log phi'(q) / phi'(q').

Let the order in Lemma 7 of Papernot and Steinke (2022) tend to infinity. With v = 1 - q and v' = 1 - q' the base
allows v' <= min(exp(epsilon) v, 1 - exp(-epsilon) (1 - v)). On the second branch the shift is largest at the kink
v = 1 / (1 + exp(epsilon)) for every law: log phi'(exp(t)) is convex in t, so its increment over a fixed step grows
with t. On the first branch it is for the laws with a closed form here; for others it is searched, cell by cell.
The outcome K = 0 has one probability under both and never counts. The bound is attained in the limit: take
randomised response and split a tiny part off its worse answer.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from dpselect.errors import number
from dpselect.numerics import ROUND_UP
from dpselect.repetitions import (
    Binomial,
    Fixed,
    Geometric,
    Logarithmic,
    Poisson,
    Repetitions,
    TruncatedNegativeBinomial,
    ZeroTruncatedPoisson,
)

__all__ = ["pure_best_of", "pure_shift"]


def pure_best_of(*, law: Repetitions, epsilon: float) -> float:
    """The smallest pure epsilon of the best of K runs of an (epsilon, 0)-private base, rounded up; exact.

    Sharper than (2 + eta) epsilon (Papernot, Steinke 2022, Corollary 3) for every gamma.

    >>> round(pure_best_of(law=Geometric(gamma=0.1), epsilon=1.0), 6)
    2.591344
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, finite=False)
    if math.isinf(epsilon):
        return epsilon
    return (epsilon + pure_shift(law, epsilon)) * ROUND_UP if epsilon > 0.0 else 0.0


@singledispatch
def pure_shift(law: Repetitions, epsilon: float) -> float:
    """The largest log phi'(1 - v) / phi'(1 - v') that an (epsilon, 0)-private base allows, rounded up.

    The kink exactly; the first branch on cells that are split where the bound is largest until it stops falling.
    """
    kink = 1.0 / (1.0 + math.exp(epsilon))
    at_kink = float(law.log_derivative(kink)) - float(law.log_derivative(min(math.exp(epsilon) * kink, 1.0)))
    edges = np.concatenate(([0.0], kink * np.exp(-np.linspace(120.0, 0.0, 2001))))
    left, right = edges[:-1], edges[1:]
    bound = math.inf
    for _ in range(8):
        bounds = law.log_derivative(left) - law.log_derivative(np.minimum(math.exp(epsilon) * right, 1.0))
        if np.any(np.isnan(bounds)):
            return math.inf
        bounds = np.maximum(bounds, 0.0)
        bound = min(bound, float(np.max(bounds)))
        attained = max(at_kink, float(np.max(law.log_derivative(right) - law.log_derivative(math.exp(epsilon) * right))))
        if bound <= attained * (1.0 + 1e-9):
            break
        # only cells that may hold something larger than what is attained need splitting
        alive = bounds > attained
        left, right = left[alive], right[alive]
        parts = max(2, 4000 // left.size)
        share = np.linspace(0.0, 1.0, parts + 1)
        steps = left[:, None] + (right - left)[:, None] * share
        left, right = steps[:, :-1].ravel(), steps[:, 1:].ravel()
    return max(bound, at_kink)


@pure_shift.register(TruncatedNegativeBinomial)
@pure_shift.register(Geometric)
@pure_shift.register(Logarithmic)
def _negative_binomial(law: TruncatedNegativeBinomial, epsilon: float) -> float:
    """(1 + eta) log((exp(epsilon) + gamma) / (1 + gamma exp(epsilon)))."""
    small = math.exp(-epsilon)
    return (1.0 + law.eta) * (math.log1p(law.gamma * small) - math.log(small + law.gamma))


@pure_shift.register(Poisson)
@pure_shift.register(ZeroTruncatedPoisson)
def _poisson(law: Repetitions, epsilon: float) -> float:
    """The rate times tanh(epsilon / 2)."""
    rate = law.log_derivative(0.0) - law.log_derivative(1.0)
    return rate * math.tanh(epsilon / 2.0)


@pure_shift.register(Binomial)
def _binomial(law: Binomial, epsilon: float) -> float:
    """(n - 1) log((1 - p + exp(epsilon)) / (1 + (1 - p) exp(epsilon)))."""
    small, rest = math.exp(-epsilon), 1.0 - law.probability
    return (law.trials - 1) * (math.log1p(rest * small) - math.log(small + rest))


@pure_shift.register(Fixed)
def _fixed(law: Fixed, epsilon: float) -> float:
    """(k - 1) epsilon: what composition costs."""
    return (law.count - 1) * epsilon
