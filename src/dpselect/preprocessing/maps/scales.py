"""Numbers, or amounts by their order of magnitude, by their place between their bounds: the middle becomes zero."""

from __future__ import annotations

import math

import numpy as np

from dpselect.numerics.search import Array
from dpselect.preprocessing.maps.row_map import MAPS, MapOfTables, within_unit_ball

__all__ = ["Centered", "Logarithms"]


@MAPS.register("centered")
class Centered(MapOfTables):
    """Each number becomes its place between its bounds, from -1 to 1. All are divided by the root of the columns.

    Private learners clip rows to a norm. A constant part of all rows uses that norm up and tells nothing, such as the
    half of columns that are scaled to [0, 1]. The middle of the bounds is the best guess of it that costs nothing
    (Sun, Suresh, Menon 2024, "The importance of feature preprocessing for differentially private linear optimization").

    Args:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import CenteredScale
    >>> CenteredScale(bounds=[(0, 10), (-1, 1)]).fit_transform([[10.0, 0.0], [2.5, float("nan")]]).round(3)
    array([[ 0.707,  0.   ],
           [-0.354,  0.   ]])
    """

    def _mapped(self, cells: Array) -> Array:
        row = self.encoded(cells)
        return within_unit_ball(np.hstack([row.numbers, row.indicators]) / math.sqrt(row.columns))


@MAPS.register("log")
class Logarithms(Centered):
    """`CenteredScale` of log(1 + x - least): for amounts that are mostly small and sometimes very large.

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
