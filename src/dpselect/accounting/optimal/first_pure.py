"""The pure privacy of the first acceptable of T tries, exactly.

With u and u' the probabilities of an acceptable outcome, phi the generating function of T and u h(u) = 1 - phi(1 - u),
an output costs epsilon + log h(u) / h(u') and "none" costs log phi(1 - u) / phi(1 - u'), u <= u'. Both are attained.
h and phi fall with u, and the base allows u' <= min(exp(epsilon) u, 1 - exp(-epsilon) (1 - u)). If the second term
is the smaller, both ratios are largest at the kink u = 1 / (1 + exp(epsilon)): in v = 1 - u, h and phi are power series
with non-negative coefficients, so log h(exp(t)) and log phi(exp(t)) are convex in t and grow ever more over a step
epsilon. Below the kink, u' = exp(epsilon) u is searched.
"""

from __future__ import annotations

import math

import numpy as np

from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.optimal.cut_slopes import nothing, released
from dpselect.numerics.cells import supremum_over_cells
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["pure_first"]

_MOST_CELLS = 100_000
_ROUNDING = 2e-13
"""What two logarithms of h or phi are off by."""


def pure_first(tries: Repetitions, epsilon: float) -> float:
    """The smallest pure epsilon of the first acceptable of T tries of an (epsilon, 0)-private base, rounded up.

    For T geometric it is epsilon + log((exp(epsilon) + gamma) / (1 + gamma exp(epsilon))), the same for an output and
    for "none", and as for the best of K runs with K logarithmic: phi' of that K is h up to a factor. Others are
    searched: cells of u are halved while they may hold more than the largest value met.

    >>> from dpselect.repetitions import Geometric
    >>> round(pure_first(Geometric(gamma=0.1), 1.0), 8)
    1.79567204
    """
    if not math.isfinite(epsilon) or epsilon == 0.0:
        return epsilon
    same = tries.first_as_best()
    if same is not None:
        return pure_best_of(law=same, epsilon=epsilon)
    # t = log(u / kink)
    cells = np.array([np.append(-np.inf, np.linspace(-120.0, -0.1, 1200)), np.linspace(-120.0, 0.0, 1201)])
    found = supremum_over_cells(
        lambda cells, _: _costs(tries, epsilon, *cells),
        cells,
        split=_halves,
        relative=1e-12,
        absolute=min(3.0 * _ROUNDING, 1e-7 * epsilon),
        limit=_MOST_CELLS,
    )
    return found.bound * ROUND_UP


def _halves(cells: Array) -> Array:
    left, right = cells
    middle = np.where(np.isfinite(left), 0.5 * (left + right), 2.0 * right - 1.0)
    return np.array([np.concatenate((left, middle)), np.concatenate((middle, right))])


def _costs(tries: Repetitions, epsilon: float, left: Array, right: Array) -> tuple[Array, Array]:
    """Upper bounds on the cost for t in cells [left, right], and the cost at their right ends.

    log h falls by a(u) = 1 - phi'(1 - u) / h(u) per step of log u, between 0 and 1, and log phi(1 - u) by
    b(u) = u phi'(1 - u) / phi(1 - u). From u to u' both fall by epsilon times a mean of these, of which every factor is
    monotone: that bounds a cell where epsilon is small. Else its bound is the cost at its left end and the most that it
    can rise by, a(u') - a(u) or b(u') - b(u) per step of t.
    """
    small = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    large = 1.0 / (1.0 + math.exp(-epsilon))
    ends = np.array([left, right])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near, far = small * np.exp(ends), large * np.exp(ends)
        near_left, far_left = large - small * np.expm1(ends), small - large * np.expm1(ends)
        h_near, h_far = released(tries, near), released(tries, far)
        slope_near = np.exp(tries.log_derivative(np.minimum(near, 1.0)))
        # 1 - u' may be lost in rounding
        slope_far = np.exp(tries.log_derivative(np.minimum(far * (1.0 + _ROUNDING), 1.0)))
        steep_far = np.exp(tries.log_derivative(np.minimum(far, 1.0) * (1.0 - _ROUNDING)))
        none_near, none_far = nothing(tries, near, near_left), nothing(tries, far, far_left)

        def means(start: int, end: int) -> tuple[Array, Array]:
            """The least and the largest of a (first row) and b (second) from u of one end to u' of another."""
            least = 1.0 - slope_near[start] / h_far[end], near[start] * slope_far[end] / none_near[start]
            most = 1.0 - slope_far[end] / h_near[start], far[end] * slope_near[start] / none_far[end]
            return np.array(least), np.array(most)

        def cost(start: int, end: int, rounding: float) -> Array:
            """The cost from u of one end to u' of another, rounded up, or down where `rounding` is negative."""
            falls = np.array([np.log(h_near[start] / h_far[end]), np.log(none_near[start] / none_far[end])]) + rounding
            least, most = means(start, end)
            # the differences lose the digits of a small epsilon, the means do not
            own = np.array([[epsilon], [0.0]])
            return np.asarray(np.max(own + np.fmin(np.fmax(falls, epsilon * least), epsilon * most), axis=0))

        rise = np.maximum(
            slope_near[0] / h_near[1] - slope_far[1] / h_far[0],
            far[1] * steep_far[0] / none_far[1] - near[0] * slope_near[1] / none_near[0],
        )
        sharp = cost(0, 0, _ROUNDING) + np.maximum(rise, 0.0) * (right - left)
        return np.fmin(cost(0, 1, _ROUNDING), np.where(np.isfinite(left), sharp, np.inf)), cost(1, 1, -_ROUNDING)
