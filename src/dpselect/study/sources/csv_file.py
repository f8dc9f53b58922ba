"""CSV files, plain or compressed by gzip."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dpselect.errors import ContentError, StudyError
from dpselect.storage import CsvForm, csv_header, csv_rows
from dpselect.study.sources.table import SOURCES, Origin, Table

__all__ = ["open_csv"]

_NUMBER_WITH_COMMA: Final = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


@SOURCES.register(".csv.gz", form=("delimiter", "encoding", "decimal"))
@SOURCES.register(".csv", form=("delimiter", "encoding", "decimal"))
def open_csv(origin: Origin) -> Table:
    """A file with a header; blanks around cells are cut off."""
    form = _csv_form(origin)
    names = tuple(name.strip() for name in csv_header(origin.path, form))
    if not names:
        raise ContentError("the data file is empty")
    commas = origin.form.decimal == ","

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        places = [names.index(name) for name in wanted]
        cells: list[list[str]] = [[] for _ in wanted]
        for row in csv_rows(origin.path, form):
            if not row:
                continue
            if len(row) != len(names):
                raise ContentError("the data file has a row whose length differs from the header's")
            for column, place in zip(cells, places, strict=True):
                column.append(row[place].strip())
        if commas:
            cells = [[_with_point(cell) for cell in column] for column in cells]
        return {name: np.array(column, dtype=object) for name, column in zip(wanted, cells, strict=True)}

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
        return CsvForm(delimiter, form.encoding or "utf-8", skipinitialspace=True)
    except LookupError:
        raise StudyError(f"{named('encoding')}: unknown encoding {form.encoding!r}; such as utf-8 or latin-1") from None


def _with_point(cell: str) -> str:
    """A number with a decimal comma as one with a decimal point; other text as it is."""
    return cell.replace(",", ".") if _NUMBER_WITH_COMMA.fullmatch(cell) else cell
