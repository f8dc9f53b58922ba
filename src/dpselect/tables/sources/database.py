"""Tables of databases: SQLite, DuckDB, PostgreSQL.

Cells come as SQLite holds them, and from the others as text, into which every value can be turned: dates that Python
has no value for, numbers beyond a double. A cell means what it means in a CSV file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

import numpy as np

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.tables.statements import SQLITE_CELL, with_parameters
from dpselect.tables.table import SOURCES, Origin, Table, TableEngine, TableSession

__all__ = ["open_database", "why_not"]

Query = Callable[[str, Sequence[Any]], Any]
"""Runs a statement with its parameters (`with_parameters`) and returns its cursor."""
_Step = TypeVar("_Step")
_ROWS: Final = 1 << 14
_TYPES: Final = {
    "sqlite": "SELECT name, type FROM pragma_table_xinfo({name})",
    "duckdb": "DESCRIBE SELECT * FROM {table}",
    "postgresql": (
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
        "WHERE attrelid = {text}::regclass AND attnum > 0 AND NOT attisdropped"
    ),
}
_STORED: Final = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND lower(name) = lower({name})",
    "duckdb": (
        "SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower({last}) "
        "AND NOT contains(sql, 'GENERATED ALWAYS') "
        "AND NOT EXISTS (SELECT 1 FROM duckdb_views() WHERE lower(view_name) = lower({last}))"
    ),
    "postgresql": "SELECT 1 FROM pg_class WHERE oid = {text}::regclass AND relkind IN ('r', 'p', 'm')",
}
"""Has a row if the table is stored: a view may give other rows to each statement, as one of random() does."""
_LISTED: Final = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name",
    "duckdb": "SELECT table_name FROM information_schema.tables ORDER BY table_name",
    "postgresql": (
        "SELECT CAST(table_name AS TEXT) FROM information_schema.tables "
        "WHERE table_schema = ANY (current_schemas(false)) ORDER BY table_name"
    ),
}
_SHOWN: Final = 20
"""More names of tables are too many to read."""
_KINDS: Final = {
    "date": r"date|datetime|timestamp.*",
    "duration": r"interval",
    "category": r"(n?var)?char(acter)?( varying)?|n?text|string|clob|enum|uuid|bpchar",
    "number": r"u?(tiny|small|big|huge|medium)?int(eger)?\d*|bool(ean)?|real|float\d*|double( precision)?|(big)?serial"
    r"|dec(imal)?|numeric|money",
}
"""The names of types, without what stands in brackets; SQLite takes any name."""
_SINGLES: Final = re.compile(r"float4?|real")
"""Numbers of four bytes, but in SQLite, whose shortest text is that of another float64."""
_BITS: Final = re.compile(r"bit( varying)?|varbit")
"""Of which the text looks like another number."""
_PREFIXES: Final = {"sqlite": "sqlite:///", "duckdb": "duckdb:///", "postgresql": "postgresql://"}


@SOURCES.register("sqlite:", form=("table",))
@SOURCES.register("duckdb:", form=("table",))
@SOURCES.register("postgresql:", form=("table",))
def open_database(origin: Origin) -> Table:
    """A table or a view, `schema.table` if it has a schema. It is read in one statement."""
    engine = origin.source.partition(":")[0]
    if not origin.source.startswith(_PREFIXES[engine]):
        raise ArgumentError(f"{origin} must begin with {_PREFIXES[engine]}")
    if not origin.form.table:
        raise ArgumentError(f"{origin.option('table')}: needed for {origin}{_there(origin, engine)}")
    table = ".".join(map(_quoted, origin.form.table.split(".")))
    connected, cell = _ENGINES[engine]
    last = origin.form.table.split(".")[-1]
    words = {"table": table, "text": _text(table), "name": _text(origin.form.table), "last": _text(last)}
    of_types, is_stored = _TYPES[engine].format(**words), _STORED[engine].format(**words)

    def described() -> Iterator[tuple[list[str], Any, bool]]:
        with connected(origin, {}) as query:
            names = [column[0] for column in query(f"SELECT * FROM {table} LIMIT 0", ()).description]
            yield names, query(of_types, ()).fetchall(), bool(query(is_stored, ()).fetchall())

    def blocks(columns: str) -> Iterator[Any]:
        with connected(origin, {}) as query:
            yield from _blocks(query(f"SELECT {columns} FROM {table}", ()))

    def chunks(read: Callable[[str], Iterator[Any]], wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        types: list[Any] = [np.float32 if name in singles else object for name in wanted]  # None becomes NaN in float32
        yield {name: np.empty(0, dtype=kind) for name, kind in zip(wanted, types, strict=True)}
        _refuse_bits(origin, [name for name in wanted if name in bits])
        selected = [cells[name] for name in wanted]
        for rows in _quiet(origin, read(", ".join(selected))):
            block = np.empty((len(rows), len(wanted)), dtype=object)
            for place, row in enumerate(rows):
                block[place] = row
            yield {name: block[:, place].astype(types[place], copy=False) for place, name in enumerate(wanted)}

    @contextmanager
    def session(functions: Mapping[str, Callable[..., Any]]) -> Iterator[TableSession]:
        with _opened(origin, connected(origin, functions)) as query:

            def part(condition: str, parameters: Sequence[Any]) -> Table:
                def read(columns: str) -> Iterator[Any]:
                    return _blocks(query(f"SELECT {columns} FROM {table} WHERE {condition}", parameters))

                return replace(found, chunks=lambda wanted, _: chunks(read, wanted), engine=None)

            yield TableSession(partial(_rows_of, query), part)

    ((names, declared_types, stored),) = _quiet(origin, described())
    singles = {
        name
        for name, declared, *_ in declared_types
        if engine != "sqlite" and _SINGLES.fullmatch(str(declared).lower())
    }
    bits = {name for name, declared, *_ in declared_types if _BITS.fullmatch(str(declared).lower())}
    kinds = {name: _kind(str(declared)) for name, declared, *_ in declared_types}
    typed = SQLITE_CELL if engine == "sqlite" else cell

    def sql_of(name: str) -> str:
        if name in singles:
            return _quoted(name)
        return (typed if kinds.get(name) in ("number", "date") else cell).format(_quoted(name))

    cells = {name: sql_of(name) for name in names}
    computes = TableEngine(
        engine, table, {name: str(declared) for name, declared, *_ in declared_types}, session, stored
    )
    found = Table(tuple(names), lambda wanted, _: chunks(blocks, wanted), kinds, engine=computes)
    return found


def _rows_of(query: Callable[..., Any], statement: str, parameters: Sequence[Any]) -> list[Any]:
    """What a statement returns. A driver's error is not shown."""
    try:
        return list(query(statement, parameters).fetchall())
    except Exception as error:
        interrupted = _is_interruption(error)
    # raised outside, so that no traceback shows the driver's error either
    if interrupted:
        raise KeyboardInterrupt
    raise ContentError("the database did not answer. Its message is not shown, as it may quote the data")


