"""The pure privacy of the best of K runs, exactly: epsilon plus the largest shift log phi'(q) / phi'(q').

Let the order in Lemma 7 of Papernot and Steinke (2022) tend to infinity. With v = 1 - q and v' = 1 - q' the base
allows v' <= min(exp(epsilon) v, 1 - exp(-epsilon) (1 - v)). On the second branch the shift is largest at the kink
v = 1 / (1 + exp(epsilon)) for every law: log phi'(exp(t)) is convex in t, so its increment over a fixed step grows
with t. On the first branch it is for the laws with a closed form (`Repetitions.pure_shift`). For others it is searched,
cell by cell. The outcome K = 0 has one probability under both and never counts. The bound is attained in the limit:
take randomised response and split a tiny part off its worse answer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpselect.accounting.best_of_k.search_bound import search_bound
from dpselect.accounting.best_of_k.theorems import lemma_20
from dpselect.caching import memoized
from dpselect.errors import number
from dpselect.numerics.cells import supremum_over_cells
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, approximate_dp
from dpselect.repetitions import Repetitions

__all__ = ["pure", "pure_best_of", "pure_shift", "searched_shift"]


_ROUNDING = 4e-15
"""More than the relative rounding of v' and of the exponentials that make it."""
_POWERS = 64
"""The smallest possible K is looked for up to here; beyond it nothing is known of phi' near 0."""
_LARGEST = 600.0
"""Beyond it exp leaves double precision, and no promise is left anyway."""


def pure_best_of(*, law: Repetitions, epsilon: float) -> float:
    """The smallest pure epsilon of the best of K runs of an (epsilon, 0)-private base, exact and rounded up.

    Tighter than (2 + eta) epsilon (Papernot, Steinke 2022, Corollary 3) for every gamma.

    >>> from dpselect.repetitions import Geometric
    >>> round(pure_best_of(law=Geometric(gamma=0.1), epsilon=1.0), 6)
    2.591344
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, finite=False, rounding="up")
    if math.isinf(epsilon):
        return epsilon
    if law.limit is not None and law.minimum == law.limit:  # a fixed number: the bound is a product
        return number("epsilon", Fraction(epsilon) * law.limit, at_least=0.0, rounding="up")
    return (epsilon + pure_shift(law, epsilon)) * ROUND_UP if epsilon > 0.0 else 0.0


def pure_shift(law: Repetitions, epsilon: float) -> float:
    """The largest log phi'(1 - v) / phi'(1 - v') that an (epsilon, 0)-private base allows, rounded up."""
    known = law.pure_shift(epsilon)
    return float(searched_shift(law, epsilon)) if known is None else known


@memoized
def searched_shift(law: Repetitions, epsilon: float) -> float:
    """`pure_shift` for every law, without a closed form.

    The first branch, which ends in the kink, on cells that are split where the bound may be largest until it stops
    falling. Each cell is bounded by the monotonicity of phi' and phi''.
    """
    if epsilon > _LARGEST:
        return math.inf
    kink = 1.0 / (1.0 + math.exp(epsilon))
    lowest = _lowest_term(law)
    edges = np.concatenate(([0.0], kink * np.exp(-np.linspace(120.0, 0.0, 1201))))
    found = supremum_over_cells(
        lambda cells, _: _cell_shifts(law, epsilon, lowest, *cells), np.array([edges[:-1], edges[1:]]), split=_halves
    )
    # logarithms of phi' are rounded absolutely
    scale = max(abs(float(law.log_derivative(0.0))), abs(float(law.log_derivative(2.0 * kink))))
    return found.bound + 4e-15 * (1.0 + scale)


def _halves(cells: Array) -> Array:
    left, right = cells
    middle = np.where(left > 0.0, np.sqrt(left * right), 1e-3 * right)
    return np.array([np.concatenate((left, middle)), np.concatenate((middle, right))])


def _lowest_term(law: Repetitions) -> tuple[float, float]:
    """log(k P(K = k)) and k - 1 for the smallest possible k >= 1: phi'(F) is at least k P(K = k) F^(k - 1)."""
    k = np.arange(1.0, _POWERS + 1.0)
    masses = np.asarray(law.pmf(k))
    first = int(np.argmax(masses > 0.0))
    return (
        (math.log(k[first] * masses[first] * (1.0 - 1e-12)), float(first)) if masses[first] > 0.0 else (-math.inf, 0.0)
    )


def _cell_shifts(
    law: Repetitions, epsilon: float, lowest: tuple[float, float], left: Array, right: Array
) -> tuple[Array, Array]:
    """Upper bounds on the shift in cells [left, right] of the first branch, and its values at their right ends.

    The slope of log phi'(1 - v) in log v is -m(v), m = v phi'' / phi', and that of log m is 1 - v phi''' / phi'' + m.
    All factors of these are monotone. The shift is epsilon times a mean of m from v to exp(epsilon) v, bounded from m
    at the left end: that keeps the digits of a small epsilon. Or it is at most its value at the left end and the most
    that it can rise by. At the far end 1 - v' may be lost in rounding, where the `lowest` term of phi' knows it.
    """
    growth, kink = math.exp(epsilon), 1.0 / (1.0 + math.exp(epsilon))
    far_left = np.minimum(growth * left, 1.0) * (1.0 - _ROUNDING)
    far_right = np.minimum(growth * right * (1.0 + _ROUNDING), 1.0)
    log_left, log_right = law.log_derivative(left), law.log_derivative(right)
    with np.errstate(divide="ignore", invalid="ignore"):
        # v' = exp(epsilon) v is 1 - kink where v is the kink
        mass = np.log(np.maximum(kink + growth * (kink - right) * (1.0 - _ROUNDING) - _ROUNDING * (right < kink), 0.0))
        least = lowest[0] + (lowest[1] * mass if lowest[1] else 0.0)
    far_log_right = np.fmax(law.log_derivative(far_right), least - _ROUNDING * (1.0 + np.abs(least)))
    simple = log_left - far_log_right
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        second = law.second_derivative(left)
        rising = far_right * law.second_derivative(far_left) / np.exp(far_log_right)
        falling = left * law.second_derivative(right) / np.exp(log_left)
        step = np.maximum(rising - falling, 0.0) * np.log(right / left)
        refined = log_left - law.log_derivative(np.minimum(far_left * (1.0 + 3.0 * _ROUNDING), 1.0)) + step
        turning = 1.0 - left * law.third_derivative(far_right) / second + far_right * second / np.exp(far_log_right)
        steepest = left * second / np.exp(log_left) * np.exp(np.maximum(turning, 0.0) * np.log(far_right / left))
    bounds = np.fmin(np.fmin(simple, refined), epsilon * steepest * ROUND_UP)
    return np.maximum(bounds, 0.0), np.maximum(log_right - far_log_right, 0.0)


@search_bound("pure", by_default=True)
def pure(base: Guarantee, law: Repetitions) -> Guarantee | None:
    """Epsilon outside the failure mass, pure privacy if there is none (Papernot, Steinke 2022, Lemmas 7 and 20)."""
    tilted, failure = lemma_20(law=law, failure=base.failure)
    epsilon = pure_best_of(law=tilted, epsilon=base.pure_epsilon)
    if not np.isfinite(epsilon) or failure >= 1.0:
        return None
    priced = approximate_dp(epsilon=epsilon, delta=failure, adjacency=base.adjacency)
    return replace(priced, theorem="exact pure privacy of the best of K runs", lower_profile=None)
