"""CSV files, plain or compressed by gzip."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from dpselect.errors import ContentError, StudyError
from dpselect.storage import CsvForm, csv_header, csv_rows
from dpselect.study.sources.table import SOURCES, Origin, Table

__all__ = ["open_csv"]

_CHUNK: Final = 2**18
"""So many cells are held as Python's text."""
_TEXT: Final[Any] = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object
"""As NumPy 2 holds text: in a quarter of the room that Python's take."""
_NUMBER_WITH_COMMA: Final = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


@SOURCES.register(".csv.gz", form=("delimiter", "encoding", "decimal"))
@SOURCES.register(".csv", form=("delimiter", "encoding", "decimal"))
def open_csv(origin: Origin) -> Table:
    """A file with a header; blanks around cells are cut off."""
    form = _csv_form(origin)
    names = tuple(name.strip() for name in csv_header(origin.path, form))
    if not names:
        raise ContentError(f"{origin.path.name} is empty: the first line must hold the names of the columns")
    commas = origin.form.decimal == ","

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        places = [names.index(name) for name in wanted]
        parts: list[list[Any]] = [[] for _ in wanted]
        rows = (row for row in csv_rows(origin.path, form) if row)
        while chunk := list(islice(rows, max(1, _CHUNK // len(names)))):
            if any(len(row) != len(names) for row in chunk):
                raise ContentError("the data file has a row whose length differs from the header's")
            for packed, place in zip(parts, places, strict=True):
                cells = [row[place].strip() for row in chunk]
                packed.append(np.array([_with_point(cell) for cell in cells] if commas else cells, dtype=_TEXT))
        found = {}
        for name in wanted:
            packed = parts.pop(0)
            found[name] = np.concatenate(packed) if packed else np.array([], dtype=_TEXT)
        return found

    return Table(names, read)


def _csv_form(origin: Origin) -> CsvForm:
    """Raises `StudyError`."""
    form, named = origin.form, origin.option
    delimiter = "," if form.delimiter is None else form.delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise StudyError(f'{named("delimiter")}: must be one character, such as ";" or "\\t"')
    if form.decimal not in (None, ".", ","):
        raise StudyError(f'{named("decimal")}: must be "." or ","')
    if form.decimal == delimiter:
        raise StudyError(f"{named('decimal')}: must differ from the delimiter")
    try:
        return CsvForm(delimiter, form.encoding or "utf-8", skipinitialspace=True, declared_by=named("encoding"))
    except LookupError:
        raise StudyError(f"{named('encoding')}: unknown encoding {form.encoding!r}; such as utf-8 or latin-1") from None


def _with_point(cell: str) -> str:
    """A number with a decimal comma as one with a decimal point; other text as it is."""
    return cell.replace(",", ".") if _NUMBER_WITH_COMMA.fullmatch(cell) else cell
