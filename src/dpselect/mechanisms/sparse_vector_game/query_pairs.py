"""One query as a pair of coins, and a polygon around all the pairs that a query can be."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from dpselect.numerics.search import Array

__all__ = ["QueryPairs", "gaussian_pairs", "geometric_pairs", "laplace_pairs"]

_VERTICES, _MOST_VERTICES = 4, 32
_UP = 1.0 + 2.0**-48
_MOST_POINTS = 8
_TOUCHED = np.concatenate(([-0.08], np.arange(0.08, 3.2, 0.16), np.arange(3.7, 11.0, 0.6)))
"""Where tangents touch the trade-off curve, in deviations from its middle; and the same on its other side."""
_SLACK = 1e-10
"""What weights and losses are raised by: far more than the rounding of a tangent's meeting point."""


class QueryPairs(NamedTuple):
    """Pairs of coins, each a negative with probability p on one data set and p' on the other.

    Attributes:
        negative, negative_loss: p and log(p / p'), rounded up.
        positive, positive_loss: 1 - p and log((1 - p) / (1 - p')), rounded up.
    """

    negative: Array
    negative_loss: Array
    positive: Array
    positive_loss: Array

    @classmethod
    def of(cls, small: Array, large: Array, rest: Array, *, up: bool) -> QueryPairs:
        """From the smaller and the larger probability of a negative and one minus the larger."""
        one = 1.0 - small
        p, q, s, t = (small, large, one, rest) if up else (large, small, rest, one)
        slack = 2.0**-48
        return cls(p * _UP, np.log(p / q) + slack, s * _UP, np.log(s / t) + slack)

    @property
    def stay(self) -> float:
        """The largest probability of a negative: how much of the mass plays on for the same positive."""
        return float(np.max(self.negative, initial=0.0))

    def joined(self, other: QueryPairs) -> QueryPairs:
        """The pairs of both."""
        return QueryPairs(*map(np.concatenate, zip(self, other, strict=True)))


@lru_cache(maxsize=512)
def laplace_pairs(rate: float, moves: tuple[float, float]) -> QueryPairs:
    """The vertices of polygons around (F(u), F(u + h)) for both moves h and all u, with F the Laplace law of this rate.

    Let beta = exp(-rate |h|) and h > 0. The curve is p' = p / beta up to p = beta / 2, then 1 - beta / (4 p). From p =
    1/2 it is a line of slope beta to (1, 1). It is concave. So it is below any of its tangents. Those at p_i and p_j
    meet at p = 2 / (1 / p_i + 1 / p_j), 1 - p' = beta / (2 (p_i + p_j)). The vertices (0, 0) and (1, 1), a positive
    that tells nothing and a negative that tells nothing, are left to the recursion. h < 0 is the mirror image.
    """
    found = _NONE
    for move in moves:
        size = abs(move) * rate
        if size > 0.0:
            vertices = min(_VERTICES * math.ceil(4.0 * size), _MOST_VERTICES)
            touching = 0.5 * np.exp(-size * np.linspace(1.0, 0.0, vertices + 1))
            first, second = touching[:-1], touching[1:]
            rest = math.exp(-size) / (2.0 * (first + second))
            found = found.joined(QueryPairs.of(2.0 / (1.0 / first + 1.0 / second), 1.0 - rest, rest, up=move > 0.0))
    return found


@lru_cache(maxsize=512)
def geometric_pairs(rate: float, moves: tuple[float, float], steps: int) -> QueryPairs:
    """The same for discrete Laplace noise P(k) ~ exp(-rate |k| / steps) and values on integers.

    A move of h sensitivities is one of n = h steps whole steps (you must ensure this). Let a = exp(-rate/steps). The
    curve has the points p = a^(1 - u) / (1 + a), 1 - p' = a^(u + n) / (1 + a). Here 1 - n <= u <= 0. All others are on
    the lines from its ends to (0, 0) and (1, 1). They are the vertices where they are few. If they are many, the curve
    is below that of Laplace noise with an argument that moves by s steps. Here s = n + 2 log cosh(r / 2) / r and r =
    rate / steps. Every coin is one of Laplace noise, and the arguments of one on either side are that far apart.
    """
    each = rate / steps
    sizes = [round(abs(move) * steps) for move in moves]
    if max(sizes) > _MOST_POINTS:
        wider = 2.0 * math.log(math.cosh(0.5 * each)) / rate * _UP
        return laplace_pairs(rate, tuple(math.copysign(abs(m) + wider, m) if m else 0.0 for m in moves))
    found = _NONE
    for move, size in zip(moves, sizes, strict=True):
        if size:
            u, share = np.arange(1 - size, 1), 1.0 / (1.0 + math.exp(-each))
            rest = np.exp(-each * (u + size)) * share
            found = found.joined(QueryPairs.of(np.exp(-each * (1 - u)) * share, 1.0 - rest, rest, up=move > 0.0))
    return found


def gaussian_pairs(shift: float) -> tuple[QueryPairs, Array]:
    """The vertices of a polygon around all pairs of coins, and of each the probability of losing all.

    For P(negative) = Phi(u) here and Phi(u + shift) or Phi(u - shift) there, all real u. The curve of the first is
    concave, with slope exp(-u shift - shift^2/2): it is below its tangents, those at the ends meeting p = 0 and
    p' = 1. The second is its mirror image.
    """
    u = _TOUCHED - 0.5 * shift
    slope = np.exp(-shift * (u + 0.5 * shift))
    # of a tangent, in s = 1 - p and t = 1 - p': t = slope s - gap, where gap = slope S(u) - S(u + shift) > 0
    density = np.exp(-0.5 * np.square(u + shift)) / math.sqrt(2.0 * math.pi)
    gap = density * math.sqrt(math.pi / 2.0) * (_mills(u) - _mills(u + shift))
    s = (gap[:-1] - gap[1:]) / (slope[:-1] - slope[1:])
    t = slope[:-1] * s - gap[:-1]
    inside = (s > 0.0) & (s < 1.0) & (t > 0.0) & (t < s)
    s, t = s[inside], t[inside]
    s, t = np.append(s, gap[-1] / slope[-1]), np.append(t, 0.0)  # at p' = 1 a positive cannot be there
    # the curve is its own image under (p, p') -> (1 - p', 1 - p), and small numbers keep their digits
    one = np.concatenate((1.0 - s, t)), np.concatenate((1.0 - t, s))
    other = np.concatenate((s, 1.0 - t)), np.concatenate((t, 1.0 - s))
    (up, lost_up), (down, lost_down) = _weighted(*one, *other), _weighted(*one[::-1], *other[::-1])
    return up.joined(down), np.concatenate((lost_up, lost_down))


def _weighted(
    negative: Array, negative_there: Array, positive: Array, positive_there: Array
) -> tuple[QueryPairs, Array]:
    sure, lost = [], np.zeros(len(negative))
    for here, there in ((negative, negative_there), (positive, positive_there)):
        gone = there <= 0.0
        lost = lost + np.where(gone, here, 0.0)
        weight = np.where(gone, 0.0, here)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(weight > 0.0, np.log(here / np.where(gone, 1.0, there)), 0.0)
        sure += [weight * (1.0 + _SLACK), loss + _SLACK]
    return QueryPairs(*sure), lost * (1.0 + _SLACK)


def _mills(u: Array) -> Array:
    """(1 - Phi(u)) / phi(u), times sqrt(2/pi)."""
    return np.asarray(erfcx(u / math.sqrt(2.0)))


_EMPTY = np.empty(0)
_NONE = QueryPairs(_EMPTY, _EMPTY, _EMPTY, _EMPTY)
