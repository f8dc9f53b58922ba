"""The rows that train and those that score, by a public hash of each row alone or of its position."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.containers import is_frame, is_pandas, numpy_kind
from dpselect.privacy import Adjacency
from dpselect.study.row_parts import split_words
from dpselect.tables.row_digests import numbered, row_digest

__all__ = ["Part", "contents", "parts_by", "rows_to_parts"]

Part = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the rows that a model is trained on, and of those that score it."""


def rows_to_parts(
    X: Any,
    labels: NDArray[Any],
    *,
    adjacency: Adjacency,
    salt: str,
    fraction: float | None,
    folds: int | None,
    own_scores: bool = False,
    y: Any = None,
) -> list[Part]:
    """The parts of one run: one pair, or one for each fold. All rows train if nothing is held out.

    With `own_scores` they score as well.

    Under add_or_remove_one a row's part is a hash of its content, so that adding or removing a row moves no other. Rows
    may be the same to the last byte of typed columns of numbers, and of the label in `y`. Each of those has the part of
    its content and of how many such rows are before it. So as collections without an order the parts differ by the row
    that is added or removed (`dpselect.study.row_parts` has the argument). In other containers, cells of equal content
    may still be told apart, or become equal by the content of another row. There equal rows share a part, as they do
    without `y`. Under replace_one it is a hash of the row's position.
    """
    digests = [b""] * len(labels)
    if adjacency is not Adjacency.REPLACE_ONE and (fraction is not None or folds is not None):
        digests = _with_numbers(contents(X, labels), _same(X, y))
    return parts_by(digests, adjacency=adjacency, salt=salt, fraction=fraction, folds=folds, own_scores=own_scores)


def parts_by(
    digests: Sequence[bytes],
    *,
    adjacency: Adjacency,
    salt: str,
    fraction: float | None,
    folds: int | None,
    own_scores: bool = False,
) -> list[Part]:
    """The same by a digest of each row, which is that of its person if a person's rows share a part."""
    everything, nothing = np.arange(len(digests)), np.arange(0)
    if fraction is None and folds is None:
        return [(everything, everything if own_scores else nothing)]
    words = split_words(digests, adjacency=adjacency, salt=salt)
    if folds is None:
        assert fraction is not None
        held_out = [words < np.uint64(int(fraction * 2.0**64))]
    else:
        held_out = [words % np.uint64(folds) == fold for fold in range(folds)]
    return [(everything[~mask], everything[mask]) for mask in held_out]


def contents(X: Any, labels: NDArray[Any]) -> list[bytes]:
    """A digest of each row that depends on that row alone: not on a type that other rows give a column."""
    table = np.asarray(X)
    if table.dtype.kind in "biuf":
        rows = table.astype(np.float64)
        contents = [row.tobytes() for row in rows]
    else:
        contents = [b"".join(map(_cell, row)) for row in np.asarray(X, dtype=object).tolist()]
    return [row_digest(row, label.tobytes()) for row, label in zip(contents, labels, strict=True)]


def _with_numbers(digests: list[bytes], same: list[bytes | None]) -> list[bytes]:
    """Digests of rows, of those that are the same with their number among them. None is the same as no other."""
    before: Counter[bytes | None] = Counter()
    found = []
    for digest, content in zip(digests, same, strict=True):
        found.append(digest if content is None else numbered(digest, before[content]))
        before[content] += 1
    return found


def _same(X: Any, y: Any) -> list[bytes | None]:
    """Bytes of each row that are equal for those which no one can tell apart, by the types of the columns. Else None.

    A type is part of the schema, as is whether there is an index with a content of its own: no row decides it.
    """
    columns, label = _typed_columns(X), numpy_kind(y)
    nothing: list[bytes | None] = [None] * len(X)
    if columns is None or label is None or label not in "biufUSO":
        return nothing
    raw = np.hstack([np.ascontiguousarray(part).view(np.uint8) for part in columns])
    return [_with_label(row.tobytes(), cell) for row, cell in zip(raw, np.asarray(y).tolist(), strict=True)]


def _typed_columns(X: Any) -> list[NDArray[Any]] | None:
    """Tables of one type each, or None if a column is not of numbers or rows have names."""
    if not is_frame(X):
        numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        return [X] if numbers else None
    if not is_pandas(X) or type(X.index).__name__ != "RangeIndex":  # a mere range of positions
        return None
    types = list(X.dtypes)
    if not types or not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in types):
        return None
    return [X.iloc[:, [place]].to_numpy() for place in range(X.shape[1])]


def _with_label(row: bytes, label: Any) -> bytes | None:
    if isinstance(label, float):
        return row + struct.pack("<d", label)
    text = f"{type(label).__name__}:{label}".encode("utf-8", "surrogatepass")
    return row + text if isinstance(label, (str, bytes, int)) else None


def _cell(value: Any) -> bytes:
    if value is None:  # which is NaN where every other row has a number
        value = math.nan
    try:
        return struct.pack("<d", float(value))
    except Exception:  # the cell's own code may raise anything
        pass
    try:
        text = str(value).encode("utf-8", "surrogatepass")
    except Exception:  # as for whole numbers of more than 4,300 digits
        text = type(value).__name__.encode("utf-8", "surrogatepass")
    return b"text%d:" % len(text) + text
