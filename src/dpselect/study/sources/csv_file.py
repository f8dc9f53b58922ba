"""CSV files, plain or compressed by gzip."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.study.sources.table import SOURCES, Origin, Table
from dpselect.tables import CSV_ENDS, Written, csv_blocks, csv_form, csv_header, has_tabs, restated

__all__ = ["open_csv"]

_TEXT: Final[Any] = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object
"""As NumPy 2 holds text: in a quarter of the room that Python's take."""
_FORM: Final = ("delimiter", "encoding", "decimal", "thousands", "skip_rows")


def open_csv(origin: Origin) -> Table:
    """A file with a header; blanks around cells are cut off. Of `.tsv` the delimiter is a tab."""
    given = Written(**{name: getattr(origin.form, name) for name in _FORM})
    try:
        form = csv_form(given, named=origin.option, tabs=has_tabs(origin.source))
    except ArgumentError as error:
        raise StudyError(str(error)) from None
    names = tuple(csv_header(origin.path, form))
    if not names:
        raise ContentError(f"{origin.path.name} is empty: the first line must hold the names of the columns")

    plain = form.decimal == "." and not form.thousands

    def read(wanted: Sequence[str], numbers: Collection[str] = ()) -> dict[str, Any]:
        parts: dict[str, list[Any]] = {name: [] for name in wanted}
        texts = [name for name in parts if name not in numbers]
        doubles = [name for name in parts if name in numbers]
        places = ([names.index(name) for name in kind] for kind in (doubles, texts))
        for values, cells in csv_blocks(origin.path, form, *places, width=len(names)):
            for name, column in zip(doubles, values, strict=True):
                parts[name].append(column)
            for name, text in zip(texts, cells, strict=True):
                parts[name].append(np.array(text, dtype=_TEXT))
        return {
            name: np.concatenate(packed) if packed else np.array([], dtype=float if name in numbers else _TEXT)
            for name, packed in parts.items()
        }

    def restate(cells: Any, strict: bool) -> Any:
        return np.array(restated(cells, form.decimal, form.thousands, strict=strict), dtype=_TEXT)

    return Table(names, read, restated=None if plain else restate, read_numbers=read)


for _end in CSV_ENDS:
    SOURCES.register(_end, form=_FORM)(open_csv)
