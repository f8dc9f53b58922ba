"""Tables of databases: SQLite, DuckDB, PostgreSQL.

Cells come as SQLite holds them, and from the others as text, into which every value can be turned: dates that Python
has no value for, numbers beyond a double. A cell means what it means in a CSV file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError, StudyError, missing_extra
from dpselect.study.sources.table import SOURCES, Origin, Table
from dpselect.tables import why_not

__all__ = ["open_database"]

Query = Callable[[str], tuple[list[str], list[Any]]]
_TYPES: Final = {
    "sqlite": "SELECT name, type FROM pragma_table_info({name})",
    "duckdb": "DESCRIBE SELECT * FROM {table}",
    "postgresql": (
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
        "WHERE attrelid = {text}::regclass AND attnum > 0 AND NOT attisdropped"
    ),
}
_KINDS: Final = {
    "date": r"date|datetime|timestamp.*",
    "duration": r"interval",
    "category": r"(n?var)?char(acter)?( varying)?|n?text|string|clob|enum|uuid|bpchar",
    "number": r"u?(tiny|small|big|huge|medium)?int(eger)?\d*|bool(ean)?|real|float\d*|double( precision)?|(big)?serial"
    r"|dec(imal)?|numeric|money",
}
"""The names of types, without what stands in brackets; SQLite takes any name."""
_PREFIXES: Final = {"sqlite": "sqlite:///", "duckdb": "duckdb:///", "postgresql": "postgresql://"}


@SOURCES.register("sqlite:", form=("table",))
@SOURCES.register("duckdb:", form=("table",))
@SOURCES.register("postgresql:", form=("table",))
def open_database(origin: Origin) -> Table:
    """A table or a view, `schema.table` where it has a schema; read in one statement."""
    engine = origin.source.partition(":")[0]
    if not origin.source.startswith(_PREFIXES[engine]):
        raise StudyError(f"{origin} must begin with {_PREFIXES[engine]}")
    if not origin.form.table:
        raise StudyError(f"{origin.option('table')}: needed for {origin}")
    table = ".".join(map(_quoted, origin.form.table.split(".")))
    connected, cell = {
        "sqlite": (_sqlite, "{}"),
        "duckdb": (_duckdb, "CAST({} AS VARCHAR)"),
        "postgresql": (_postgresql, "CAST({} AS TEXT)"),
    }[engine]
    with _quiet(origin), connected(origin) as query:
        names, _ = query(f"SELECT * FROM {table} LIMIT 0")
        types = query(_TYPES[engine].format(table=table, text=_text(table), name=_text(origin.form.table)))[1]

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        columns = ", ".join(cell.format(_quoted(name)) for name in wanted)
        with _quiet(origin), connected(origin) as query:
            _, rows = query(f"SELECT {columns} FROM {table}")
        cells = np.empty((len(rows), len(wanted)), dtype=object)
        for place, row in enumerate(rows):
            cells[place] = row
        return {name: cells[:, place] for place, name in enumerate(wanted)}

    return Table(tuple(names), read, {name: _kind(str(declared)) for name, declared, *_ in types})


@contextmanager
def _quiet(origin: Origin) -> Iterator[None]:
    """What a driver says is not passed on: it may quote a cell or a password."""
    try:
        yield
        return
    except (ArgumentError, OSError):
        raise
    except Exception as error:
        said = why_not(error)
    what = said or f"there is no table {origin.form.table!r}, or it cannot be read"
    raise StudyError(f"{origin}: {what}") from None


@contextmanager
def _sqlite(origin: Origin) -> Iterator[Query]:
    path = origin.folder / origin.source.removeprefix(_PREFIXES["sqlite"])
    path.stat()  # SQLite would make one
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda cell: cell.decode("utf-8", "replace")
        yield lambda statement: _asked(connection.execute(statement))


@contextmanager
def _duckdb(origin: Origin) -> Iterator[Query]:
    try:
        import duckdb
    except ImportError:
        raise missing_extra("duckdb", "reading a DuckDB database") from None
    path = origin.folder / origin.source.removeprefix(_PREFIXES["duckdb"])
    path.stat()  # for an error that names it
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        yield lambda statement: _asked(connection.execute(statement))


@contextmanager
def _postgresql(origin: Origin) -> Iterator[Query]:
    try:
        import psycopg
    except ImportError:
        raise missing_extra("postgres", "reading a PostgreSQL database") from None
    with psycopg.connect(origin.source) as connection:
        connection.read_only = True
        yield lambda statement: _asked(connection.execute(statement.encode()))


def _asked(cursor: Any) -> tuple[list[str], list[Any]]:
    return [column[0] for column in cursor.description], cursor.fetchall()


def _quoted(name: str) -> str:
    """A name as SQL takes it whatever its letters are."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _kind(declared: str) -> str:
    name = re.sub(r"\(.*", "", declared.lower()).strip()
    return next((kind for kind, names in _KINDS.items() if re.fullmatch(names, name)), "none")
