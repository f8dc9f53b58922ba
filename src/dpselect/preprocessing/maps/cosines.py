"""Numbers as waves of several lengths, alone or beside the direction of their row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.errors import integer
from dpselect.learners.waves import cosines
from dpselect.numerics.search import Array
from dpselect.preprocessing.maps.row_map import MAPS, MapOfTables, directions, within_unit_ball

__all__ = ["DirectionAndWaves", "Waves"]


@MAPS.register("cos4")
@dataclass(kw_only=True, eq=False, repr=False)
class Waves(MapOfTables):
    """Each number becomes its first waves: a linear model on them is a smooth function of each column by itself.

    Let u be the place of the number between its bounds, from -1 to 1, and k = 1, ..., `waves`. The waves are
    w_k sin(pi k u / 2) for odd k and w_k cos(pi k u / 2) for even k. The w_k are proportional to 1/k and of norm 1. The
    indicators of the categorical columns follow. With d numbers and g categorical columns, all are multiplied by
    1.2/sqrt(d + 2 g). Rows that are then longer than 1 are scaled to 1.

    Args:
        waves: how many, 1 to 64.
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import Cosines
    >>> Cosines(bounds=(0, 1), waves=2).fit_transform([[0.5], [1.0], [float("nan")]]).round(2)
    array([[ 0.  ,  0.54],
           [ 0.89, -0.45],
           [ 0.  ,  0.  ]])
    """

    waves: int = 4

    def _columns_out(self, numbers: int, indicators: int) -> int:
        return numbers * integer("waves", self.waves, at_least=1, at_most=64) + indicators

    def _mapped(self, cells: Array) -> Array:
        return cosines(self.encoded(cells), int(self.waves))


@MAPS.register("joint")
class DirectionAndWaves(Waves):
    """`RowDirection` beside `Cosines`, each divided by the root of 2: straight lines are learnt quickly too.

    Of use for classification with few rows or little privacy.

    Args:
        waves: how many of `Cosines`, 1 to 64.
        bounds: the least and the largest value of every column of numbers, or one such pair for each of them, public.
        indicators: the places of the columns that are indicators, a list for each categorical column.

    >>> from dpselect.preprocessing import DirectionAndCosines
    >>> DirectionAndCosines(bounds=(0, 1), waves=1).fit_transform([[0.75], [0.0]]).round(3)
    array([[ 0.707,  0.6  ],
           [-0.707, -0.707]])
    """

    def _columns_out(self, numbers: int, indicators: int) -> int:
        return numbers + indicators + super()._columns_out(numbers, indicators)

    def _mapped(self, cells: Array) -> Array:
        row = self.encoded(cells)
        straight = directions(np.hstack([row.numbers, row.indicators]))
        return within_unit_ball(np.hstack([straight, cosines(row, int(self.waves))]) / math.sqrt(2.0))
