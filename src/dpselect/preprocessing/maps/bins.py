"""Numbers as indicators of bins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.errors import integer
from dpselect.numerics.search import Array
from dpselect.preprocessing.maps.row_map import MAPS, MapOfTables, within_unit_ball

__all__ = ["Bins"]


@MAPS.register("bins")
@dataclass(kw_only=True, eq=False, repr=False)
class Bins(MapOfTables):
    """Each number becomes an indicator of the bin that it is in, of `bins` equal ones between its bounds.

    A linear model on bins is any function of each column by itself, where the rows pay for so many weights: with some
    thousand rows or more. All are divided by the root of the number of columns. A missing number is in no bin.

    Args:
        bins: how many, 2 to 4096.
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import PublicBins
    >>> PublicBins(bins=4, bounds=(0, 1)).fit_transform([[0.1], [0.5], [7.0]]) > 0
    array([[ True, False, False, False],
           [False, False,  True, False],
           [False, False, False,  True]])
    """

    bins: int = 16

    def _columns_out(self, numbers: int, indicators: int) -> int:
        return numbers * integer("bins", self.bins, at_least=2, at_most=4096) + indicators

    def _mapped(self, cells: Array) -> Array:
        row, bins = self.encoded(cells), int(self.bins)
        place = np.minimum(np.floor((row.numbers + 1.0) * (bins / 2.0)), bins - 1.0)
        here = (place[:, :, None] == np.arange(bins)) & row.present[:, :, None]
        flags = np.hstack([here.reshape(len(cells), place.shape[1] * bins), row.indicators])
        return within_unit_ball(flags / math.sqrt(row.columns))
