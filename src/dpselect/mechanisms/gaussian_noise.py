"""Gaussian noise as whole numbers of grid steps, drawn by rejection so that no part of the grid is left out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import number
from dpselect.randomness import RandomSource, resolve

__all__ = ["gaussian_steps"]

_LEAST, _MOST = 2.0**24, 2.0**56
_GEOMETRIC = np.array([int(math.exp(-k) * 2.0**64) for k in range(44, 0, -1)], dtype=np.uint64)
"""P(V >= k) * 2**64 for k = 44, ..., 1, where V is geometric with ratio exp(-1); ascending."""


def gaussian_steps(
    deviation: float, size: int | tuple[int, ...], random: RandomSource | None = None
) -> NDArray[np.int64]:
    """Gaussian noise of standard deviation `deviation` grid steps, rounded to whole steps.

    The law is that of a continuous Gaussian rounded to the nearest whole number, as `add_on_grid` needs it. Adding it
    to a whole number on the same grid is a post-processing of the continuous Gaussian mechanism.

    Why not invert the distribution function of a 64-bit word: such a draw has 2**64 equally likely values, and a grid
    as fine as the sums here (2**-32 of a step or less) sees the gaps between them. Here a proposal covers every whole
    number and a coin accepts it (Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy",
    Algorithms 2 and 3): with t a power of two near the deviation s, U uniform in {0, ..., t-1}, V geometric with ratio
    exp(-1), Y = U + t*V and a random sign, acceptance with probability exp(V - Y^2/(2 s^2) - s^2/(2 t^2)) <= 1 leaves
    P(Y) proportional to exp(-Y^2/(2 s^2)).

    Precision. Against the rounded Gaussian: the mass of a cell is the density at its middle times
    1 + (y^2/s^2 - 1)/(24 s^2) + ..., so at s >= 2**24 the discrete law agrees to a factor 1 +- 2**-46 up to eight
    deviations, the floating-point exponent adds a factor 1 +- 2**-45 there, and the 64-bit coins move at most 2**-57
    of total mass. Together: within a factor 1 +- 2**-44 outside an event of probability 2**-49 a draw, nearly all of
    which is the tail beyond eight deviations, where both laws agree to 2**-57 of mass. The factor and the 2**-57 are
    not part of any guarantee.

    The number of rounds depends on the draws only. Raises `ArgumentError` unless 2**24 <= deviation <= 2**56.

    >>> bool(abs(gaussian_steps(2.0**30, 1000)).max() < 10 * 2**30)
    True
    """
    deviation = number("deviation", deviation, at_least=_LEAST, at_most=_MOST)
    random = resolve(random)
    exponent = round(math.log2(deviation))
    step = np.uint64(2**exponent)
    ratio = math.ldexp(deviation, -exponent)
    count = int(np.prod(size))
    drawn = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        # About 0.48 of the proposals are accepted.
        words = random.words((3, int(2.2 * (count - filled)) + 64))
        low = words[0] & (step - np.uint64(1))
        high = (len(_GEOMETRIC) - np.searchsorted(_GEOMETRIC, words[1], side="right")).astype(np.float64)
        y = high + np.ldexp(low.astype(np.float64), -exponent)
        accept = np.exp(high - y * y / (2.0 * ratio * ratio) - 0.5 * ratio * ratio)
        negative = words[0] >> np.uint64(63) == 1
        kept = (_unit(words[2]) < accept) & ~(negative & (low == 0) & (high == 0.0))
        magnitude = (high.astype(np.int64) << exponent) + low.astype(np.int64)
        found = np.where(negative, -magnitude, magnitude)[kept][: count - filled]
        drawn[filled : filled + len(found)] = found
        filled += len(found)
    return drawn.reshape(size)


def _unit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A 64-bit word as a fraction of 2**64; its rounding to a double is relative, so small coins stay fair."""
    return np.ldexp(words.astype(np.float64), -64)