def _refuse_bits(origin: Origin, names: Sequence[str]) -> None:
    if names:
        raise ArgumentError(f"column: {names[0]!r} of {origin} holds bits: cast it to a number or a text in a view")


def _is_interruption(error: Exception) -> bool:
    """Whether a driver reports Ctrl-C, as DuckDB does in these ways."""
    return type(error).__name__ == "InterruptException" or str(error).startswith(
        ("INTERRUPT Error", "Query interrupted")
    )


def _blocks(cursor: Any) -> Iterator[Any]:
    while rows := cursor.fetchmany(_ROWS):
        yield rows


@contextmanager
def _opened(origin: Origin, connection: AbstractContextManager[Query]) -> Iterator[Query]:
    """The connection, whose errors while it is opened are as quiet as those of reading."""
    ((query, end),) = _quiet(origin, ((connection.__enter__(), connection.__exit__) for _ in range(1)))
    try:
        yield query
    finally:
        end(None, None, None)


def _there(origin: Origin, engine: str) -> str:
    """The tables that are there, for an error: the schema is public. Empty if they cannot be listed."""
    with suppress(Exception), _ENGINES[engine][0](origin, {}) as query:
        names = [str(name) for (name,) in query(_LISTED[engine], ()).fetchmany(_SHOWN)]
        return f"; there are {', '.join(map(repr, names))}" if names else "; it has no tables"
    return ""


