"""Open columns: files and tables by the end of a path or the begin of a URL, each sort in one file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, Unpack

from dpselect.cures import near_file
from dpselect.errors import ArgumentError
from dpselect.ordered.sources.adapters import ColumnSource
from dpselect.ordered.sources.columns import Progress
from dpselect.ordered.sources.request import ColumnRequest
from dpselect.ordered.sources.table_column import table_column
from dpselect.public_api import options_of
from dpselect.registry import Registry
from dpselect.tables import Declared, Written
from dpselect.tables.kinds.declared import DeclaredKeys

__all__ = ["COLUMN_SOURCES", "ColumnRequest", "column_source", "open_column"]


Opener = Callable[[str, ColumnRequest], AbstractContextManager[ColumnSource]]
COLUMN_SOURCES: Final = Registry[Opener]("source of columns", room="dpselect.ordered.sources")


def column_source(name: str) -> Callable[[Opener], Opener]:
    """Return a decorator that registers a function as the opener of columns at such paths or URLs.

    The function takes the path or URL and a `ColumnRequest`, and returns a context manager with a `ColumnSource`. It is
    in its own file in this package or from outside. You must ensure that it raises for a wrong request before a row is
    read. After that, no content of a row may make it fail.

    Args:
        name: the end of a path, such as ".csv", or the begin of a URL, such as "duckdb:".

    Raises:
        ArgumentError: if another function has this name. If it is an opener of dpselect's own that is not loaded yet,
            the first look-up raises instead.
    """
    return COLUMN_SOURCES.register(name)


@options_of(Declared)
def open_column(  # noqa: PLR0913
    where: str,
    column: str,
    *,
    table: str | None = None,
    progress: Progress | None = None,
    text: bool = False,
    look: bool = False,
    dates: bool = False,
    form: Written | None = None,
    by: str | None = None,
    person: str | None = None,
    **declared: Unpack[DeclaredKeys],
) -> AbstractContextManager[ColumnSource]:
    """A column of a file, a folder of Parquet files, or a table behind an SQL URL (duckdb:///FILE, sqlite:///...).

    Files are those of a study: CSV, Parquet, Feather, JSON lines, Excel, .npz. The schema of a Parquet file or database
    says whether values are integers. Cells of CSV, JSON lines and Excel have no common type and count as doubles. For
    other sources see `column_source`.

    Args:
        where: a path, or a URL.
        column: the column's name.
        table: the name of the table, for a database.
        progress: a function that is called with the number of rows read so far. Show this number to the operator only,
            as it depends on how rows are read.
        text: the values are text, for `categories`.
        look: for a column without a type: look at the first rows, and refuse a column in which less than a tenth of the
            cells are numbers.
        dates: the same as `kind="date"`.
        form: how the file is written. A database has none.
        by: the column of the same file or table that holds the group of each row, for `quantiles_by_group`.
        person: the column of the same file or table that says whose row each one is. Answers are then for persons, and
            need `rows_per_person`. A row without a person takes no part.
        declared: how the cells of a column without a type, or of text, are read: the attributes of
            `dpselect.tables.Declared`, such as `kind="date"` and `time_zone="Europe/Berlin"`. A column of another type
            takes `missing_values` alone. SQLite's types are hints, so a declared `kind` reads any column there. Dates
            are time stamps in UTC, durations are seconds, integers and booleans are int64.

    Returns:
        A context manager with the column, a `ColumnSource`, for the `values` of a `Column` or a function of this
        package.

    Raises:
        ArgumentError: if the request does not fit. It names the column, its type, the table or the file. No row of the
            column decides that, but for `look`. After that no content makes reading fail.
        ContentError: if a file is not of its format.
    """
    scheme, is_url, _ = where.partition("://")
    if not is_url and table is not None:
        raise ArgumentError("table: only for an SQL URL")
    if not is_url and not Path(where).exists():
        raise ArgumentError(f"{where}: there is no such file{near_file(where)}")
    if dates and declared.setdefault("kind", "date") not in ("date", "timestamp"):
        raise ArgumentError('dates: the same as kind = "date", so give one of them')
    cells = _declared_cells(declared)
    text = text or (cells is not None and cells.kind in ("category", "text"))
    if person is not None and (by is not None or person == column):
        raise ArgumentError("person: not with by, and not the column of the values")
    request = ColumnRequest(
        column=column,
        table=table,
        progress=progress,
        text=text,
        look=look,
        declared=cells,
        form=form,
        by=by,
        kind=declared.get("kind"),
        person=person,
    )
    if is_url:
        if form is not None:
            raise ArgumentError("form: only for a file; columns of a database have none")
        return COLUMN_SOURCES[f"{scheme}:" if f"{scheme}:" in COLUMN_SOURCES else "sql:"](where, request)
    ends = (end for end in COLUMN_SOURCES if end.startswith(".") and where.lower().endswith(end))
    name = max(ends, key=len, default="")
    return COLUMN_SOURCES[name](where, request) if name else nullcontext(table_column(where, request))


def _declared_cells(declared: DeclaredKeys) -> Declared | None:
    if not declared:
        return None
    cells = Declared(**declared)
    if cells.unclear:
        raise ArgumentError(cells.unclear)
    if cells.unicode == "exact":
        raise ArgumentError("unicode: categories of order statistics are compared under NFC")
    return cells
