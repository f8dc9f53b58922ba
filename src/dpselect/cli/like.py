"""`--like FILE`: a public sample of a column, read as the private one will be, before anything is paid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from dpselect.errors import ArgumentError, ContentError
from dpselect.numerics.moments import FIRST, LAST
from dpselect.ordered import open_column
from dpselect.ordered.domains import Categories
from dpselect.tables import (
    MISSING,
    UNREADABLE,
    CsvForm,
    csv_header,
    csv_rows,
    is_csv,
    is_missing_text,
    number_in,
    place_of,
)

__all__ = ["check_like"]

_SHOWN: Final = 3


def check_like(
    like: str, column: str, *, most: float, categories: Sequence[str], dates: bool, form: CsvForm | None
) -> None:
    """Read the sample's column; a sample is public, so that errors may quote it.

    Raises `ArgumentError` for a sample without the column or of a type that is not read, `ContentError` if more than
    the share `most` of its cells that hold something cannot be read.
    """
    csv = is_csv(like)
    dates, form = dates and csv, form if csv else None
    try:
        with open_column(like, column, text=bool(categories), dates=dates, form=form) as source:
            if categories:
                counts = source.category_fates(Categories(tuple(categories)))  # type: ignore[attr-defined]
            else:
                kind = source.dtype.kind
                ends: tuple[Any, Any] = (-math.inf, math.inf) if kind == "f" else (FIRST, LAST)
                counts = source.fates(*ends)  # type: ignore[attr-defined]
    except ArgumentError as error:
        raise ArgumentError(f"--like: {error}") from None
    lost, held = int(counts[UNREADABLE]), int(counts.sum() - counts[MISSING])
    if not held:
        raise ContentError(f"--like: {like} has no cell of column {column!r} that holds something")
    if lost > most * held:
        where = (
            f"; {', '.join(_examples(like, column, form, _reader(categories, dates, form)))}" if csv and form else ""
        )
        what = "are none of the categories" if categories else "are no dates" if dates else "are no numbers"
        raise ContentError(
            f"--like: {lost} of {held} cells of column {column!r} in {like} {what}{where}. Nothing was paid: declare "
            "how the column is written, or raise --most-unreadable"
        )


def _reader(categories: Sequence[str], dates: bool, form: CsvForm | None) -> Callable[[str], bool]:
    """Whether a cell can be read."""
    if categories:
        return lambda cell: cell in categories
    if dates:
        return _is_date
    decimal, thousands = (".", "") if form is None else (form.decimal, form.thousands)
    return lambda cell: not math.isnan(number_in(cell, decimal, thousands))


def _is_date(cell: str) -> bool:
    try:
        datetime.fromisoformat(cell.strip())
    except ValueError:
        return False
    return True


def _examples(like: str, column: str, form: CsvForm, readable: Callable[[str], bool]) -> list[str]:
    """The first cells that cannot be read, with the numbers of their records after the header."""
    place, found = place_of(column, csv_header(Path(like), form), like), list[str]()
    for number, row in enumerate(csv_rows(Path(like), form), 1):
        cell = row[place] if place < len(row) else ""
        if not readable(cell) and not is_missing_text(cell):
            found.append(f"record {number} has {cell[:40]!r}")
        if len(found) == _SHOWN:
            break
    return found
