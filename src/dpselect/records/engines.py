"""Database engines of records, with durable commits.

SQLite: one file, every commit synced (`dpselect.storage.durable`).
PostgreSQL: `synchronous_commit` on for every transaction, and a server that runs with `fsync`.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from dpselect.errors import ArgumentError, StudyError, missing_extra
from dpselect.storage import durable

__all__ = [
    "CREATION_LOCKS",
    "Database",
    "RecordDamagedError",
    "RecordUnavailableError",
    "Server",
    "driver_errors",
    "is_server",
    "server",
    "shown_url",
    "sqlite",
    "unusable",
]

_NUMBERS: Final = {"ledger": 6450517351, "witness": 6450517352, "submitters": 6450517352, "holdout": 6450517353}
CREATION_LOCKS: Final = {kind: f"SELECT pg_advisory_xact_lock({number})" for kind, number in _NUMBERS.items()}
"""Statements that keep all others from making the same tables on a server. Earlier versions take the same locks."""

_SERVERS: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")


class RecordUnavailableError(Exception):
    """A database or a witness cannot be used now. Each kind of record raises its own error in place of these."""


class RecordDamagedError(Exception):
    """A store or a witness cannot be read."""


class Database:
    """A SQLite file and one connection to it, opened when it is needed and kept. One thread at a time uses it.

    Statements have :named parameters and no other colon or percent sign. Rows have names.
    """

    dialect: ClassVar[str] = "sqlite"
    begin_read: ClassVar[str] = "BEGIN"
    begin_write: ClassVar[str] = "BEGIN IMMEDIATE"
    tables_here: ClassVar[str] = "SELECT name FROM sqlite_master"
    types: ClassVar[Mapping[str, str]] = {
        "bytes": "BLOB",
        "whole": "INTEGER",
        "real": "REAL",
        "key": "INTEGER PRIMARY KEY",
        "strict": "STRICT",
    }

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._connection: Any = None

    @contextmanager
    def transaction(self, *, write: bool, lock: str | None = None) -> Iterator[None]:
        """One view of the database. When it ends, its writes are durable. When it raises, they are undone.

        A transaction that writes is alone: on SQLite at once, on a server by the statement `lock`.
        """
        self._connection = self._connection or self._connect()
        try:
            self._connection.execute(self.begin_write if write else self.begin_read)
            if lock is not None and self.dialect != "sqlite":
                self.execute(lock)
            yield
            if write:
                durable.commit(self._connection)
            else:
                self._connection.execute("ROLLBACK")
        except BaseException:
            self._roll_back()
            raise

    def keep(self) -> None:
        """Make durable what this transaction wrote so far, and begin the next one."""
        durable.commit(self._connection)
        self._connection.execute(self.begin_write)

    def _roll_back(self) -> None:
        try:
            if self._in_transaction():
                self._connection.execute("ROLLBACK")
        except driver_errors():  # the connection is lost: opened again the next time
            self.close()

    def _in_transaction(self) -> bool:
        """False after an error that made SQLite end the transaction itself."""
        return bool(self._connection.in_transaction)

    def execute(self, statement: str, **values: Any) -> Any:
        """The cursor of one statement."""
        return self._connection.execute(self._form(statement), values or ())

    def execute_all(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """One statement for each of many rows."""
        self._connection.cursor().executemany(self._form(statement), values)

    def stream(self, statement: str) -> Iterator[Any]:
        """The rows of a statement, without holding all of them."""
        return iter(self.execute(statement))

    def create(self, *tables: str) -> None:
        """Make tables, whose statements have this engine's `types` in braces."""
        for table in tables:
            self.execute(table.format(**self.types))

    def tables(self) -> set[str]:
        """The names of all tables, in SQLite with views and the like: whether anything is there."""
        return {str(name) for (name,) in self.execute(self.tables_here)}

    def close(self) -> None:
        """Close the connection and undo its transaction. A later use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _form(self, statement: str) -> str:
        return statement


class Server(Database):
    """A PostgreSQL database."""

    dialect = "postgresql"
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    begin_write = "BEGIN ISOLATION LEVEL READ COMMITTED"
    tables_here = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
    types: ClassVar[Mapping[str, str]] = {
        "bytes": "BYTEA",
        "whole": "BIGINT",
        "real": "DOUBLE PRECISION",
        "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "strict": "",
    }

    def stream(self, statement: str) -> Iterator[Any]:
        """Stream with a cursor of the server: the driver would fetch all rows."""
        with self._connection.cursor(name="dpselect") as cursor:
            yield from cursor.execute(statement)

    def _in_transaction(self) -> bool:
        return True

    def _form(self, statement: str) -> str:
        return _with_percent_signs(statement)


@cache
def _with_percent_signs(statement: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", statement)


def is_server(place: str) -> bool:
    """Whether a place is the URL of a server."""
    return place.startswith(_SERVERS)


def shown_url(url: str) -> str:
    """The URL of a server for messages: without a password, which may be before the @ or after the ?."""
    return url.rsplit("@", 1)[-1].split("?", 1)[0]


def sqlite(path: Path, **options: Any) -> Database:
    """A SQLite file that is there, with the options of `durable.connect`."""
    where = path.absolute()

    def connect() -> sqlite3.Connection:
        connection = durable.connect(where, **options)
        connection.row_factory = _row
        return connection

    return Database(connect)


def _row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return _row_type(tuple(column[0] for column in cursor.description))._make(values)


@cache
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)


def server(url: str, *, timeout: float = 30.0) -> Server:
    """A PostgreSQL database, whose every commit is on disk when it returns.

    Raises `MissingExtraError` without the extra "postgres", and `ArgumentError` for a URL that cannot be parsed,
    without quoting it.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.rows import namedtuple_row
    except ImportError:
        raise missing_extra("postgres", "a PostgreSQL database") from None
    try:
        settings: Any = conninfo_to_dict(url.replace("+psycopg", "", 1))
    except psycopg.ProgrammingError:
        raise ArgumentError("this is no postgresql:// URL: it cannot be parsed") from None

    settings["connect_timeout"] = max(2, int(timeout))

    def connect() -> Any:
        connection = psycopg.connect(**settings, autocommit=True, row_factory=namedtuple_row)
        # a server or role may have set these otherwise
        connection.execute("SET synchronous_commit = 'on'")
        connection.execute(f"SET lock_timeout = {int(timeout * 1000)}")
        fsync: Any = connection.execute("SHOW fsync").fetchone()
        if fsync[0] != "on":
            connection.close()
            raise RecordUnavailableError("this PostgreSQL server runs without fsync: its commits are not durable")
        return connection

    return Server(connect)


def driver_errors() -> tuple[type[Exception], ...]:
    """The errors of the drivers that are loaded."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error,) if psycopg is None else (sqlite3.Error, psycopg.Error)


@contextmanager
def unusable(message: str, *, locked: str | None = None) -> Iterator[None]:
    """Turn the errors of drivers, and those of this package, into a `StudyError` without statements or values.

    `locked` is the message when another process holds a SQLite file. Without it, that is `message` too.
    """
    try:
        yield
    except (RecordUnavailableError, RecordDamagedError, *driver_errors()) as error:  # type: ignore[misc]
        raise StudyError(locked if locked is not None and "locked" in str(error) else message) from None
