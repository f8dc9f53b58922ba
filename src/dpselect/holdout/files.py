"""Reading labels and predictions by name of column, and putting predictions in the order of the labels.

Errors name a column, never a value, a row or a count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.decoding import DecodingLimits
from dpselect.decoding.limits import SUBMISSION
from dpselect.errors import ContentError
from dpselect.tables import TRUTH, CsvForm, absent, category, csv_header, csv_rows, number_in, restated

__all__ = [
    "FORM",
    "NAMING",
    "aligned",
    "class_names",
    "numbers",
    "predicted_classes",
    "read_columns",
    "submitted",
    "texts",
    "unique_ids",
]

FORM: Final = CsvForm()
"""How a file is written unless somebody says otherwise."""
NAMING: Final = 2
"""The version of `class_names`."""


def submitted(rows: int) -> DecodingLimits:
    """What is read of a submission to something that has so many rows."""
    return replace(SUBMISSION, decoded=(16 << 20) + 1024 * rows, entries=rows)


def read_columns(
    path: Path, columns: Sequence[str], *, form: CsvForm = FORM, limits: DecodingLimits = SUBMISSION
) -> list[list[str]]:
    """Columns of a CSV file with a header, as texts without blanks around them; all but the first, of ids, in its form.

    Raises `ContentError` for a file that is empty, uneven, not in its encoding or lacks a column, and `LimitError` for
    one beyond the limits. No more than these columns is held in memory.
    """
    header = csv_header(path, form, limits=limits)
    places = []
    for column in columns:
        if header.count(column) != 1:
            what = f", not {header.count(column)}" if column in header else f": {absent([column], header)}"
            raise ContentError(f"{path.name} must have one column {column!r}{what}")
        places.append(header.index(column))
    found: list[list[str]] = [[] for _ in columns]
    for row in csv_rows(path, form, strict=True, limits=limits):
        if row and len(row) != len(header):
            raise ContentError(f"{path.name} has a row whose length differs from the header's")
        for values, place in zip(found, places if row else (), strict=False):
            values.append(row[place].strip())
    if not found[0]:
        raise ContentError(f"{path.name} has no rows")
    if form.decimal == "." and not form.thousands:
        return found
    return [found[0], *(restated(values, form.decimal, form.thousands, strict=True) for values in found[1:])]


def texts(values: Iterable[Any]) -> list[str]:
    """Ids or classes as texts: 1 and "1" are the same one; empty for None, NaN and the like."""
    return [_text(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def _text(value: Any) -> str:
    missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if isinstance(value, (float, np.floating, np.datetime64)):
        missing = bool(value != value)
    return "" if missing else str(value)


def unique_ids(ids: Sequence[str], column: str) -> dict[str, int]:
    """The place of each id. Raises `ContentError` for an empty one and for one that is there twice."""
    places = {name: place for place, name in enumerate(ids)}
    if "" in places:
        raise ContentError(f"column {column!r} has rows without an id")
    if len(places) != len(ids):
        raise ContentError(f"column {column!r} has an id more than once")
    return places


def aligned(places: dict[str, int], ids: Sequence[str], values: Sequence[str], column: str) -> list[str]:
    """The values in the order of the holdout. Raises `ContentError` unless both have the same ids, each once."""
    if len(values) != len(ids):
        raise ContentError(f"the predictions and their ids in column {column!r} differ in length")
    given = unique_ids(ids, column)
    if not given.keys() <= places.keys():
        raise ContentError(f"column {column!r} has ids that the holdout does not have")
    if len(given) != len(places):
        raise ContentError(f"column {column!r} lacks ids of the holdout")
    return [values[given[name]] for name in places]


def class_names(values: Iterable[str], *, naming: int = NAMING) -> list[str]:
    """Classes by one name each: 1, 1.0, True and TRUE are the same one, as are 0 and False.

    Each text is read by itself: were 1 and 1.0 the same only when all labels are numbers, one row could change how the
    others are scored, and no noise would hide it. `naming` is that of the time when a holdout was made: version 1, of
    dpselect 0.2, knew True and False in this case alone, and letters with accents as they were typed.

    >>> class_names(["1", "1.0", "True", "TRUE", "cat", "1_0", "inf"])
    ['1.0', '1.0', '1.0', '1.0', 'cat', '1_0', 'inf']
    """
    if naming == 1:
        return [_first_name(value) for value in values]
    return [_class_name(value) for value in values]


def _class_name(text: str) -> str:
    named = category(text)
    if isinstance(named, str):
        return named
    number = float(named) + 0.0  # no negative zero
    return repr(number) if abs(number) < 2.0**53 else text  # beyond, two classes could be one double


def _first_name(text: str) -> str:
    number = {"True": 1.0, "False": 0.0}.get(text, math.nan if text.lower() in TRUTH else number_in(text)) + 0.0
    return repr(number) if abs(number) < 2.0**53 else text


def predicted_classes(values: Sequence[str], column: str, *, naming: int = NAMING) -> list[str]:
    """`class_names` of predictions. Raises `ContentError` where one is missing: empty or NaN."""
    if any(not value or value.strip("+-").lower() == "nan" for value in values):
        raise ContentError(f"column {column!r} has rows without a prediction")
    return class_names(values, naming=naming)


def numbers(values: Iterable[str], column: str) -> NDArray[np.float64]:
    """Texts as finite numbers; what is none raises `ContentError`."""
    found = np.array([number_in(value) for value in values])
    if not np.isfinite(found).all():
        raise ContentError(f"column {column!r} must hold finite numbers only")
    return found + 0.0  # no negative zero
