"""How fast the value of two cuts can grow, bounded without a difference of near terms: sharp however small the losses.

With f = -h' >= 0 and the masses P(N) = w, P(S) = v, u = v + w of cuts.py (a prime for P'), the value J = A - E A' grows
by E k' - l k per P'-mass that N gains, and by m - (E / l) m' per P-mass that S gains, at the likelihood ratio l, where

    k = [phi'(1 - u)] + v f(u),    m = [phi'(1 - u)] + w f(u),

with the bracket in k if "none" belongs to the adversary's set, in m if not. Both terms are of the size of A, and nearly
equal where losses are small. They are the same function at two places, so by the mean value theorem

    E k' - l k       = (E - l) k'     + l       (+D ([phi''(1 - x)] + v  h''(y)) - s f(u')),
    m - (E / l) m'   = (1 - E / l) m  + (E / l) (-D ([phi''(1 - x)] + w' h''(y)) - t f(u)),

s = P(S) - P'(S) and t = P'(N) - P(N), both >= 0, D = u - u' = s - t, and x, y between u and u'. Here every product is
of the size of a loss times A, and every factor is bounded by the ends of its range: phi', phi'', f and h'' fall with u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpselect.numerics.search import Array
from dpselect.repetitions import Repetitions

__all__ = ["Masses", "largest_fall", "least_fall", "n_growth", "nothing", "released", "s_growth"]

_ROUNDING = 1e-12
_SLOPE_ROUNDING = 1e-11
_LARGEST_EXPONENT = 690.0


class Masses(NamedTuple):
    """Ranges of what boxes of cuts may hold: lowest first, P before P' where both are needed."""

    n: tuple[Array, Array]
    s: tuple[Array, Array]
    n_apart: tuple[Array, Array]
    s_apart: tuple[Array, Array]


def n_growth(law: Repetitions, epsilon: float, none: bool, masses: Masses, losses: tuple[Array, Array]) -> Array:
    """A bound on E k' - l k: what J gains per P'-mass in N, for ratios exp(loss) in the range of `losses`."""
    u_low, u_high, between = _accepted(masses)
    d = masses.s_apart[1] - masses.n_apart[0]
    bent = _bent(law, none, masses.s[0][0], masses.s[1][0], between, d)
    level = _level(law, none, masses.s[0][1], masses.s[1][1], u_low[1], u_high[1])
    shift = d * bent - masses.s_apart[0] * least_fall(law, u_high[1])
    low, high = (np.exp(np.minimum(x, _LARGEST_EXPONENT)) for x in losses)
    ahead = low * np.expm1(np.minimum(epsilon - losses[0], _LARGEST_EXPONENT))
    return _sum_up(ahead * np.where(ahead >= 0.0, *level), shift * np.where(shift >= 0.0, high, low), d * bent * high)


def s_growth(law: Repetitions, epsilon: float, none: bool, masses: Masses, losses: tuple[Array, Array]) -> Array:
    """A bound on m - (E / l) m': what J gains per P-mass in S, for ratios exp(loss) in the range of `losses`."""
    u_low, u_high, between = _accepted(masses)
    d = masses.n_apart[1] - masses.s_apart[0]
    bent = _bent(law, not none, masses.n[0][1], masses.n[1][1], between, d)
    level = _level(law, not none, masses.n[0][0], masses.n[1][0], u_low[0], u_high[0])
    shift = d * bent - masses.n_apart[0] * least_fall(law, u_high[0])
    low, high = (np.exp(np.minimum(epsilon - x, _LARGEST_EXPONENT)) for x in losses[::-1])
    ahead = -np.expm1(np.minimum(epsilon - losses[1], _LARGEST_EXPONENT))
    return _sum_up(ahead * np.where(ahead >= 0.0, *level), shift * np.where(shift >= 0.0, high, low), d * bent * high)


def _accepted(masses: Masses) -> tuple[Array, Array, tuple[Array, Array]]:
    """The smallest and the largest u and u' (rows), and the ends of the range that both are in."""
    low, high = (np.minimum(n + s, 1.0) for n, s in zip(masses.n, masses.s, strict=True))
    return low, high, (np.min(low, axis=0), np.max(high, axis=0))


def _level(law: Repetitions, first: bool, least: Array, most: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The largest and the smallest [phi'(1 - u)] + mass f(u) for u from `low` to `high`."""
    large, small = most * largest_fall(law, low, released(law, low)), least * least_fall(law, high)
    if first:
        large, small = large + np.exp(law.log_derivative(low)), small + np.exp(law.log_derivative(high))
    return large, small


def _bent(law: Repetitions, first: bool, least: Array, most: Array, between: tuple[Array, Array], sign: Array) -> Array:
    """[phi''(1 - u)] + mass h''(u) at its largest where `sign` is positive, else at its smallest."""
    rising = sign > 0.0
    u = np.where(rising, *between)
    second, third = law.second_derivative(u), law.third_derivative(u)
    fall = np.where(rising, largest_fall(law, u, released(law, u)), least_fall(law, u))
    # h'' = (2 f - phi''(1 - u)) / u, and a mean of t^2 phi'''(1 - t u) over t in [0, 1]; 2 f and phi'' agree as u -> 0
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient = (2.0 * fall - second) / u
        most_bend = np.fmin(float(law.third_derivative(0.0)) / 3.0, quotient + _ROUNDING * second / u)
    bend = np.where(rising, most * most_bend, least * np.fmax(third / 3.0, quotient))
    return np.asarray(bend + second if first else bend)


def _sum_up(first: Array, second: Array, part: Array) -> Array:
    return np.asarray(first + second + _SLOPE_ROUNDING * (np.abs(first) + np.abs(second) + np.abs(part)))


def released(law: Repetitions, u: Array) -> Array:
    """h(u) = (1 - phi(1 - u)) / u, E[T] at 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(u > 0.0, law.success_probability(u) / u, law.mean)


def nothing(law: Repetitions, u: Array, rejected: Array) -> Array:
    """phi(1 - u), the probability of "none", for rejected = 1 - u.

    If u is small, only u itself tells how near 1 - u is to 1, and with many tries that decides.
    """
    near = float(law.pmf(0.0)) + law.increment(complement_after=u, mass=rejected)
    return np.where(u < 0.5, near, law.pgf(rejected))


def largest_fall(law: Repetitions, u: Array, h: Array) -> Array:
    """An upper bound on f(u) = (h(u) - phi'(1 - u)) / u, a mean of t phi''(1 - t u) over t in [0, 1]."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        quotient = np.where(u > 0.0, ((1.0 + _ROUNDING) * h - np.exp(law.log_derivative(u))) / u, np.inf)
    return np.minimum(0.5 * float(law.second_derivative(0.0)), quotient)


def least_fall(law: Repetitions, u: Array) -> Array:
    """A lower bound on f(u)."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        quotient = ((1.0 - _ROUNDING) * released(law, u) - np.exp(law.log_derivative(u))) / u
    return np.maximum(0.5 * law.second_derivative(u), np.where(u > 0.0, quotient, 0.0))
