"""Gaussian steps with a stopping rule, priced by where they stop: the exact delta, bracketed from above.

Hartmann, Bindschaedler, Bentkamp, West (2022), Theorem 15, find the delta of an iterative mechanism as a maximum over
stopping rules. For Gaussian steps that is an optimal-stopping problem for a random walk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import SupportsFloat

import numpy as np
from scipy.special import ndtr

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array

__all__ = ["stopping_delta"]

_INFLATE = 1.0 + 1e-12
"""On the information of each level: more of it can only raise delta, and covers the rounding of differences."""
_ROUNDING = 1.0 + 1e-6
"""On the result. A weight of the kernel is a difference of cell masses (13 digits) divided by the cell's width in loss
(above 1e-8 for the multipliers allowed); what is split wrongly goes to the neighbouring grid point, whose value is
nearly the same."""
_LEAST, _MOST = 0.05, 2.0**14
_FAR = 12.0
"""The kernel is clipped this many deviations out; the mass beyond (1e-32) is counted with value 1."""


def stopping_delta(
    *, noise_multipliers: Sequence[SupportsFloat], epsilons: Sequence[SupportsFloat], points: int = 4000
) -> float:
    """The smallest delta for which stopping at level i may be priced at epsilons[i], regardless of the stopping rule.

    After level i everything released so far is as informative as one Gaussian mechanism of noise multiplier
    `noise_multipliers[i]` (strictly decreasing). The rule may look at what was released. Both directions, every
    dimension, every sensitivity up to the nominal one. An upper bound: the value function of the stopping problem is
    convex in exp(-loss), so chords on a grid of about `points` losses are above it. The bound falls to the exact value
    with the square of the grid's width. Takes about `points`**2 operations a level at most.

    Source: Hartmann et al. 2022, Theorem 15; docs/theory/noise-reduction.md, Theorem 5 (for Gaussian steps).

    Raises `ArgumentError` for multipliers that are not strictly decreasing or outside [0.05, 2**14], where the grid
    does not serve, and for lists of different length.

    >>> one = stopping_delta(noise_multipliers=[1.0], epsilons=[1.0])  # the Gaussian profile: 0.126936737...
    >>> 0.126936737 <= one < 0.12694
    True
    """
    deviations = [number("noise_multipliers", value, at_least=_LEAST, at_most=_MOST) for value in noise_multipliers]
    prices = [number("epsilons", value, at_least=0.0, rounding="up") for value in epsilons]
    points = integer("points", points, at_least=100, at_most=20_000)
    if not deviations or len(deviations) != len(prices):
        raise ArgumentError("noise_multipliers and epsilons must be of one length, at least one level")
    if any(not high > low for high, low in pairwise(deviations)):
        raise ArgumentError("noise_multipliers must be strictly decreasing")
    information = [_INFLATE / deviation**2 for deviation in deviations]
    steps = np.diff([0.0, *information])
    spread = math.sqrt(information[-1])
    # a lower price can only raise delta; beyond this the pay-off is below exp(-800)
    prices = [min(price, information[-1] / 2.0 + 40.0 * spread) for price in prices]
    length = 12.0 * spread + information[-1] / 2.0 + max(prices)
    width = length / points
    below = math.ceil(6.0 * spread / width)
    losses = (np.arange(points + 1, dtype=np.float64) - below) * width

    value = _payoff(prices[-1], losses)
    for price, step in zip(prices[-2::-1], steps[:0:-1], strict=True):
        value = np.maximum(_payoff(price, losses), _expected(value, width, float(step)))
    start = _expected(value, width, float(steps[0]))[below]
    return min(float(start) * _ROUNDING, 1.0)


def _payoff(price: float, losses: Array) -> Array:
    """The delta that stopping here adds for each unit of mass: (1 - exp(price - loss))_+."""
    return np.asarray(-np.expm1(np.minimum(price - losses, 0.0)))


def _expected(value: Array, width: float, step: float) -> Array:
    """An upper bound on the expected value after a step, at each loss of the grid.

    The loss moves by a Gaussian of mean step/2 and variance step; under the other law, whose density is exp(-move)
    times this one's, of mean -step/2. Between grid points the value is at most its chord in exp(-loss), whose
    expectation needs the masses of the cell under both laws only.
    """
    count = len(value) - 1
    deviation = math.sqrt(step)
    reach = min(math.ceil((_FAR * deviation + step) / width) + 1, count)
    edges = np.arange(-reach, reach + 1, dtype=np.float64) * width
    near, far = _masses(edges, step / 2.0, deviation), _masses(edges, -step / 2.0, deviation)
    # a cell's chord: weight on its left end, where exp(-move) is larger
    high, low = np.exp(-edges[:-1]), np.exp(-edges[1:])
    left = np.clip((far - low * near) / (high * -math.expm1(-width)), 0.0, near)
    right = near - left
    kernel = np.append(left, 0.0) + np.append(0.0, right)  # on moves of -reach .. reach cells

    # below the grid the value is at most the lowest one; above it, at most the chord from the top to 1 at no mass
    above = 1.0 - (1.0 - value[-1]) * np.exp(-np.arange(1, reach + 1) * width)
    padded = np.concatenate((np.full(reach, value[0]), value, above))
    cut = float(ndtr((step / 2.0 - edges[-1]) / deviation) + ndtr((edges[0] - step / 2.0) / deviation))
    return np.minimum(np.correlate(padded, kernel, mode="valid") + cut, 1.0)


def _masses(edges: Array, mean: float, deviation: float) -> Array:
    """The Gaussian masses of the cells between the edges, each from the nearer tail."""
    z = (edges - mean) / deviation
    upper = z[:-1] > 0.0
    return np.asarray(np.where(upper, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1])))
