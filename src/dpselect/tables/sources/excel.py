"""Workbooks of Excel, a row at a time.

By openpyxl: it reads a sheet as a stream. python-calamine is quicker, but makes room for all cells between the first
and the last, so that one stray cell takes gigabytes.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.tables.table import SOURCES, Origin, Table

__all__ = ["open_excel"]

_ROWS: Final = 1 << 12
_MOST: Final = 1 << 20
"""No sheet has more rows."""


@SOURCES.register(".xlsx", form=("sheet",))
def open_excel(origin: Origin) -> Table:
    """The first sheet of a workbook, or the one that `sheet` names. Its first row that is not blank holds the names.

    Cells are numbers, texts, dates or booleans, as Excel has them. A cell that shows an error is missing. A formula
    counts as the value that was saved with it. Needs openpyxl.
    """
    try:
        import openpyxl
    except ImportError:
        raise missing_extra("excel", "reading Excel") from None
    origin.path.stat()  # for an error that names it
    with _rows(origin, openpyxl) as rows:
        header = next(rows, [])
    if not header:
        raise ContentError(f"{origin.path.name} is empty: the first row must hold the names of the columns")
    names = ["" if name is None else str(name).strip() for name in header]

    def chunks(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[dict[str, Any]]:  # noqa: ARG001
        places = [names.index(name) for name in wanted]
        yield {name: np.empty(0, dtype=object) for name in wanted}
        with _rows(origin, openpyxl) as rows:
            next(rows, None)
            while block := list(islice(rows, _ROWS)):
                cells = np.empty((len(block), len(places)), dtype=object)
                for row, found in zip(cells, block, strict=True):
                    row[:] = [found[place] if place < len(found) else None for place in places]
                yield {name: cells[:, place] for place, name in enumerate(wanted)}

    return Table(tuple(names), chunks)


@contextmanager
def _rows(origin: Origin, openpyxl: Any) -> Iterator[Iterator[list[Any]]]:
    """The cells of each row that is not blank. What openpyxl says is not passed on, as it may quote a cell."""
    book = None
    with suppress(Exception), _silent():
        book = openpyxl.load_workbook(origin.path, read_only=True, data_only=True, keep_links=False)
    if book is None:
        raise ContentError(f"{origin.path.name} is not a readable Excel workbook (.xlsx)")
    with closing(book):
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        named = next(iter(sheets), "") if origin.form.sheet is None else origin.form.sheet
        if named not in sheets:
            there = ", ".join(map(repr, sheets))
            raise ArgumentError(f"{origin.option('sheet')}: there is no {named!r} in {origin}; there are {there}")
        sheets[named].reset_dimensions()  # a file may claim more columns than it has
        yield _cells(origin, islice(sheets[named].rows, _MOST))


def _cells(origin: Origin, rows: Iterator[Any]) -> Iterator[list[Any]]:
    while True:
        block = None
        with suppress(Exception), _silent():
            block = [[None if cell.data_type == "e" else cell.value for cell in row] for row in islice(rows, _ROWS)]
        if block is None:
            raise ContentError(f"{origin.path.name} is damaged: save it again with a spreadsheet program")
        if not block:
            return
        yield from (row for row in block if any(cell is not None for cell in row))


@contextmanager
def _silent() -> Iterator[None]:
    """Without openpyxl's warnings, which show cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
