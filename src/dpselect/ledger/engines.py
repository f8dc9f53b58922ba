"""Databases that a ledger can live in, and what must hold for their commits to be durable.

SQLite: one file, mode 0600, write-ahead log, every commit synced (`synchronous=FULL`), on a local file system.
PostgreSQL: `synchronous_commit` on for every transaction, and a server that runs with `fsync`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import QueuePool

from dpselect.errors import ArgumentError, missing_extra
from dpselect.ledger.refusals import LedgerDamagedError, LedgerError, LedgerUnavailableError, SchemaVersionError
from dpselect.ledger.schema import APPLICATION_ID

__all__ = [
    "READ",
    "WRITE",
    "check_file",
    "file_of",
    "network_file_system",
    "open_engine",
    "open_new_file",
    "translated",
]

WRITE: dict[str, Any] = {"dpselect_write": True}
"""Execution options of a connection whose transaction writes."""

READ: dict[str, dict[str, Any]] = {"sqlite": {}, "postgresql": {"isolation_level": "REPEATABLE READ"}}
"""Those of one that reads: one view from beginning to end."""

_NETWORK = re.compile(
    r"nfs[34]?|cifs|smb(fs|2|3)?|ncpfs|afs|coda|9p|ceph|lustre|gpfs|glusterfs|beegfs|orangefs|pvfs2|davfs|"
    r"fuse\.(sshfs|s3fs|glusterfs|ceph.*|davfs.*|rclone|gcsfuse)"
)
_PRAGMAS = (
    *("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON"),
    *("trusted_schema=OFF", "cell_size_check=ON"),
)
_NEW_PRAGMAS = ("journal_mode=DELETE", "synchronous=EXTRA", "fullfsync=ON")  # all of it is in the one file
_MOUNTS = Path("/proc/self/mountinfo")
_DAMAGED = ("malformed", "not a database", "file is encrypted", "no such table")


def file_of(where: str | os.PathLike[str]) -> Path | None:
    """The file of a SQLite ledger, or None when `where` is a server's URL.

    Raises `ArgumentError` for a URL of another kind, or a database in memory.
    """
    named = os.fspath(where)
    if "://" not in named:
        if named in ("", ":memory:"):
            raise ArgumentError("a ledger needs a file: memory does not survive a crash")
        return Path(named)
    kind = named.split("://", 1)[0]
    if kind in ("postgresql", "postgres", "postgresql+psycopg"):
        return None
    if kind == "sqlite":
        database = make_url(named).database
        if not database or database == ":memory:":
            raise ArgumentError("a ledger needs a file: memory does not survive a crash")
        return Path(database)
    raise ArgumentError(f"a ledger is a file or a postgresql:// URL, not {kind}://")


def open_engine(where: str | os.PathLike[str], *, timeout: float) -> Engine:
    """An engine on what is there, whose every commit is on disk when it returns."""
    path = file_of(where)
    if path is None:
        return _postgresql(os.fspath(where), timeout=timeout)
    return _sqlite(path.absolute(), timeout=timeout, new=False)


def open_new_file(path: Path, *, timeout: float) -> Engine:
    """An engine on an empty file in which a ledger is to be made; closed, the file is all of it."""
    return _sqlite(path.absolute(), timeout=timeout, new=True)


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


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
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


def _sqlite(path: Path, *, timeout: float, new: bool) -> Engine:
    def connect() -> sqlite3.Connection:
        if not new:
            check_file(path)
        # mode=rw: a file that was removed meanwhile is not made anew
        uri = f"{path.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout, check_same_thread=False)
        try:
            if not new:
                _check_owner(connection, path)
            for pragma in _NEW_PRAGMAS if new else _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=1, max_overflow=0)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("dpselect_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgresql(url: str, *, timeout: float) -> Engine:
    try:
        import psycopg  # noqa: F401 - an optional dependency
    except ImportError:
        raise missing_extra("postgres", "a ledger on PostgreSQL") from None
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        connect_args={"connect_timeout": max(2, int(timeout))},
        pool_size=1,
        max_overflow=0,
    )

    @event.listens_for(engine, "connect")
    def settings(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            # a server or role may have set these otherwise
            cursor.execute("SET synchronous_commit = 'on'")
            cursor.execute("SET default_transaction_isolation = 'read committed'")
            cursor.execute(f"SET lock_timeout = {int(timeout * 1000)}")
            fsync = cursor.execute("SHOW fsync").fetchone()[0]
        connection.commit()
        if fsync != "on":
            raise LedgerUnavailableError("this PostgreSQL server runs without fsync: its commits are not durable")

    return engine


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


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn the drivers' errors into a ledger's, without statements or values."""
    try:
        yield
    except (exc.DBAPIError, sqlite3.Error) as error:
        origin = getattr(error, "orig", None) or error
        said = str(origin).strip().splitlines()[0] if str(origin).strip() else type(origin).__name__
        if any(word in said for word in _DAMAGED):
            raise LedgerDamagedError(f"the ledger {name} cannot be read: {said}") from None
        raise LedgerUnavailableError(f"the ledger {name} cannot be used: {said}") from None
    except exc.TimeoutError:
        raise LedgerUnavailableError(f"the ledger {name} is busy: no connection is free") from None
    except exc.SQLAlchemyError as error:
        raise LedgerError(f"the ledger {name} cannot be used: {type(error).__name__}") from None
