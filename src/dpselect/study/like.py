"""A public sample of a study's table, read as the private rows will be: before the price, and at no cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError, StudyError
from dpselect.study.columns.column import TEXT, Column
from dpselect.study.data import cells_of, of_numbers, study_table
from dpselect.study.schema_data import Data
from dpselect.tables import Declared
from dpselect.tables.categories import positions
from dpselect.tables.header import absent

__all__ = ["check_like"]

_SHOWN: Final = 3
_KEY: Final = "data.like"


def check_like(data: Data, folder: Path, columns: Mapping[str, Column]) -> None:
    """Read the sample that the study names, if it names one. It is public, so that errors may quote its cells.

    Raises `StudyError` for a sample without the study's columns or with a column of another type. It also raises this
    if more than `most_unreadable` of the non-empty cells of a column cannot be read.
    """
    if data.like is None:
        return
    table = study_table(data.like, folder, _KEY, data, shared=True)
    missing = [name for name in (*columns, data.label) if name not in table.columns]
    if missing:
        raise StudyError(f"{_KEY} {data.like!r}: {absent(missing, table.columns)}")
    label = data.target.declared
    numeric = [*of_numbers(columns), *([data.label] if label.column_kind.numeric else [])]
    problems: list[str] = []
    try:
        cells = cells_of(table, (data.label, *columns), numeric)
        for name, column in columns.items():
            if column.kind == TEXT:
                continue
            if column.categories is None:
                read = ~np.isnan(column.numbers(name, cells[name]))
            else:
                read = (positions(cells[name], column.categories, column.declared.category) >= 0) | column.other
            problems += _problem(data, name, cells[name], read, column.declared)
        labels = data.target.read(data.label, cells[data.label])  # which refuses numbers that are none
        problems += _problem(
            data, data.label, cells[data.label], labels >= 0 if data.classes else labels == labels, label
        )
    except ContentError as error:
        raise StudyError(f"{_KEY} {data.like!r}: {error}") from None
    if problems:
        raise StudyError(f"{_KEY} {data.like!r}: {'; '.join(problems)}")


def _problem(data: Data, name: str, cells: Any, read: NDArray[np.bool_], declared: Declared) -> list[str]:
    """The problem of a column with these readable cells, usually none."""
    lost = [row for row in np.flatnonzero(~read).tolist() if not declared.is_missing(cells[row])]
    held = len(lost) + int(np.count_nonzero(read))
    if len(lost) <= data.most_unreadable * held:
        return []
    shown = ", ".join(f"row {row + 1} has {str(cells[row])[:40]!r}" for row in lost[:_SHOWN])
    return [f"{len(lost)} of {held} cells of column {name!r} cannot be read as declared ({shown})"]
