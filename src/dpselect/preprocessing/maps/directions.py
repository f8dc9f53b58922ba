"""The direction of a row, without its length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpselect.preprocessing.maps.row_map import MAPS, MapOfTables, directions

__all__ = ["DirectionOfRow"]

Array = NDArray[np.float64]


@MAPS.register("direction")
class DirectionOfRow(MapOfTables):
    """Each number becomes its place between its bounds, from -1 to 1; then the row is scaled to norm 1.

    No row is shorter than a private learner's noise is made for. What is lost is the length of a row.

    Args:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import RowDirection
    >>> RowDirection(bounds=(0, 2)).fit_transform([[1.3, 1.4], [1.0, 1.0]]).round(3)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    def _mapped(self, cells: Array) -> Array:
        row = self._encoded(cells)
        return directions(np.hstack([row.numbers, row.indicators]))
