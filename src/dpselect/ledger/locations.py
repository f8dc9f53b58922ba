"""Places of a ledger, and its witness: SQLite files of mode 0600 on a local file system, or PostgreSQL."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dpselect.errors import ArgumentError
from dpselect.ledger.refusals import (
    LedgerDamagedError,
    LedgerError,
    LedgerUnavailableError,
    SchemaVersionError,
    UnwitnessedWarning,
)
from dpselect.records.engines import (
    Database,
    RecordDamagedError,
    RecordUnavailableError,
    driver_errors,
    is_server,
    server,
    shown_url,
    sqlite,
)
from dpselect.records.witness import FileWitness, FolderWitness, ServerWitness, Witness
from dpselect.storage.keys import state_folder

__all__ = ["APPLICATION_ID", "WitnessPlace", "check_file", "file_of", "opened", "translated", "witness_at"]

WitnessPlace = bool | str | os.PathLike[str]

APPLICATION_ID = int.from_bytes(b"dpsl", "big")
"""In the header of a SQLite file: whose it is."""

_NETWORK = re.compile(
    r"nfs[34]?|cifs|smb(fs|2|3)?|ncpfs|afs|coda|9p|ceph|lustre|gpfs|glusterfs|beegfs|orangefs|pvfs2|davfs|"
    r"fuse\.(sshfs|s3fs|glusterfs|ceph.*|davfs.*|rclone|gcsfuse)"
)
_MOUNTS = Path("/proc/self/mountinfo")
_VARIABLE = "DPSELECT_LEDGER_WITNESS"
_DAMAGED = ("malformed", "not a database", "file is encrypted", "no such table")


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
    """The database at a place, whose every commit is on disk when it returns."""
    path = file_of(where)
    if path is None:
        return server(os.fspath(where), timeout=timeout)
    return sqlite(path, logged=True, timeout=timeout, check=partial(_check_owner, path.absolute()))


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
    """Refuse a database that is no ledger, before anything is written to it. Raises as `check_file` too."""
    check_file(path)
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
    """Turn the errors of drivers and of a record's parts into a ledger's, without statements or values."""
    try:
        yield
    except RecordDamagedError as error:
        raise LedgerDamagedError(str(error)) from None
    except RecordUnavailableError as error:
        raise LedgerUnavailableError(str(error)) from None
    except driver_errors() as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        if any(word in said for word in _DAMAGED):
            raise LedgerDamagedError(f"the ledger {name} cannot be read: {said}") from None
        raise LedgerUnavailableError(f"the ledger {name} cannot be used: {said}") from None


def witness_at(place: WitnessPlace, *, is_file: bool, timeout: float) -> Witness | None:
    """The witness that is asked for. True means the variable's, else the state folder for a ledger in a file.

    Raises `ArgumentError` for a place that is none.
    """
    if place is True:
        place = os.environ.get(_VARIABLE) or True
    if place is True:
        return FolderWitness(state_folder() / "ledgers", without=_warn) if is_file else None
    if place is False or place is None:
        return None
    place = os.fspath(place)
    if not isinstance(place, str) or not place:
        raise ArgumentError("witness must be True, False, a file, a folder, or a postgresql:// URL")
    if "://" in place:
        if not is_server(place):
            raise ArgumentError("witness: of URLs, only postgresql:// ones are known")
        with translated(shown_url(place)):
            return ServerWitness(place, timeout=timeout)
    path = Path(place).absolute()
    return FolderWitness(path) if path.is_dir() else FileWitness(path)


def _warn(reason: str) -> None:
    warnings.warn(
        f"{reason}. Nothing outside of the ledger knows how far it has come, so an older copy of it would not "
        f"be found. Set {_VARIABLE} to a folder that can be written, or pass witness=False",
        UnwitnessedWarning,
        stacklevel=2,
    )
