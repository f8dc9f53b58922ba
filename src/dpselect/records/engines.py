"""Databases that a ledger can live in, and what must hold for their commits to be durable.

SQLite: one file, mode 0600, write-ahead log, every commit synced (`synchronous=FULL`), on a local file system.
PostgreSQL: `synchronous_commit` on for every transaction, and a server that runs with `fsync`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

from dpselect.errors import ArgumentError, StudyError, missing_extra
from dpselect.ledger.refusals import LedgerDamagedError, LedgerError, LedgerUnavailableError, SchemaVersionError
from dpselect.storage import durable

__all__ = [
    "APPLICATION_ID",
    "Database",
    "check_file",
    "driver_errors",
    "file_of",
    "is_server",
    "new_file",
    "opened",
    "translated",
    "unusable",
]

APPLICATION_ID = int.from_bytes(b"dpsl", "big")
"""In the header of a SQLite file: whose it is."""

_NETWORK = re.compile(
    r"nfs[34]?|cifs|smb(fs|2|3)?|ncpfs|afs|coda|9p|ceph|lustre|gpfs|glusterfs|beegfs|orangefs|pvfs2|davfs|"
    r"fuse\.(sshfs|s3fs|glusterfs|ceph.*|davfs.*|rclone|gcsfuse)"
)
_MOUNTS = Path("/proc/self/mountinfo")
_DAMAGED = ("malformed", "not a database", "file is encrypted", "no such table")
_SERVERS = ("postgresql://", "postgres://", "postgresql+psycopg://")


class Database:
    """A database and one connection to it, opened when it is needed and kept. One thread at a time uses it.

    Statements have :named parameters and no other colon or percent sign; rows have names.
    """

    dialect: ClassVar[str] = "sqlite"
    begin_read: ClassVar[str] = "BEGIN"
    begin_write: ClassVar[str] = "BEGIN IMMEDIATE"

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._connection: Any = None

    @contextmanager
    def transaction(self, *, write: bool, lock: str | None = None) -> Iterator[None]:
        """One view of the database; durable when it ends, or as if it had not been when it raises.

        One that writes is alone: on SQLite at once, on a server by the statement `lock`.
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
            try:
                self._connection.execute("ROLLBACK")
            except driver_errors():  # none is under way, or the connection is lost: opened anew the next time
                self.close()
            raise

    def execute(self, statement: str, **values: Any) -> Any:
        """The cursor of one statement."""
        return self._connection.execute(self._form(statement), values or ())

    def execute_all(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """One statement for each of many rows."""
        self._connection.cursor().executemany(self._form(statement), values)

    def stream(self, statement: str) -> Iterator[Any]:
        """The rows of a statement, without holding all of them."""
        return iter(self.execute(statement))

    def close(self) -> None:
        """Close the connection, which ends what it had begun; a later use opens another."""
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

    def stream(self, statement: str) -> Iterator[Any]:
        """A cursor of the server's: the driver would fetch everything."""
        with self._connection.cursor(name="dpselect") as cursor:
            yield from cursor.execute(statement)

    def _form(self, statement: str) -> str:
        return _with_percent_signs(statement)


@cache
def _with_percent_signs(statement: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", statement)


def is_server(place: str) -> bool:
    """Whether a place is the URL of a server."""
    return place.startswith(_SERVERS)


def file_of(where: str | os.PathLike[str]) -> Path | None:
    """The file of a SQLite ledger, or None when `where` is a server's URL.

    Raises `ArgumentError` for a URL of another kind, or a database in memory.
    """
    named = os.fspath(where)
    if is_server(named):
        return None
    kind, found, _ = named.partition("://")
    if found and kind != "sqlite":
        raise ArgumentError(f"a ledger is a file or a postgresql:// URL, not {kind}://")
    named = named.removeprefix("sqlite://").removeprefix("/").partition("?")[0] if found else named
    if named in ("", ":memory:"):
        raise ArgumentError("a ledger needs a file: memory does not survive a crash")
    return Path(named)


def opened(where: str | os.PathLike[str], *, timeout: float) -> Database:
    """What is there, whose every commit is on disk when it returns."""
    path = file_of(where)
    if path is not None:
        return Database(partial(_connected, path.absolute(), timeout, new=False))
    return Server(_server(os.fspath(where), timeout))


def new_file(path: Path, *, timeout: float) -> Database:
    """An empty file in which a ledger is to be made; closed, the file is all of it."""
    return Database(partial(_connected, path.absolute(), timeout, new=True))


def check_file(path: Path) -> None:
    """Refuse a place where no ledger can be or was: nothing is opened.

    Raises `LedgerUnavailableError` for a missing folder, a network file system (SQLite's locks do not hold there) and
    for what is no file, and `LedgerDamagedError` for an empty file.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise LedgerUnavailableError(f"the ledger {path} cannot be there: there is no folder {folder}")
    kind = network_file_system(folder)
    if kind is not None:
        raise LedgerUnavailableError(f"{path} is on a network file system ({kind}): use PostgreSQL for many machines")
    if not os.path.lexists(path):
        return
    try:
        found = path.stat()
    except OSError as error:
        raise LedgerUnavailableError(f"the ledger {path} cannot be used: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise LedgerUnavailableError(f"{path} is not a file")
    if found.st_size == 0:
        raise LedgerDamagedError(f"{path} is empty: a ledger never is, so this one was emptied. Put a copy back")


def _check_owner(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database that is no ledger, before anything is written to it."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner == APPLICATION_ID:
        return
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "ledger_meta" in names:
        raise SchemaVersionError(
            f"the ledger {path} was made by a version before the first release, whose entries say nothing about the "
            "sums after them. Make a new ledger whose budgets are what was left in this one"
        )
    raise LedgerError(f"{path} is a database, and not a ledger")


def _connected(path: Path, timeout: float, *, new: bool) -> sqlite3.Connection:
    if new:
        connection = durable.connect(path, timeout=timeout)
    else:
        check_file(path)
        connection = durable.connect(path, logged=True, timeout=timeout, check=partial(_check_owner, path))
    connection.row_factory = _row
    return connection


def _row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return _row_type(tuple(column[0] for column in cursor.description))._make(values)


@cache
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)


def _server(url: str, timeout: float) -> Callable[[], Any]:
    """How to connect to a server. Raises `ArgumentError` for a URL that is none, without quoting it."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.rows import namedtuple_row
    except ImportError:
        raise missing_extra("postgres", "a ledger on PostgreSQL") from None
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
            raise LedgerUnavailableError("this PostgreSQL server runs without fsync: its commits are not durable")
        return connection

    return connect


def network_file_system(folder: Path, *, mounts: Path = _MOUNTS) -> str | None:
    """The kind of the network file system that holds `folder`, or None. Known on Linux only."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    resolved = str(folder.resolve())
    best, kind = -1, ""
    for line in lines:
        fields = line.split()
        if len(fields) < 10 or "-" not in fields:
            continue
        point = fields[4].replace("\\040", " ")
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # later mounts cover earlier ones
            best, kind = len(point), fields[fields.index("-") + 1]
    return kind if _NETWORK.fullmatch(kind) else None


def driver_errors() -> tuple[type[Exception], ...]:
    """What the drivers that are loaded raise."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error,) if psycopg is None else (sqlite3.Error, psycopg.Error)


@contextmanager
def unusable(message: str) -> Iterator[None]:
    """Turn the drivers' errors, and a server that is no good, into a `StudyError` without statements or values."""
    try:
        yield
    except (LedgerUnavailableError, *driver_errors()):  # type: ignore[misc]
        raise StudyError(message) from None


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn the drivers' errors into a ledger's, without statements or values."""
    try:
        yield
    except driver_errors() as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        if any(word in said for word in _DAMAGED):
            raise LedgerDamagedError(f"the ledger {name} cannot be read: {said}") from None
        raise LedgerUnavailableError(f"the ledger {name} cannot be used: {said}") from None
