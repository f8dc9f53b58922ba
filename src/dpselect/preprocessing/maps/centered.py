"""The middle of the bounds becomes zero."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpselect.preprocessing.maps.row_map import MAPS, MapOfTables, within_unit_ball

__all__ = ["Centered"]

Array = NDArray[np.float64]


@MAPS.register("centered")
class Centered(MapOfTables):
    """Each number becomes its place between its bounds, from -1 to 1; all are divided by the root of the columns.

    Private learners clip rows to a norm. A constant part of all rows, such as the half of columns that are scaled to
    [0, 1], uses that norm up and tells nothing; the middle of the bounds is the best guess of it that costs nothing
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
        row = self._encoded(cells)
        return within_unit_ball(np.hstack([row.numbers, row.indicators]) / math.sqrt(row.columns))
