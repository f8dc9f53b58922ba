"""CSV files whose cells cannot make reading them fail.

Rows are the records that CSV's quoting makes. A cell may be of any length, and bytes that are not UTF-8 become U+FFFD:
such a cell is no number and no declared category. A file is refused for its beginning and its header alone, which are
public.
"""

from __future__ import annotations

import codecs
import csv
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dpselect.errors import ContentError

__all__ = ["csv_header", "csv_rows"]

_WIDEST = (1 << (8 * struct.calcsize("l") - 1)) - 1
_OTHER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # UTF-32-LE begins as UTF-16-LE does


def csv_header(path: Path, *, skipinitialspace: bool = False) -> list[str]:
    """The first record; empty for an empty file. Raises `ContentError` for one that is not UTF-8, `OSError`."""
    with path.open("rb") as file:
        marked = file.read(4).startswith(_OTHER_MARKS)
    header: list[str] = []
    if not marked:
        with _opened(path, "surrogateescape") as text:
            header = next(_records(text, skipinitialspace), [])
    if marked or any(letter == "\0" or "\udc80" <= letter <= "\udcff" for name in header for letter in name):
        raise _not_text(path)
    return header


def csv_rows(path: Path, *, skipinitialspace: bool = False, strict: bool = False) -> Iterator[list[str]]:
    """The records after the header, which `csv_header` has checked. No content makes it raise.

    With `strict`, for files that their reader may know all about, `ContentError` for bytes that are not UTF-8.
    """
    with _opened(path, "strict" if strict else "replace") as file:
        records = _records(file, skipinitialspace)
        header = True
        while True:
            try:
                record = next(records)
            except StopIteration:
                return
            except UnicodeDecodeError:
                break  # raised below, so that no traceback shows the byte
            if not header:
                yield record
            header = False
    raise _not_text(path)


def _not_text(path: Path) -> ContentError:
    return ContentError(f"{path.name} is not text in UTF-8; save it in that encoding")


def _opened(path: Path, errors: str) -> IO[str]:
    return path.open(newline="", encoding="utf-8-sig", errors=errors)


def _records(file: IO[str], skipinitialspace: bool) -> Iterator[list[str]]:
    csv.field_size_limit(max(csv.field_size_limit(), _WIDEST))
    return csv.reader(file, skipinitialspace=skipinitialspace)
