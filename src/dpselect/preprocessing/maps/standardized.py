"""Rows of one kind of number, each compared with its own mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.fixed_point import truncate
from dpselect.preprocessing.maps.row_map import MAPS, MapOfRows, directions

__all__ = ["Standardized"]

Array = NDArray[np.float64]


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
        # in fixed point, so that the sum over a row is exact whatever the order of its terms
        shape = truncate(values / np.where(largest > 0.0, largest, 1.0))
        return directions(shape - np.sum(shape, axis=1, keepdims=True) / cells.shape[1])
