"""`--like FILE`: a public sample of a column, read as the private one will be, before anything is paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dpselect.errors import ArgumentError, ContentError
from dpselect.numerics.moments import FIRST, LAST
from dpselect.ordered import open_column
from dpselect.ordered.domains import Categories
from dpselect.tables import Declared, Written
from dpselect.tables.column_cells import cells_in
from dpselect.tables.fates import MISSING, UNREADABLE
from dpselect.tables.table import open_table
from dpselect.tables.written import CSV_ENDS

__all__ = ["check_like"]

_SHOWN: Final = 3


def check_like(
    like: str, column: str, *, most: float, categories: Sequence[str], declared: Declared, form: Written
) -> None:
    """Read the sample's column. A sample is public, so errors may quote it.

    Raises `ArgumentError` for a sample without the column, or of a type that is not read. Raises `ContentError` if more
    than the share `most` of its non-empty cells cannot be read.
    """
    written = None if form == Written() or not like.lower().endswith(CSV_ENDS) else form
    keys = {key: value for key, value in vars(declared).items() if key in declared.keys}
    try:
        with open_column(like, column, text=bool(categories), form=written, **keys) as source:
            if categories:
                counts = source.category_fates(Categories(tuple(categories)))  # type: ignore[attr-defined]
            else:
                ends: tuple[Any, Any] = (-math.inf, math.inf) if source.dtype.kind == "f" else (FIRST, LAST)
                counts = source.fates(*ends)  # type: ignore[attr-defined]
    except ArgumentError as error:
        raise ArgumentError(f"--like: {error}") from None
    lost, held = int(counts[UNREADABLE]), int(counts.sum() - counts[MISSING])
    if not held:
        raise ContentError(f"--like: {like} has no cell of column {column!r} that holds something")
    if lost > most * held:
        shown = _examples(like, column, categories, declared, written)
        where = f" ({', '.join(shown)})" if shown else ""
        what = "are none of the categories" if categories else f"cannot be read as {declared.kind}"
        raise ContentError(
            f"--like: {lost} of {held} cells of column {column!r} in {like} {what}{where}. Nothing was paid: declare "
            "how the column is written, or raise --most-unreadable"
        )


def _examples(like: str, column: str, categories: Sequence[str], declared: Declared, form: Written | None) -> list[str]:
    """The first cells that cannot be read, with the numbers of their records after the header."""
    table, found, number = open_table(like, key="", form=form or Written()), list[str](), 0
    named = set(map(declared.category, categories))
    for chunk in table.chunks([column], ()):
        cells = cells_in(chunk[column])
        shown = cells if table.restated is None or not declared.column_kind.numeric else table.restated(cells, True)
        values = None if categories else declared.read(shown)
        for place, cell in enumerate(cells):
            lost = declared.category(cell) not in named if values is None else values[place] != values[place]
            if lost and not declared.is_missing(cell):
                found.append(f"record {number + place + 1} has {str(cell)[:40]!r}")
            if len(found) == _SHOWN:
                return found
        number += len(cells)
    return found
