"""How a source is written, from what people declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dpselect.errors import ArgumentError
from dpselect.tables.csv_text import CsvForm

__all__ = ["CSV_ENDS", "Written", "csv_form", "has_tabs"]


@dataclass(frozen=True)
class Written:
    """Declarations about a source that does not say them itself.

    None, the default of each, leaves it to the kind of source. The first five are of CSV files.

    Args:
        delimiter: the one character between cells. None is a comma, or a tab in files such as .tsv.
        encoding: a name that Python knows, such as "latin-1". None is UTF-8.
        decimal: the decimal separator, "." or ",". None is ".".
        thousands: the separator of thousands: "", ",", ".", " " or "'". None and "" are no separator.
        skip_rows: how many lines stand before the header, from 0 to 10,000. None is 0.
        table: the table or view of a database, which needs it: `schema.table` if it has a schema.
        sheet: the sheet of a workbook. None is the first.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    skip_rows: int | None = None
    table: str | None = None
    sheet: str | None = None


CSV_ENDS: Final = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
"""Of the names of files without types."""
_AS_IT_IS: Final = Written()
_SEPARATORS: Final = {"decimal": (".", ","), "thousands": ("", ",", ".", " ", "'")}


def has_tabs(where: str) -> bool:
    """Whether the delimiter of such a file is a tab unless it is declared."""
    return where.lower().endswith((".tsv", ".tsv.gz", ".tsv.zst"))


def csv_form(written: Written = _AS_IT_IS, *, named: Callable[[str], str] = str, tabs: bool = False) -> CsvForm:
    """The form of a CSV file, or with `tabs` of one whose delimiter is a tab unless it is declared.

    `named` says what a field of `written` is called where it was declared. Raises `ArgumentError` that names it so.
    """
    delimiter = ("\t" if tabs else ",") if written.delimiter is None else written.delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ArgumentError(f'{named("delimiter")}: must be one character, such as ";" or "\\t"')
    decimal, thousands = written.decimal or ".", written.thousands or ""
    for part, value in (("decimal", decimal), ("thousands", thousands)):
        if value not in _SEPARATORS[part]:
            allowed = ", ".join(f'"{one}"' for one in _SEPARATORS[part] if one)
            raise ArgumentError(f"{named(part)}: must be one of {allowed}")
    if decimal == delimiter:
        raise ArgumentError(f"{named('decimal')}: must differ from the delimiter")
    if thousands and thousands in (decimal, delimiter) and thousands != delimiter:
        raise ArgumentError(f"{named('thousands')}: must differ from the decimal separator")
    skipped = written.skip_rows or 0
    if not 0 <= skipped <= 10_000:
        raise ArgumentError(f"{named('skip_rows')}: must be a number of lines from 0 to 10000")
    try:
        return CsvForm(delimiter, written.encoding or "utf-8", decimal, thousands, skipped, named("encoding"))
    except LookupError:
        raise ArgumentError(
            f"{named('encoding')}: unknown encoding {written.encoding!r}; such as utf-8 or latin-1"
        ) from None
