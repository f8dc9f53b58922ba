"""Adding noise on a grid, so that a released number carries no low-order floating-point bits of the data."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.scores import as_vector
from dpselect.randomness import RandomSource, discrete_gaussian_array

__all__ = [
    "add_on_grid",
    "gaussian_integers",
    "gaussian_steps",
    "grid_at_most",
    "round_to_grid",
    "rounding_sensitivity",
]

_EXACT = 2.0**52
"""Multiples of the granularity up to this many times it, and sums of two of them, are exact doubles."""
_FINE = 25
"""A standard deviation has at least 2**24 steps of the grid that is rounded to integers."""


def grid_at_most(limit: float) -> float:
    """The largest power of two that is not above `limit`. A granularity must be a power of two.

    >>> grid_at_most(0.3)
    0.25
    """
    return math.ldexp(0.5, math.frexp(number("limit", limit, above=0.0))[1])


def _granularity(granularity: float) -> float:
    parsed = number("granularity", granularity, above=0.0)
    if math.frexp(parsed)[0] != 0.5:
        raise ArgumentError(f"granularity must be a power of two, got {granularity!r}")
    return parsed


def _units(values: ArrayLike, granularity: float) -> NDArray[np.float64]:
    """floor(x/granularity + 1/2), clipped at 2**52: x to the grid, ties upwards.

    The division by a power of two and the distance to the floor are exact, so this is the function of real numbers
    that `add_on_grid` speaks of. (`numpy.rint` is not: it sends 0.5 to 0 and 1.5 to 2.)
    """
    finite = np.nan_to_num(as_vector("values", values), nan=0.0, posinf=0.0, neginf=0.0)
    with np.errstate(over="ignore"):
        scaled = np.clip(finite / granularity, -_EXACT, _EXACT)
    floor = np.floor(scaled)
    return np.asarray(floor + (scaled - floor >= 0.5))


def round_to_grid(values: ArrayLike, granularity: float) -> NDArray[np.float64]:
    """Each value's nearest multiple of `granularity`, upwards at a tie.

    Non-finite values become zero and values beyond 2**52 granularities are clipped there. This is a function of the one
    value alone, so that the caller's sensitivity still covers it. It is never an error, which would tell something of
    the data. Raises `ArgumentError` unless `granularity` is a power of two.

    >>> round_to_grid([0.3, -0.125, 0.125], 0.25)
    array([0.25, 0.  , 0.25])
    """
    granularity = _granularity(granularity)
    return _units(values, granularity) * granularity


def add_on_grid(value: ArrayLike, noise: ArrayLike, granularity: float) -> NDArray[np.float64]:
    """Round `value` and `noise` to multiples of `granularity` (a power of two) and add them, exactly.

    Claim. Write R for rounding to the grid, upwards at ties. The result is R(v + z), the same rounding applied to the
    continuous mechanism v + z, where v = R(value) and z is the noise. It is therefore a post-processing of that
    mechanism and has every privacy guarantee that it has.

    Proof. R(x) = g*floor(x/g + 1/2). If v = k*g with k whole, then R(v + z) = g*floor(k + z/g + 1/2) = v + R(z). Both
    terms are whole multiples of g, at most 2**52 of them in magnitude, so the double-precision sum is the exact one.

    Charged sensitivity. The mechanism is applied to R(value), not to value. Rounding moves a coordinate by at most g/2,
    so on neighbouring data the distance grows by at most g*sqrt(d) in L2 (g*d in L1) for d coordinates. Calibrate the
    noise to `sensitivity + rounding_sensitivity(d, g)`. Nothing is added when the value is on the grid already, as a
    sum of fixed-point numbers is.

    You must ensure the rest. The noise is a float64 too. The proof here is about the noise as a real number drawn from
    its continuous distribution. The sampler states how close its distribution, seen through this grid, is to that one.
    Floating-point error made while computing `value` is not covered: bound it, or compute it in fixed point.

    The shapes broadcast. Values beyond 2**52 granularities are clipped, which moves no two apart, and non-finite ones
    become zero. Raises `ArgumentError` for a granularity that is not a power of two and for noise that is not finite or
    beyond 2**52 granularities. Clipping the noise would not be a function of the sum. After Mironov, "On significance
    of the least significant bits for differential privacy" (2012), section 5.2.

    >>> add_on_grid([0.3, 1.0], [0.1, -0.6], 0.25)
    array([0.25, 0.5 ])
    """
    granularity = _granularity(granularity)
    steps = _units(noise, granularity)
    if not np.all(np.isfinite(noise)) or np.any(np.abs(steps) >= _EXACT):
        raise ArgumentError("noise must be finite and below 2**52 times the granularity")
    return (_units(value, granularity) + steps) * granularity


def rounding_sensitivity(dimension: int, granularity: float) -> float:
    """The most that rounding a vector to the grid adds to its L2 sensitivity: granularity * sqrt(dimension), rounded
    up.

    >>> rounding_sensitivity(4, 0.25) >= 0.5
    True
    """
    dimension = integer("dimension", dimension, at_least=0, at_most=1 << 1000)
    return _granularity(granularity) * math.sqrt(dimension) * (1.0 + 2.0**-50)


def gaussian_steps(
    deviation: float, size: int | tuple[int, ...], random: RandomSource | None = None
) -> NDArray[np.int64]:
    """Gaussian noise of standard deviation `deviation` grid steps, rounded to whole steps.

    The law is that of a continuous Gaussian rounded to the nearest integer, as `add_on_grid` needs it. Adding it
    to an integer on the same grid is a post-processing of the continuous Gaussian mechanism.

    The sample is the discrete Gaussian with this parameter, exactly. The mass of a cell of the rounded Gaussian is the
    density at its middle times 1 + (y^2/s^2 - 1)/(24 s^2) + .... So at s >= 2**24 the two distributions agree to a
    factor 1 +- 2**-46 up to eight deviations. Beyond them both have mass below 2**-49. The factor and the 2**-49 are
    not part of any guarantee.

    The time it takes depends on the draws only. Raises `ArgumentError` unless 2**24 <= deviation <= 2**56.

    >>> bool(abs(gaussian_steps(2.0**30, 1000)).max() < 10 * 2**30)
    True
    """
    number("deviation", deviation, at_least=2.0**24, at_most=2.0**56)
    return discrete_gaussian_array(Fraction(deviation) ** 2, size, random)


def gaussian_integers(
    deviation: float, size: int | tuple[int, ...], random: RandomSource | None = None
) -> NDArray[np.int64]:
    """Gaussian noise of standard deviation `deviation`, rounded to integers: for integers of any deviation.

    Claim: adding it to integers is a post-processing of the continuous Gaussian mechanism on them. Proof: the noise is
    drawn on a grid of 2**-k by `gaussian_steps`, which has at least 2**24 steps in a deviation. An integer n is on this
    grid, so that n plus the noise there is a function of n + z. Rounding to integers is another, and
    rounding n + z is n plus rounding z. QED

    Raises `ArgumentError` unless 2**-20 <= deviation <= 2**56.

    >>> bool(abs(gaussian_integers(2.0, 1000)).max() < 20)
    True
    """
    number("deviation", deviation, at_least=2.0**-20, at_most=2.0**56)
    fine = max(0, _FINE - math.frexp(deviation)[1])
    steps = gaussian_steps(math.ldexp(deviation, fine), size, random)
    return np.asarray((steps + (1 << fine >> 1)) >> fine)
