"""Intervals for shares and for curves, from counts that are known up to their noise.

Every statement fails with at most the probability that it is given, for one model; who chooses among several divides.
"""

from __future__ import annotations

import math

from dpselect.numerics.search import root_between

__all__ = ["curve_error", "partial_sums", "share_interval"]


def share_interval(low: float, high: float, rows: float, failure: float) -> tuple[float, float]:
    """Where the mean of numbers from 0 to 1 lies whose mean over at least `rows` draws is between `low` and `high`.

    With n draws of mean p, P(mean <= x) and, on the other side, P(mean >= x) are at most exp(-n kl(x, p)), where
    kl(x, p) = x ln(x/p) + (1 - x) ln((1 - x)/(1 - p)). So n kl(mean, p) <= ln(2/failure) but with that probability,
    and the least and the largest p of which that holds rise with the mean. Hoeffding (1963), inequality
    2.1, with the convexity of exp for numbers that are not 0 or 1.

    >>> [round(end, 3) for end in share_interval(0.9, 0.9, 1000.0, 0.05)]
    [0.872, 0.924]
    """
    low, high = min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)
    if not rows > 0.0:
        return 0.0, 1.0
    most = math.log(2.0 / failure) / rows
    return 1.0 - _farthest(1.0 - low, most), _farthest(high, most)


def _farthest(share: float, most: float) -> float:
    """The largest p from `share` on with kl(share, p) at most `most`, from above."""
    if share >= 1.0:
        return 1.0
    return root_between(lambda p: _divergence(share, p) > most, safe=1.0, unsafe=share, absolute=1e-12)


def _divergence(x: float, p: float) -> float:
    first = x * math.log(x / p) if x > 0.0 else 0.0
    if x >= 1.0:
        return first
    return first + (1.0 - x) * math.log((1.0 - x) / (1.0 - p)) if p < 1.0 else math.inf


def curve_error(rows: float, failure: float) -> float:
    """How far the share of `rows` draws above a point is from its expectation, at the worst point (Massart 1990)."""
    return math.sqrt(math.log(2.0 / failure) / (2.0 * rows)) if rows > 0.0 else 1.0


def partial_sums(count: int, rate: float, failure: float) -> float:
    """What no sum of the first k of `count` noises is beyond, whichever k, but with probability `failure`.

    The noises are independent, P(Z = z) proportional to exp(-rate |z|). By Levy's inequality for symmetric variables
    the largest of the sums is beyond t with probability at most twice that of the last, 2 P(|S| > t), which is at most
    4 E exp(s S) exp(-s t) for every s > 0; E exp(s Z) = (1 - r)^2/((1 - r e^s)(1 - r e^-s)), r = exp(-rate).

    >>> partial_sums(1, 1.0, 0.05) < partial_sums(16, 1.0, 0.05) < 16 * partial_sums(1, 1.0, 0.05)
    True
    """
    r = math.exp(-rate)  # r e^s itself would overflow where there is hardly any noise

    def bound(s: float) -> float:
        transform = 2.0 * math.log1p(-r) - math.log1p(-math.exp(s - rate)) - math.log1p(-math.exp(-s - rate))
        return (math.log(4.0 / failure) + count * transform) / s

    return min(bound(rate * share / 64.0) for share in range(1, 64)) * (1.0 + 1e-9)
