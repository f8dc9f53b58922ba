"""Where columns are: files and tables by the end of a path or the begin of a URL, each sort in one file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.adapters import ColumnSource
from dpselect.ordered.sources.columns import Progress
from dpselect.registry import Registry
from dpselect.tables import CsvForm, is_csv

__all__ = ["COLUMN_SOURCES", "ColumnRequest", "column_source", "open_column"]


@dataclass(frozen=True, kw_only=True)
class ColumnRequest:
    """What is asked of a source: see `open_column`."""

    column: str
    table: str | None = None
    progress: Progress | None = None
    text: bool = False
    look: bool = False
    dates: bool = False
    form: CsvForm | None = None


Opener = Callable[[str, ColumnRequest], AbstractContextManager[ColumnSource]]
COLUMN_SOURCES: Final = Registry[Opener]("source of columns", room="dpselect.ordered.sources")


def column_source(name: str) -> Callable[[Opener], Opener]:
    """Register what opens a column: by the end of a path, ".csv", or the begin of a URL, "duckdb:".

    A function of the path or URL and of a `ColumnRequest` gives a context manager with a `ColumnSource`, in its own
    file in this room or from outside. What is wrong with the request it says before a row is read; after that no
    content of a row may make it fail.
    """
    return COLUMN_SOURCES.register(name)


def open_column(
    where: str,
    column: str,
    *,
    table: str | None = None,
    progress: Progress | None = None,
    text: bool = False,
    look: bool = False,
    dates: bool = False,
    form: CsvForm | None = None,
) -> AbstractContextManager[ColumnSource]:
    """A column of a Parquet file or folder, a CSV file, or a table behind an SQL URL (duckdb:///FILE, sqlite:///...).

    Whether values are whole numbers is taken from the schema of a Parquet file or database; CSV cells are doubles. With
    `text` the values are text, for `categories`. A CSV file has no types: with `look` its first rows are looked at, and
    a column in which evidently no numbers are (less than a tenth) is refused; with `dates` its cells are moments in ISO
    8601, without a time zone in UTC. `form` is how the file is written. Other sources: `column_source`.

    Raises `ArgumentError` that names the column, its type, the table or the file, and `ContentError` for a file that is
    not of its format; no row of the column decides that, but for `look`. After that no content makes reading fail.
    """
    scheme, is_url, _ = where.partition("://")
    if not is_url and table is not None:
        raise ArgumentError("table: only for an SQL URL")
    if not is_url and not Path(where).exists():
        raise ArgumentError(f"{where}: there is no such file")
    request = ColumnRequest(column=column, table=table, progress=progress, text=text, look=look, dates=dates, form=form)
    if (dates or form is not None) and not is_csv(where):
        raise ArgumentError("dates and form: only for a CSV file; other columns have a type, and no form")
    if is_url:
        name = f"{scheme}:" if f"{scheme}:" in COLUMN_SOURCES else "sql:"
    else:
        ends = (end for end in COLUMN_SOURCES if end.startswith(".") and where.lower().endswith(end))
        name = max(ends, key=len, default=".parquet")
    return COLUMN_SOURCES[name](where, request)
