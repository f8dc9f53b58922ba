"""Numbers as waves of several lengths: rows on which a linear model is a smooth function of each column."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpselect.learners.encoding import Encoded
from dpselect.learners.rows import unit_rows
from dpselect.numerics.search import Array

__all__ = ["STRETCH", "cosines"]

STRETCH: Final = 1.2
"""Few rows come near the norm that all together could have; those that do are scaled down."""


def cosines(row: Encoded, waves: int) -> Array:
    """Return the images of encoded rows, as `dpselect.preprocessing.Cosines` describes them, shape (rows, features).

    Their norm is at most 1, exactly.
    """
    weight = 1.0 / math.sqrt(math.fsum(1.0 / (k * k) for k in range(1, waves + 1)))
    angle = row.numbers * (math.pi / 2.0)
    parts = [(np.sin if k % 2 else np.cos)(k * angle) * row.present * (weight / k) for k in range(1, waves + 1)]
    stacked = np.hstack([np.stack(parts, axis=2).reshape(len(angle), angle.shape[1] * waves), row.indicators])
    return unit_rows(stacked * (STRETCH / math.sqrt(row.columns + row.groups)), 1.0, intercept=False)
