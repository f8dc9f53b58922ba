"""Amounts by their order of magnitude."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpselect.preprocessing.maps.centered import Centered
from dpselect.preprocessing.maps.row_map import MAPS

__all__ = ["Logarithms"]

Array = NDArray[np.float64]


@MAPS.register("log")
class Logarithms(Centered):
    """`CenteredScale` of log(1 + x - least): for amounts of which most are small and some are very large.

    Args:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
            The difference counts in the units of the column, in which 1 should be small.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import LogScale
    >>> LogScale(bounds=(0, 999)).fit_transform([[0.0], [99.0], [999.0]]).round(3).ravel()
    array([-1.   ,  0.333,  1.   ])
    """

    def _scaled(self, values: Array, low: Array, high: Array) -> Array:
        with np.errstate(over="ignore"):
            longest = np.minimum(high - low, np.finfo(np.float64).max)
            above = np.minimum(values - low, longest)
        return np.clip(2.0 * np.log1p(above) / np.log1p(longest) - 1.0, -1.0, 1.0)
