"""What a kind of column is, and the registry of those that a study can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpselect.numerics import Array
from dpselect.registry import Registry

__all__ = ["KINDS", "ColumnKind", "each_cell"]


def _as_it_is(number: float, form: str | None) -> float:  # noqa: ARG001
    return number


@dataclass(frozen=True)
class ColumnKind:
    """How the cells of a column are read as numbers.

    `read(cells, form)` gives doubles of shape (cells,), NaN where a cell is missing or cannot be read: each from its
    own cell, whatever it holds, and no content makes it raise. `form` is the study's `format`, None without one. A
    `TypeError` is for a column whose type is another kind's, and its text says which. A bound or a fill that a study
    declares is read in the same way. `takes_format` says whether the kind knows a `format`.

    `written(number, form)` is a bound as a study would declare it, and `widest` holds the bounds of any column of this
    kind where a study declares nothing narrower: for bounds that are bought. `hint` ends the errors about cells that
    cannot be read, whatever they are.
    """

    read: Callable[[Any, str | None], Array]
    takes_format: bool = False
    written: Callable[[float, str | None], str | float] = _as_it_is
    widest: tuple[float, float] = (-1e15, 1e15)
    hint: str = ""


def each_cell(cells: Any, one: Callable[[Any], float]) -> Array:
    """The number of each cell by `one`, NaN where it raises what a cell that cannot be read makes it raise.

    `one` gets bytes as text, and text without its outer blanks.
    """

    def read(cell: Any) -> float:
        try:
            text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
            return one(text.strip() if isinstance(text, str) else text)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            return np.nan

    return np.fromiter((read(cell) for cell in cells), dtype=np.float64, count=len(cells))


KINDS: Final = Registry[ColumnKind]("kind", room="dpselect.study.columns")
"""The kinds by the name that a study gives them: `KINDS.register("name")(ColumnKind(...))`."""
