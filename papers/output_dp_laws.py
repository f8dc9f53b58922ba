"""Exact laws that the reproduction of Hartmann et al. (2022) compares with, apart from the rest of the library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom, laplace

from dpselect.numerics.search import Array

__all__ = ["expected_scales", "largest_prefix_free_sum", "least_steps_that_gain", "sum_over_stops"]


def expected_scales(first: float, second: float, cap: int, entries: int, gap: float, scales: Array) -> Array:
    """E[scale of the released values' noise | something was found] for 1, ..., cap large entries.

    Every large entry lies `gap` above the threshold, every other one `gap` below; sensitivity 1. Given the threshold's
    noise the comparisons are independent, and the session ends at `cap` hits, so that the number of hits is
    min(cap, Bin(large, p) + Bin(entries - large, q)) in whatever order the entries are asked. The threshold's noise is
    integrated by the midpoint rule over 40 scales.
    """
    scale = 1.0 / first
    width = 80.0 * scale / 8000
    noise: Array = (np.arange(8000, dtype=np.float64) + 0.5) * width - 40.0 * scale
    weights = laplace.pdf(noise, scale=scale) * width
    hit, false = (laplace.sf(noise - moved, scale=2.0 * cap / second) for moved in (gap, -gap))
    found = []
    for large in range(1, cap + 1):
        law = np.zeros(cap + 1)
        right = [binom.pmf(i, large, hit) for i in range(large + 1)]
        wrong = [binom.pmf(j, entries - large, false) for j in range(cap + 1)]
        for i, j in itertools.product(range(large + 1), range(cap + 1)):
            if i + j < cap:
                law[i + j] += float(weights @ (right[i] * wrong[j]))
        law[cap] = float(np.sum(weights)) - float(np.sum(law[:cap]))
        found.append(float(law[1:] @ scales[1:] / np.sum(law[1:])))
    return np.array(found)


def least_steps_that_gain(epsilon: float, delta: float) -> int:
    """The least k at which k randomised responses are exactly ((k - 2) epsilon, delta)-private: summed in doubles."""
    keep = 1.0 / (1.0 + math.exp(-epsilon))

    def gains(k: int) -> bool:
        lies = np.arange(k + 1)
        losses = (k - 2.0 * lies) * epsilon
        return bool(binom.pmf(lies, k, 1.0 - keep) @ np.maximum(-np.expm1((k - 2) * epsilon - losses), 0.0) <= delta)

    return next(filter(gains, itertools.count(2)))


def _gains(epsilon: float, delta: float, steps: int, price: float) -> Array:
    """By how much one bit's law exceeds exp(price) times the other's, at each of the 4**steps outputs, in order.

    Of so many randomised responses with failures.
    """
    truth = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    lie = (1.0 - delta) / (1.0 + math.exp(epsilon))
    single = np.array([delta, truth, lie, 0.0]), np.array([0.0, lie, truth, delta])
    upper = lower = np.ones(1)
    for _ in range(steps):
        upper, lower = np.outer(upper, single[0]).ravel(), np.outer(lower, single[1]).ravel()
    return np.maximum(upper - math.exp(price) * lower, 0.0)


def largest_prefix_free_sum(epsilon: float, delta: float, stops: Sequence[int], prices: Sequence[float]) -> float:
    """The maximum of equation (3) (Theorem 15) over sets of outputs of which none is a prefix of another.

    Over all 4**stop outputs themselves, each of which is in its set or leaves its continuations to be.
    """
    values = np.zeros(4 ** stops[-1])
    for stop, price in zip(reversed(stops), reversed(prices), strict=True):
        here = _gains(epsilon, delta, stop, price)
        values = np.maximum(here, values.reshape(len(here), -1).sum(axis=1))
    return math.fsum(values.tolist())


def sum_over_stops(epsilon: float, delta: float, stops: Sequence[int], prices: Sequence[float]) -> float:
    """Equation (4), Lemma 11 with optimal composition: the sets of each stopping point by themselves."""
    return sum(math.fsum(_gains(epsilon, delta, *at).tolist()) for at in zip(stops, prices, strict=True))