def why_not(error: BaseException) -> str | None:
    """Return why a database cannot be read, or None if the reason may be secret.

    >>> import sqlite3
    >>> why_not(sqlite3.OperationalError("database is locked"))
    'it is locked by another process: wait, or read a copy'
    """
    said = str(error).lower()
    if "lock" in said and ("database is locked" in said or "could not set lock" in said):
        return "it is locked by another process: wait, or read a copy"
    if "not a database" in said or "not a valid duckdb" in said:
        return "the file is no database of this kind"
    return None


def _quiet(origin: Origin, steps: Iterator[_Step]) -> Iterator[_Step]:
    """The same steps. The driver's message is not passed on, because it may quote a cell or a password.

    The error is raised when that of the driver is over, so that it is not its context. A context manager would keep it.
    """
    try:
        yield from steps
        return
    except (ArgumentError, OSError):
        raise
    except Exception as error:
        said = why_not(error)
    there = "" if said else _there(origin, origin.source.partition(":")[0])
    what = said or f"there is no table {origin.form.table!r}, or it cannot be read{there}"
    raise ArgumentError(f"{origin}: {what}")


@contextmanager
def _sqlite(origin: Origin, functions: Mapping[str, Callable[..., Any]]) -> Iterator[Query]:
    path = origin.folder / origin.source.removeprefix(_PREFIXES["sqlite"])
    path.stat()  # SQLite would make one
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
        connection.text_factory = lambda cell: cell.decode("utf-8", "replace")
        for name, function in functions.items():
            connection.create_function(name, -1, function, deterministic=True)
        connection.execute("BEGIN")  # all statements see the same rows

        def query(statement: str, parameters: Sequence[Any]) -> Any:
            return connection.execute(with_parameters(statement, lambda at: f"?{at + 1}"), parameters)

        yield query


@contextmanager
def _duckdb(origin: Origin, functions: Mapping[str, Callable[..., Any]]) -> Iterator[Query]:  # noqa: ARG001
    try:
        import duckdb
    except ImportError:
        raise missing_extra("duckdb", "reading a DuckDB database") from None
    path = origin.folder / origin.source.removeprefix(_PREFIXES["duckdb"])
    path.stat()  # for an error that names it
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        connection.execute("BEGIN TRANSACTION")

        def query(statement: str, parameters: Sequence[Any]) -> Any:
            return connection.execute(with_parameters(statement, lambda at: f"${at + 1}"), list(parameters))

        yield query


@contextmanager
def _postgresql(origin: Origin, functions: Mapping[str, Callable[..., Any]]) -> Iterator[Query]:  # noqa: ARG001
    try:
        import psycopg
    except ImportError:
        raise missing_extra("postgres", "reading a PostgreSQL database") from None
    with psycopg.connect(origin.source) as connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

        names = map("dpselect_{}".format, count())

        def query(statement: str, parameters: Sequence[Any]) -> Any:
            # the rows of a cursor with a name stay in the server until they are asked for
            cursor = connection.cursor(next(names))
            if not parameters:
                return cursor.execute(statement.encode())
            bound = with_parameters(statement.replace("%", "%%"), lambda at: f"%(p{at})s", lambda name: name)
            return cursor.execute(bound.encode(), {f"p{at}": value for at, value in enumerate(parameters)})

        yield query


_ENGINES: Final[dict[str, tuple[Callable[..., AbstractContextManager[Query]], str]]] = {
    "sqlite": (_sqlite, "{}"),
    "duckdb": (_duckdb, "CAST({} AS VARCHAR)"),
    "postgresql": (_postgresql, "CAST({} AS TEXT)"),
}
"""What connects to each engine, and how it selects a cell."""


def _quoted(name: str) -> str:
    """A name as SQL takes it regardless of its letters."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _kind(declared: str) -> str:
    name = re.sub(r"\(.*", "", declared.lower()).strip()
    return next((kind for kind, names in _KINDS.items() if re.fullmatch(names, name)), "none")
