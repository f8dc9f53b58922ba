"""One query as a pair of coins, and a polygon around all the pairs that a query can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpselect.numerics import Array

__all__ = ["Coins", "geometric_coins", "laplace_coins"]

_VERTICES, _MOST_VERTICES = 4, 32
_UP = 1.0 + 2.0**-48
_MOST_POINTS = 8


@dataclass(frozen=True, eq=False)
class Coins:
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
    def of(cls, small: Array, large: Array, rest: Array, *, up: bool) -> Coins:
        """From the smaller and the larger probability of a negative and one minus the larger."""
        one = 1.0 - small
        p, q, s, t = (small, large, one, rest) if up else (large, small, rest, one)
        slack = 2.0**-48
        return cls(p * _UP, np.log(p / q) + slack, s * _UP, np.log(s / t) + slack)

    @property
    def stay(self) -> float:
        """The largest probability of a negative: how much of the mass plays on for the same positive."""
        return float(np.max(self.negative, initial=0.0))

    def joined(self, other: Coins) -> Coins:
        """The coins of both."""
        return Coins(*(np.concatenate((getattr(self, f), getattr(other, f))) for f in self.__dataclass_fields__))


@lru_cache(maxsize=512)
def laplace_coins(rate: float, moves: tuple[float, float]) -> Coins:
    """The vertices of polygons around (F(u), F(u + h)) for both moves h and all u, with F the Laplace law of this rate.

    With beta = exp(-rate |h|) and h > 0 the curve is p' = p / beta up to p = beta / 2, then 1 - beta / (4 p), then a
    line of slope beta to (1, 1) from p = 1/2: concave. So it lies below any of its tangents; those at p_i and p_j meet
    at p = 2 / (1 / p_i + 1 / p_j), 1 - p' = beta / (2 (p_i + p_j)). The vertices (0, 0) and (1, 1), a positive that
    tells nothing and a negative that tells nothing, are left to the recursion. h < 0 is the mirror image.
    """
    found = _NONE
    for move in moves:
        size = abs(move) * rate
        if size > 0.0:
            vertices = min(_VERTICES * math.ceil(4.0 * size), _MOST_VERTICES)
            touching = 0.5 * np.exp(-size * np.linspace(1.0, 0.0, vertices + 1))
            first, second = touching[:-1], touching[1:]
            rest = math.exp(-size) / (2.0 * (first + second))
            found = found.joined(Coins.of(2.0 / (1.0 / first + 1.0 / second), 1.0 - rest, rest, up=move > 0.0))
    return found


@lru_cache(maxsize=512)
def geometric_coins(rate: float, moves: tuple[float, float], steps: int) -> Coins:
    """The same for discrete Laplace noise P(k) ~ exp(-rate |k| / steps) and values on whole numbers.

    A move of h sensitivities is one of n = h steps whole steps (the caller must ensure it). With a = exp(-rate/steps)
    the curve has the points p = a^(1 - u) / (1 + a), 1 - p' = a^(u + n) / (1 + a) for 1 - n <= u <= 0; all others lie
    on the lines from its ends to (0, 0) and (1, 1). They are the vertices where they are few. Where they are many the
    curve lies below the one of Laplace noise whose argument moves by n + 2 log cosh(r / 2) / r steps, r = rate / steps:
    every coin is one of Laplace noise, and between one of either side the two arguments lie that far apart.
    """
    each = rate / steps
    sizes = [round(abs(move) * steps) for move in moves]
    if max(sizes) > _MOST_POINTS:
        wider = 2.0 * math.log(math.cosh(0.5 * each)) / rate * _UP
        return laplace_coins(rate, tuple(math.copysign(abs(m) + wider, m) if m else 0.0 for m in moves))
    found = _NONE
    for move, size in zip(moves, sizes, strict=True):
        if size:
            u, share = np.arange(1 - size, 1), 1.0 / (1.0 + math.exp(-each))
            rest = np.exp(-each * (u + size)) * share
            found = found.joined(Coins.of(np.exp(-each * (1 - u)) * share, 1.0 - rest, rest, up=move > 0.0))
    return found


_EMPTY = np.empty(0)
_NONE = Coins(_EMPTY, _EMPTY, _EMPTY, _EMPTY)
