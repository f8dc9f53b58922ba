"""The pure privacy of the first acceptable of T tries, exactly.

With u and u' the probabilities of an acceptable outcome, phi the generating function of T and u h(u) = 1 - phi(1 - u),
an output costs epsilon + log h(u) / h(u') and "none" costs log phi(1 - u) / phi(1 - u'), u <= u'; both are attained.
h and phi fall with u, and the base allows u' <= min(exp(epsilon) u, 1 - exp(-epsilon) (1 - u)). Where the second term
is the smaller both ratios are largest at the kink u = 1 / (1 + exp(epsilon)): in v = 1 - u, h and phi are power series
with non-negative coefficients, so log h(exp(t)) and log phi(exp(t)) are convex in t and grow ever more over a step
epsilon. Below the kink, u' = exp(epsilon) u is searched.
"""

from __future__ import annotations

import math

import numpy as np

from dpselect.accounting.optimal.atoms import Array
from dpselect.accounting.optimal.cut_slopes import nothing, released
from dpselect.numerics import ROUND_UP
from dpselect.repetitions import Repetitions

__all__ = ["pure_first", "released"]

_MOST_CELLS = 20_000
_ROUNDS = 40


def pure_first(tries: Repetitions, epsilon: float) -> float:
    """The smallest pure epsilon of the first acceptable of T tries of an (epsilon, 0)-private base, rounded up.

    For T geometric it is epsilon + log((exp(epsilon) + gamma) / (1 + gamma exp(epsilon))), the same for an output and
    for "none". Others are searched: cells of u are halved while they may hold more than the largest value met.

    >>> from dpselect.repetitions import Geometric
    >>> round(pure_first(Geometric(gamma=0.1), 1.0), 8)
    1.79567204
    """
    if not math.isfinite(epsilon) or epsilon == 0.0:
        return epsilon
    # t = log(u / kink)
    left, right = np.append(-np.inf, np.linspace(-120.0, -0.1, 1200)), np.linspace(-120.0, 0.0, 1201)
    bound, highest = math.inf, 0.0
    for _ in range(_ROUNDS):
        bounds, attained = _cells(tries, epsilon, left, right)
        highest = max(highest, float(np.max(attained)))
        bound = min(bound, max(highest, float(np.max(bounds))))
        alive = bounds > highest * (1.0 + 1e-12)
        if not np.any(alive) or np.count_nonzero(alive) > _MOST_CELLS:
            break
        left, right = left[alive], right[alive]
        middle = np.where(np.isfinite(left), 0.5 * (left + right), 2.0 * right - 1.0)
        left, right = np.concatenate((left, middle)), np.concatenate((middle, right))
    return bound * ROUND_UP


def _cells(tries: Repetitions, epsilon: float, left: Array, right: Array) -> tuple[Array, Array]:
    """Upper bounds on the cost for t in cells [left, right], and the cost at their right ends.

    A cell's bound is the cost at its left end and the most that it can rise by: the slope of log h in log u is
    -(1 - phi'(1 - u) / h(u)), that of log phi(1 - u) is -u phi'(1 - u) / phi(1 - u), all factors monotone.
    """
    small = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    large = 1.0 / (1.0 + math.exp(-epsilon))
    ends = np.array([left, right])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near, far = small * np.exp(ends), large * np.exp(ends)
        near_left, far_left = large - small * np.expm1(ends), small - large * np.expm1(ends)
        h_near, h_far = released(tries, near), released(tries, far)
        slope_near = np.exp(tries.log_derivative(np.minimum(near, 1.0)))
        slope_far = np.exp(tries.log_derivative(np.minimum(far, 1.0)))
        none_near, none_far = nothing(tries, near, near_left), nothing(tries, far, far_left)
        cost = np.maximum(epsilon + np.log(h_near) - np.log(h_far), np.log(none_near) - np.log(none_far))
        crude = np.maximum(
            epsilon + np.log(h_near[0]) - np.log(h_far[1]),
            np.log(none_near[0]) - np.log(none_far[1]),
        )
        rise = np.maximum(
            slope_near[0] / h_near[1] - slope_far[1] / h_far[0],
            far[1] * slope_far[0] / none_far[1] - near[0] * slope_near[1] / none_near[0],
        )
        sharp = cost[0] + np.maximum(rise, 0.0) * (right - left)
    return np.fmin(crude, np.where(np.isfinite(left), sharp, np.inf)), cost[1]
