"""Which rows train and which score, decided for each row by itself: a public hash of the row or of its position."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency
from dpselect.study.row_parts import row_digest, split_words

__all__ = ["Part", "rows_to_parts"]

Part = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the rows that a model is trained on, and of those that score it."""


def rows_to_parts(
    X: Any, labels: NDArray[Any], *, adjacency: Adjacency, salt: str, fraction: float | None, folds: int | None
) -> list[Part]:
    """The parts of one run: one pair, or one for each fold; all rows train when nothing is held out.

    Under add_or_remove_one a row's part is a hash of its content, so that adding or removing a row moves no other; rows
    of equal content share a part. Under replace_one it is a hash of its position.
    """
    count = len(labels)
    everything, nothing = np.arange(count), np.arange(0)
    if fraction is None and folds is None:
        return [(everything, nothing)]
    replace = adjacency is Adjacency.REPLACE_ONE
    digests = [b""] * count if replace else _digests(X, labels)
    words = split_words(digests, adjacency=adjacency, salt=salt)
    if folds is None:
        assert fraction is not None
        held_out = [words < np.uint64(int(fraction * 2.0**64))]
    else:
        held_out = [words % np.uint64(folds) == fold for fold in range(folds)]
    return [(everything[~mask], everything[mask]) for mask in held_out]


def _digests(X: Any, labels: NDArray[Any]) -> list[bytes]:
    """A digest of each row that depends on that row alone: not on a type that other rows give a column."""
    table = np.asarray(X)
    if table.dtype.kind in "biuf":
        rows = table.astype(np.float64)
        contents = [row.tobytes() for row in rows]
    else:
        contents = [b"".join(map(_cell, row)) for row in np.asarray(X, dtype=object).tolist()]
    return [row_digest(row, label.tobytes()) for row, label in zip(contents, labels, strict=True)]


def _cell(value: Any) -> bytes:
    if value is None:  # which is NaN where every other row has a number
        value = math.nan
    try:
        return struct.pack("<d", float(value))
    except (TypeError, ValueError, OverflowError):
        text = str(value).encode()
        return b"text%d:" % len(text) + text
