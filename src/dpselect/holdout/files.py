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

from dpselect.decoding.limits import SUBMISSION, DecodingLimits
from dpselect.errors import ArgumentError, ContentError
from dpselect.tables import Written
from dpselect.tables.categories import category
from dpselect.tables.numbers import TRUTH, number_in
from dpselect.tables.table import open_table

__all__ = [
    "NAMING",
    "aligned",
    "class_names",
    "numbers",
    "predicted_classes",
    "read_cells",
    "read_columns",
    "submitted",
    "texts",
    "unique_ids",
]

_AS_IT_IS: Final = Written()
NAMING: Final = 2
"""The version of `class_names`."""


def submitted(rows: int) -> DecodingLimits:
    """The limits of a submission to something that has so many rows."""
    return replace(SUBMISSION, decoded=(16 << 20) + 1024 * rows, entries=rows)


def read_columns(
    path: Path,
    columns: Sequence[str],
    *,
    form: Written = _AS_IT_IS,
    limits: DecodingLimits = SUBMISSION,
    own: bool = False,
) -> list[list[str]]:
    """Columns of a file, as texts without blanks around them. All but the first, of ids, are in its form.

    Raises `ContentError` for a file that is empty, uneven, not in its encoding or lacks a column, and `LimitError` for
    one beyond the limits. `own` is for a file that is not of others: Parquet, Feather and Excel are read too, whose
    decoders take no limits. No more than these columns is held in memory.
    """
    found = read_cells(path, columns, form=form, limits=limits, own=own)
    return [[text.strip() for text in texts(cells)] for cells in found]


def read_cells(
    path: Path,
    columns: Sequence[str],
    *,
    form: Written = _AS_IT_IS,
    limits: DecodingLimits = SUBMISSION,
    own: bool = False,
) -> list[list[Any]]:
    """The same as the cells that stand there. A file whose name has no ending that is known is CSV."""
    path.stat()  # for an error that names it
    table = open_table(path, key="", form=form, limits=limits, own=own, otherwise=".csv")
    try:
        table.check(columns, path.name)
    except ArgumentError as error:
        raise ContentError(str(error)) from None
    cells = table.read(columns)
    ids, *others = (cells[name] for name in columns)
    if not len(ids):
        raise ContentError(f"{path.name} has no rows")
    if table.restated is not None:
        others = [table.restated(values, True) for values in others]
    return [values.tolist() for values in (ids, *others)]


def texts(values: Iterable[Any]) -> list[str]:
    """Ids or classes as texts: 1 and "1" are the same one. None, NaN and the like become empty."""
    given = values.tolist() if isinstance(values, np.ndarray) else values
    return [value if type(value) is str else _text(value) for value in given]


def _text(value: Any) -> str:
    if type(value) is int:
        return str(value)
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
    if list(places) == ids:
        return list(values)
    given = dict(zip(ids, values, strict=True))
    if len(given) != len(ids) or given.keys() != places.keys():
        if not unique_ids(ids, column).keys() <= places.keys():
            raise ContentError(f"column {column!r} has ids that the holdout does not have")
        raise ContentError(f"column {column!r} lacks ids of the holdout")
    return list(map(given.__getitem__, places))


def class_names(values: Iterable[str], *, naming: int = NAMING) -> list[str]:
    """Classes by one name each: 1, 1.0, True and TRUE are the same one, as are 0 and False.

    Each text is read by itself. If 1 and 1.0 were the same only when all labels are numbers, one row could change how
    the others are scored, and no noise would hide it. `naming` is that of the time when a holdout was made. Version 1,
    of dpselect 0.2, knew True and False in this case alone, and letters with accents as they were typed.

    >>> class_names(["1", "1.0", "True", "TRUE", "cat", "1_0", "inf"])
    ['1.0', '1.0', '1.0', '1.0', 'cat', '1_0', 'inf']
    """
    given = list(values)
    name_of = _first_name if naming == 1 else _class_name
    names = {value: name_of(value) for value in set(given)}
    return [names[value] for value in given]


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
    if any(not value or value.strip("+-").lower() == "nan" for value in set(values)):
        raise ContentError(f"column {column!r} has rows without a prediction")
    return class_names(values, naming=naming)


def numbers(values: Iterable[str], column: str) -> NDArray[np.float64]:
    """Texts as finite numbers. Anything else raises `ContentError`."""
    found = np.array([number_in(value) for value in values])
    if not np.isfinite(found).all():
        raise ContentError(f"column {column!r} must hold finite numbers only")
    return found + 0.0  # no negative zero
