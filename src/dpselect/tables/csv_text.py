"""CSV files whose cells cannot make reading them fail.

Rows are the records that CSV's quoting makes. A cell may be of any length, and bytes that are no text become U+FFFD:
such a cell is not a number and no declared category. A file is refused for its beginning and its header alone, which
are public.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import operator
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import dropwhile, islice
from pathlib import Path
from typing import IO, Final

from dpselect.decoding.files import unpacked
from dpselect.decoding.limits import TABLE, DecodingLimits, LimitError
from dpselect.errors import ContentError

__all__ = ["CsvForm", "csv_header", "csv_rows", "opened", "records", "truncated"]

UNPACKING: Final = (EOFError, gzip.BadGzipFile, zlib.error)
"""What a damaged archive raises while it is read."""
_WIDEST = (1 << (8 * struct.calcsize("l") - 1)) - 1
_UNREAD: Final = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")
"""Encodings in which a cell can make reading fail, or be half of a character, which no UTF-8 has."""
_MARKS: Final = {
    codecs.BOM_UTF32_LE: "utf-32",  # first, as it begins as that of UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHERS: Final = {
    b"\x1f\x8b": "a gzip archive: name it .csv.gz, or unpack it first",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive: name it .csv.zst, or unpack it first",
    b"PK\x03\x04": "a zip archive or a workbook: unpack it first, or name it .xlsx",
    b"PAR1\x15": "a Parquet file: name it .parquet",
    b"ARROW1\0": "an Arrow file: name it .feather",
    b"SQLite format 3\0": "a SQLite database: write sqlite:///FILE and name a table",
    b"\xd0\xcf\x11\xe0": "an old or encrypted workbook: save it as .xlsx or .csv",
}
"""The first bytes of files that are no text, and what to do with them."""


@dataclass(frozen=True)
class CsvForm:
    """How a file is written. `encoding` is looked up, and UTF-8 may begin with a mark. Raises `LookupError`.

    `decimal` and `thousands` are the separators in numbers, the second empty where there is none. `skip_rows` lines
    stand before the header. `declared_by` is what people declare the encoding by, for errors; empty where they cannot.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    skip_rows: int = 0
    declared_by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        known = codecs.lookup(self.encoding)
        if not getattr(known, "_is_text_encoding", True) or known.name in _UNREAD:
            raise LookupError(self.encoding)
        object.__setattr__(self, "encoding", "utf-8-sig" if known.name == "utf-8" else known.name)


_PLAIN: Final = CsvForm()


def csv_header(path: Path, form: CsvForm = _PLAIN, *, limits: DecodingLimits | None = None) -> list[str]:
    """The names in the first record that is not blank, without blanks around them; empty for an empty file.

    Raises `ContentError` for a file in another encoding, and `OSError`.

    Raises `LimitError` for a header of more than the limits' characters; without limits, for private rows, of those of
    `TABLE`. With limits, also for what else is beyond them.
    """
    with suppress(*UNPACKING):
        with unpacked(path, limits) as file:
            begin = file.read(16)
        other = next((kind for mark, kind in _OTHERS.items() if begin.startswith(mark)), None)
        if other is not None:
            raise ContentError(f"{path.name} is not text. It is {other}")
        marked = next((name for mark, name in _MARKS.items() if begin.startswith(mark)), "")
        if marked and form.encoding == "utf-8-sig":
            raise _not_text(path, form, marked)
        header, readable = list[str](), False
        with suppress(UnicodeError), opened(path, form, "surrogateescape", limits) as text:
            lines = _Lines(text, limits or TABLE, path.name, "header")
            header, readable = next((record for record in records(lines, form) if record), []), True
        strange = {letter for name in header for letter in name if letter == "\0" or "\udc80" <= letter <= "\udcff"}
        if strange or not readable:
            raise _not_text(path, form, _alike(strange) if strange else "")
        return [name.strip() for name in header]
    raise truncated(path)


def _alike(strange: set[str]) -> str:
    """The encoding that letters of a header were probably written in, from those that are none in the declared one."""
    if "\0" in strange:
        return "utf-16-le"
    return "latin-1" if all(letter >= "\udca0" for letter in strange) else "cp1252"


def csv_rows(path: Path, form: CsvForm = _PLAIN, *, limits: DecodingLimits | None = None) -> Iterator[list[str]]:
    """The records after the header, which `csv_header` has checked. No content makes it raise.

    With limits, for files of others, `ContentError` for bytes that are no text, and `LimitError` for more bytes or
    rows. That is not for private rows: what they hold must not decide whether they are read.
    """
    with suppress(*UNPACKING):
        yield from _rows(path, form, limits)
        return
    raise truncated(path)


def _rows(path: Path, form: CsvForm, limits: DecodingLimits | None) -> Iterator[list[str]]:
    with opened(path, form, "replace" if limits is None else "strict", limits) as file, suppress(UnicodeError):
        if limits is None:
            yield from islice(dropwhile(operator.not_, records(file, form)), 1, None)
            return
        lines = _Lines(file, limits, path.name)
        for number, row in enumerate(dropwhile(operator.not_, records(lines, form))):
            if number > limits.entries:
                raise LimitError(f"{path.name} has more than {limits.entries} rows")
            lines.taken = 0
            if number:
                yield row
        return
    raise _not_text(path, form)  # here, so that no traceback shows the byte


def truncated(path: Path) -> ContentError:
    """For an archive that ends early, which no row says."""
    return ContentError(f"{path.name} is truncated or damaged: its archive ends early; copy it again")


def _not_text(path: Path, form: CsvForm, alike: str = "") -> ContentError:
    shown = "UTF-8" if form.encoding == "utf-8-sig" else form.encoding
    read = f": it reads as {alike}" if alike else ", such as latin-1"
    declare = f", or declare its own by {form.declared_by}{read}" if form.declared_by else ""
    return ContentError(f"{path.name} is not text in {shown}; save it in that encoding{declare}")


def opened(path: Path, form: CsvForm, errors: str, limits: DecodingLimits | None = None) -> IO[str]:
    """The text of a file, with its own line ends."""
    return io.TextIOWrapper(unpacked(path, limits), encoding=form.encoding, errors=errors, newline="")


class _Lines:
    """The lines of a file, until those of one record are longer than the limit; `taken` is what that has so far."""

    def __init__(self, file: IO[str], limits: DecodingLimits, name: str, what: str = "row") -> None:
        self._file, self._most, self.taken = file, limits.line, 0
        self._refusal = f"{name} has a {what} of more than {limits.line} characters"

    def __iter__(self) -> Iterator[str]:
        read, most = self._file.readline, self._most
        while line := read(most + 1):
            self.taken += len(line)
            if self.taken > most:
                raise LimitError(self._refusal)
            yield line


def records(file: Iterable[str], form: CsvForm, *, skip_rows: int | None = None) -> Iterator[list[str]]:
    """The records in lines of text, blank ones as empty lists, after the lines that stand before the header."""
    csv.field_size_limit(max(csv.field_size_limit(), _WIDEST))
    lines = islice(file, form.skip_rows if skip_rows is None else skip_rows, None)
    # decodes: the one reader of CSV; `unpacked` bounds what it is given
    return csv.reader(lines, delimiter=form.delimiter, skipinitialspace=True)
