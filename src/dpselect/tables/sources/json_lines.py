"""JSON lines: one object a line, whose fields are the cells of a row."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from dpselect.decoding.files import unpacked
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import LimitError
from dpselect.errors import ContentError
from dpselect.tables.csv_text import UNPACKING, truncated
from dpselect.tables.plain_lists import hardly_any
from dpselect.tables.table import SOURCES, Origin, Table

__all__ = ["open_json_lines"]

_NAMED: Final = 1000
"""So many lines have the names of the columns."""
_ROWS: Final = 1 << 14
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_DECODE: Final = json.JSONDecoder().decode  # decodes: private rows, of which none may fail
_DECODE_LONG: Final = json.JSONDecoder(parse_int=float).decode  # decodes: the same
"""Of integers that are too long for Python: they are beyond all float64."""


@SOURCES.register(".jsonl", limited=True)
@SOURCES.register(".ndjson", limited=True)
@SOURCES.register(".jsonl.gz", limited=True)
@SOURCES.register(".ndjson.gz", limited=True)
@SOURCES.register(".jsonl.zst", limited=True)
@SOURCES.register(".ndjson.zst", limited=True)
def open_json_lines(origin: Origin) -> Table:
    """One JSON object in each line. The fields of the first thousand lines are the columns, in alphabetical order.

    They are public, as a header is. A field that a line lacks is a missing cell there, and a line that holds no object
    is a row of missing cells. A file in which hardly any of the first lines holds one is refused. In a file of others
    each line must have the fields of the first.
    """
    with closing(_rows(origin)) as read:
        first = list(islice(read, _NAMED if origin.limits is None else 1))
    names = sorted({name for row in first for name in row})
    objects = sum(map(bool, first))
    # the last line of a list with one object a line is an object, and all others are none
    if not names or hardly_any(objects, len(first) - objects):
        raise ContentError(f"{origin.path.name} must hold one JSON object in each line")

    def chunks(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[dict[str, Any]]:  # noqa: ARG001
        rows = _rows(origin)
        yield {name: np.empty(0, dtype=object) for name in wanted}
        while block := list(islice(rows, _ROWS)):
            # not np.array: a cell may be a list
            yield {
                name: np.fromiter((_cell(row, name, origin) for row in block), object, len(block)) for name in wanted
            }

    return Table(tuple(names), chunks, header=False)


def _column(rows: list[dict[str, Any]], name: str, origin: Origin) -> Any:
    """Not np.array: a cell may be a list."""
    return np.fromiter((_cell(row, name, origin) for row in rows), dtype=object, count=len(rows))


def _cell(row: dict[str, Any], name: str, origin: Origin) -> Any:
    if origin.limits is not None and name not in row:
        raise ContentError(f"{origin.path.name} must have the field {name!r} in each line")
    return row.get(name)


def _rows(origin: Origin) -> Generator[dict[str, Any]]:
    """The objects, an empty one for a line that holds none."""
    path, limits = origin.path, origin.limits
    with suppress(*UNPACKING), unpacked(path, limits) as file:
        read = file.readline if limits is None else partial(file.readline, limits.line + 2)
        count = 0
        # a line is so short that its values need no limit, and may have more fields than the file has rows
        of_line = limits and replace(limits, entries=max(limits.entries, limits.line))
        for line in iter(read, b""):
            text = line.strip(_BLANK)
            if limits is None or of_line is None:
                if text:
                    yield _private(text)
                continue
            if len(line) > limits.line:
                raise LimitError(f"{path.name} has a line of more than {limits.line} bytes")
            if not text:
                continue
            row = json_of(text, of_line, "a line of the file")
            if not isinstance(row, dict):
                raise ContentError(f"{path.name} must hold one JSON object in each line")
            count += max(map(_values, row.values()), default=1)
            if count > limits.entries:
                raise LimitError(f"{path.name} has more than {limits.entries} rows")
            yield row
        return
    raise truncated(path)


def _values(cell: Any) -> int:
    """As how many rows a cell counts: a list of repeats stands for as many, and each value takes memory."""
    if not isinstance(cell, (list, dict)):
        return 1
    return max(1, sum(map(_values, cell.values() if isinstance(cell, dict) else cell)))


def _private(text: bytes) -> dict[str, Any]:
    line, row = text.decode("utf-8", "replace"), None
    with suppress(json.JSONDecodeError, RecursionError):
        try:
            row = _DECODE(line)
        except json.JSONDecodeError:
            raise
        except ValueError:
            row = _DECODE_LONG(line)
    return row if isinstance(row, dict) else {}
