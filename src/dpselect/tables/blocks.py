"""The columns of a CSV file a block of rows at a time; a library parses them if it reads what `csv` does.

A block without quotation marks is lines, and a line is cells between delimiters. If each cell of the columns of numbers
is one as Arrow or NumPy writes it, with the declared decimal sign, they read the doubles that Python does. Any other
block is read record by record.
Neither guesses a type: columns of numbers are declared, and a cell that is none sends the block to the slow reading.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from dpselect.decoding.limits import DecodingLimits
from dpselect.errors import ContentError
from dpselect.numerics.search import Array
from dpselect.tables.csv_text import UNPACKING, CsvForm, csv_rows, opened, records, truncated
from dpselect.tables.numbers import numbers_in

__all__ = ["Block", "csv_blocks"]

Block = tuple[list[Array], list[list[str]]]
"""The columns of numbers, NaN where a cell is none, and those of text without outer blanks."""
_CHARACTERS: Final = 1 << 20
_ROWS: Final = 1 << 14
_LARGE: Final = 1 << 18
"""Characters of a block for which Arrow is imported."""
_NO_NUMBERS: Final = ["", "?", "-", ".", "NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "none"]


def csv_blocks(
    path: Path,
    form: CsvForm,
    numbers: Sequence[int],
    texts: Sequence[int] = (),
    *,
    width: int | None = None,
    limits: DecodingLimits | None = None,
) -> Iterator[Block]:
    """The columns at these places, after the header, which `csv_header` has checked.

    Blank rows do not count. With `width` a row of another length raises `ContentError`; without, cells that a row lacks
    are empty, and no content makes it raise. With `limits`, for files of others, it raises as `csv_rows` does.
    """
    if limits is not None:
        rows = (row for row in csv_rows(path, form, limits=limits) if row)
        yield from _columns(rows, form, numbers, texts, width)
        return
    with suppress(*UNPACKING):
        yield from _blocks(path, form, numbers, texts, width)
        return
    raise truncated(path)


def _blocks(
    path: Path, form: CsvForm, numbers: Sequence[int], texts: Sequence[int], width: int | None
) -> Iterator[Block]:
    with opened(path, form, "replace") as file:
        header: list[str] = next((record for record in records(file, form) if record), [])
        while text := file.read(_CHARACTERS):
            text += file.readline()
            if '"' in text:
                yield from _recorded(chain(_lines(text), file), form, numbers, texts, width)
                return
            found = None
            if not form.thousands and form.delimiter != " ":  # `csv` skips blanks in a row
                found = _by_arrow(text, form, numbers, texts, len(header))
                found = found or _by_numpy(text, form, numbers, texts, width)
            if found is None:
                yield from _recorded(_lines(text), form, numbers, texts, width)
            else:
                yield found


def _lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


def _by_arrow(text: str, form: CsvForm, numbers: Sequence[int], texts: Sequence[int], width: int) -> Block | None:
    """The block by Arrow; None for rows of another width, and for cells of numbers that are none to Arrow.

    Texts that Python reads as no number are missing there, and no error.
    """
    csv: Any = _arrow_csv() if _LARGE <= len(text) < 1 << 28 and form.delimiter.isascii() else None
    if csv is None or text.startswith("\ufeff"):  # a mark to Arrow, and in the middle of a file a part of a cell
        return None
    content, wanted = text.encode(), [str(place) for place in (*numbers, *texts)]
    types = {name: csv.types[place >= len(numbers)] for place, name in enumerate(wanted)}
    with suppress(ValueError, csv.error):
        # private rows, of which none may fail
        found = csv.read_csv(
            csv.buffer(content),
            csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=list(map(str, range(width)))),
            csv.ParseOptions(delimiter=form.delimiter, quote_char=False, double_quote=False),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=types,
                include_columns=list(types),
                null_values=_NO_NUMBERS,
                decimal_point=form.decimal,
            ),
        )
        values = [_doubles(found.column(str(place)).chunks) for place in numbers]
        return values, [[cell.strip() for cell in found.column(str(place)).to_pylist()] for place in texts]
    return None


def _doubles(chunks: Sequence[Any]) -> Array:
    """Doubles of Arrow with NaN for a missing cell. Its own conversion would import pandas first."""
    parts = []
    for chunk in chunks:
        present, values = chunk.buffers()
        cells = slice(chunk.offset, chunk.offset + len(chunk))
        part = np.frombuffer(values, dtype=np.float64)[cells]
        if chunk.null_count:
            bits = np.unpackbits(np.frombuffer(present, dtype=np.uint8), bitorder="little")[cells]
            part = np.where(bits == 1, part, np.nan)
        parts.append(part)
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


@cache
def _arrow_csv() -> Any:
    """Arrow's reader of CSV with what it takes, None without Arrow."""
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    types = (pyarrow.float64(), pyarrow.string())
    return SimpleNamespace(**vars(csv), buffer=pyarrow.BufferReader, error=pyarrow.ArrowException, types=types)


def _by_numpy(
    text: str, form: CsvForm, numbers: Sequence[int], texts: Sequence[int], width: int | None
) -> Block | None:
    """The block by NumPy; None where it might not read what `csv` does."""
    if not numbers or form.decimal != "." or text.isspace():
        return None
    lines = [line for line in io.StringIO(text, newline=None).read().split("\n") if line]
    if width is not None and {line.count(form.delimiter) for line in lines} - {width - 1}:
        return None
    with suppress(ValueError):
        # decodes: private rows, of which none may fail
        parsed = np.loadtxt(lines, delimiter=form.delimiter, usecols=numbers, comments=None, unpack=True, ndmin=2)
        if parsed.shape == (len(numbers), len(lines)):
            cells = [line.split(form.delimiter) for line in lines] if texts else []
            return list(parsed), [[row[place].strip() if place < len(row) else "" for row in cells] for place in texts]
    return None


def _recorded(
    lines: Iterator[str], form: CsvForm, numbers: Sequence[int], texts: Sequence[int], width: int | None
) -> Iterator[Block]:
    yield from _columns((row for row in records(lines, form, skip_rows=0) if row), form, numbers, texts, width)


def _columns(
    rows: Iterator[list[str]], form: CsvForm, numbers: Sequence[int], texts: Sequence[int], width: int | None
) -> Iterator[Block]:
    places = (*numbers, *texts)

    def wanted(row: list[str]) -> list[str]:
        if width is not None and len(row) != width:
            raise ContentError("the file has a row whose length differs from the header's")
        return [row[place] if place < len(row) else "" for place in places]

    kept = map(wanted, rows)  # row by row: a wide one is twenty times its size
    while block := list(islice(kept, _ROWS)):
        columns = [[row[place] for row in block] for place in range(len(places))]
        values = [numbers_in(cells, form.decimal, form.thousands) for cells in columns[: len(numbers)]]
        yield values, [[cell.strip() for cell in cells] for cells in columns[len(numbers) :]]
