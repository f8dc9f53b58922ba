"""How the cells of a column are handled: counts of five fates, of which each row has exactly one by its own cell.

So one row more or less changes one count by one, and a replaced row two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.tables.categories import is_missing

__all__ = [
    "FATES",
    "INSIDE",
    "MISSING",
    "NO_FATES",
    "NO_VALUE",
    "UNREADABLE",
    "block_fates",
    "is_missing_text",
    "lost_fates",
    "number_fates",
    "tally",
    "text_fates",
]

FATES: Final = ("inside", "below", "above", "missing", "unreadable")
"""Within the bounds (or one of the categories), clipped at either end, empty, holding what cannot be read."""
INSIDE, BELOW, ABOVE, MISSING, UNREADABLE = range(5)
NO_VALUE: Final = frozenset({"", "nan", "-nan", "na", "n/a", "#n/a", "#na", "<na>", "null", "none", "nat"})
"""Cells that R, pandas, spreadsheets and databases write where there is no value, in lower case."""

Block = tuple[NDArray[Any], NDArray[np.bool_] | None]
"""Values, and which of them are there; None for all but NaN and NaT."""
Fates = NDArray[np.int64]
"""A count for each of `FATES`."""
NO_FATES: Final[Fates] = np.zeros(len(FATES), dtype=np.int64)
NO_FATES.setflags(write=False)


def is_missing_text(cell: Any) -> bool:
    """Whether a cell is empty, or says by itself that it has no value.

    >>> is_missing_text(" NA "), is_missing_text(None), is_missing_text("unknown")
    (True, True, False)
    """
    return cell.strip().lower() in NO_VALUE if isinstance(cell, str) else is_missing(cell)


def tally(fates: NDArray[Any]) -> Fates:
    """How many rows have each fate."""
    return np.bincount(fates, minlength=len(FATES)).astype(np.int64)


def number_fates(
    values: NDArray[Any], low: Any, high: Any, present: NDArray[np.bool_] | None = None
) -> NDArray[np.int8]:
    """The fate of each number, or tick of a time stamp, shape (rows,); NaN, NaT and what is not present are missing.

    >>> [FATES[fate] for fate in number_fates(np.array([1.0, -2.0, np.nan, 9.0]), 0.0, 5.0)]
    ['inside', 'below', 'missing', 'above']
    """
    there = np.asarray(values == values, dtype=bool) if present is None else np.asarray(present & (values == values))
    numbers = values.view(np.int64) if values.dtype.kind == "M" else values
    found = np.full(len(values), INSIDE, dtype=np.int8)
    found[_below(numbers, low)] = BELOW
    found[_above(numbers, high)] = ABOVE
    found[~there] = MISSING
    return found


def _below(values: NDArray[Any], low: Any) -> NDArray[np.bool_]:
    if values.dtype.kind in "iu":
        info, least = np.iinfo(values.dtype), math.ceil(low)
        if not info.min < least <= info.max:
            return np.full(len(values), least > info.max)
        return np.asarray(values < values.dtype.type(least))
    return np.asarray(values < _end(values.dtype, low), dtype=bool)


def _above(values: NDArray[Any], high: Any) -> NDArray[np.bool_]:
    if values.dtype.kind in "iu":
        info, most = np.iinfo(values.dtype), math.floor(high)
        if not info.min <= most < info.max:
            return np.full(len(values), most < info.min)
        return np.asarray(values > values.dtype.type(most))
    return np.asarray(values > _end(values.dtype, high), dtype=bool)


def _end(dtype: np.dtype[Any], end: Any) -> Any:
    """A bound as the type of the values holds it: a cell 0.1 of four bytes is not beyond 0.1."""
    if dtype.kind != "f":
        return end
    with np.errstate(over="ignore"):
        return dtype.type(end)


def text_fates(
    cells: Sequence[Any], places: NDArray[np.int64], missing: Callable[[Any], bool] = is_missing_text
) -> NDArray[np.int8]:
    """The fate of each cell of a column of categories, from its place among them, -1 for none."""
    found = np.full(len(cells), INSIDE, dtype=np.int8)
    for row in np.flatnonzero(places < 0).tolist():
        found[row] = MISSING if missing(cells[row]) else UNREADABLE
    return found


def lost_fates(
    fates: NDArray[np.int8], cells: Sequence[Any], missing: Callable[[Any], bool] = is_missing_text
) -> NDArray[np.int8]:
    """The same, once the texts of the rows tell which cells without a value hold something."""
    found = fates.copy()
    for row in np.flatnonzero(fates == MISSING).tolist():
        if not missing(cells[row]):
            found[row] = UNREADABLE
    return found


def block_fates(
    blocks: Callable[[], Iterator[Block]],
    low: Any,
    high: Any,
    written: Callable[[], Iterator[tuple[Block, Sequence[Any]]]] | None = None,
    missing: Callable[[Any], bool] = is_missing_text,
) -> Fates:
    """The counts of a column in blocks, which is read once, or twice if a cell has no value.

    `written` are blocks as well, each with its cells as they are written: of a column read from text these say whether
    a cell without a value is empty or holds something. None for a column whose type leaves nothing else to hold. A
    block and its cells come from one reading, so that a row has one fate no matter what the other reading makes of it.
    """
    counts = NO_FATES
    for values, present in blocks():
        counts = counts + tally(number_fates(values, low, high, present))
    if written is None or not counts[MISSING]:
        return counts
    counts = NO_FATES
    for (values, present), cells in written():
        counts = counts + tally(lost_fates(number_fates(values, low, high, present), cells, missing))
    return counts
