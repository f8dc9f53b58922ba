"""A map of every kind, and rows with odd cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpselect.preprocessing import (
    CenteredScale,
    Cosines,
    DirectionAndCosines,
    LogScale,
    OrientedGradients,
    PublicBins,
    RowDirection,
    RowStandardization,
)

ALL: dict[str, Any] = {
    "bins": PublicBins(bins=5, bounds=(-2, 3), indicators=[[4, 1], (7,)]),
    "centered": CenteredScale(bounds=[(-1, 1)] * 6 + [(0, 1e9)], indicators=[[0, 5]]),
    "cos4": Cosines(waves=7, bounds=(-2, 3), indicators=[[2, 3, 8]]),
    "direction": RowDirection(bounds=(-1e-3, 1e300)),
    "joint": DirectionAndCosines(bounds=(0, 1), indicators=[[0], [1], [2]]),
    "log": LogScale(bounds=(-1.7e308, 1.7e308)),
    "oriented-gradients": OrientedGradients(orientations=5, cell=3),
    "standardized": RowStandardization(),
}
ODD = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 0.5, 2.0**-17]


def rows(seed: int, count: int = 200) -> Any:
    """Rows of nine cells: ordinary ones, odd ones, constant ones, zeros."""
    random = np.random.default_rng(seed)
    table = random.normal(size=(count, 9)) * 10.0 ** random.integers(-3, 4, size=(count, 1))
    odd = random.random((count, 9)) < 0.2
    table[odd] = random.choice(ODD, size=int(odd.sum()))
    table[0], table[1], table[2] = 0.0, 7.25, math.nan
    table[3:11] = random.choice(ODD, size=table[3:11].shape)
    return table
