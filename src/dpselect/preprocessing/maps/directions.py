"""The direction of a row, without its length. If all cells are of one kind, also without their mean."""

from __future__ import annotations

import numpy as np

from dpselect.learners.fixed_point import truncate
from dpselect.numerics.search import Array
from dpselect.preprocessing.maps.row_map import MAPS, MapOfRows, MapOfTables, directions

__all__ = ["DirectionOfRow", "Standardized"]


@MAPS.register("direction")
class DirectionOfRow(MapOfTables):
    """Each number becomes its place between its bounds, from -1 to 1. Then the row is scaled to norm 1.

    No row is shorter than a private learner's noise is made for. The length of a row is lost.

    Args:
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import RowDirection
    >>> RowDirection(bounds=(0, 2)).fit_transform([[1.3, 1.4], [1.0, 1.0]]).round(3)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    def _mapped(self, cells: Array) -> Array:
        row = self.encoded(cells)
        return directions(np.hstack([row.numbers, row.indicators]))


@MAPS.register("standardized")
class Standardized(MapOfRows):
    """From each row its own mean is taken, and what is left is scaled to norm 1.

    For rows whose cells are all of one kind: pixels, spectra, counts of words. Brightness and contrast go. A cell that
    is missing counts as zero.

    >>> from dpselect.preprocessing import RowStandardization
    >>> RowStandardization().fit_transform([[4.0, 1.0, 1.0], [5.0, 5.0, 5.0]]).round(3)
    array([[ 0.816, -0.408, -0.408],
           [ 0.   ,  0.   ,  0.   ]])
    """

    def _width(self, columns: int) -> int:
        return columns

    def _mapped(self, cells: Array) -> Array:
        values = np.nan_to_num(cells, nan=0.0)
        largest = np.max(np.abs(values), axis=1, initial=0.0, keepdims=True)
        # in fixed point, so that the sum over a row is exact regardless of the order of its terms
        shape = truncate(values / np.where(largest > 0.0, largest, 1.0))
        return directions(shape - np.sum(shape, axis=1, keepdims=True) / cells.shape[1])
