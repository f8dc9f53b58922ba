"""Gaussian noise as whole numbers of grid steps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import number
from dpselect.randomness import RandomSource, discrete_gaussian_array

__all__ = ["gaussian_steps"]

_LEAST, _MOST = 2.0**24, 2.0**56


def gaussian_steps(
    deviation: float, size: int | tuple[int, ...], random: RandomSource | None = None
) -> NDArray[np.int64]:
    """Gaussian noise of standard deviation `deviation` grid steps, rounded to whole steps.

    The law is that of a continuous Gaussian rounded to the nearest whole number, as `add_on_grid` needs it. Adding it
    to a whole number on the same grid is a post-processing of the continuous Gaussian mechanism.

    What is drawn is the discrete Gaussian with this parameter, exactly. The mass of a cell of the rounded Gaussian is
    the density at its middle times 1 + (y^2/s^2 - 1)/(24 s^2) + ..., so at s >= 2**24 the two laws agree to a factor
    1 +- 2**-46 up to eight deviations, beyond which both have mass below 2**-49. The factor and the 2**-49 are not part
    of any guarantee.

    The time it takes depends on the draws only. Raises `ArgumentError` unless 2**24 <= deviation <= 2**56.

    >>> bool(abs(gaussian_steps(2.0**30, 1000)).max() < 10 * 2**30)
    True
    """
    number("deviation", deviation, at_least=_LEAST, at_most=_MOST)
    return discrete_gaussian_array(Fraction(deviation) ** 2, size, random)
