"""Durable writes. Everything that must survive a crash goes through `commit` or `sync`, and nothing else does."""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

__all__ = [
    "FLAGS",
    "commit",
    "connect",
    "create_private",
    "erase",
    "sync",
    "sync_content",
    "sync_folder",
    "whole_file",
    "write_atomically",
]

if sys.platform == "win32":
    FLAGS = os.O_BINARY
else:
    FLAGS = os.O_NOFOLLOW
"""To open a file as it is: no link in its place, and no bytes changed."""
_LOGGED: Final = ("journal_mode=WAL", "synchronous=FULL")
_WHOLE: Final = ("journal_mode=DELETE", "synchronous=EXTRA")
_PAUSE: Final = 0.005
_SETTINGS: Final = ("fullfsync=ON", "checkpoint_fullfsync=ON", "trusted_schema=OFF", "cell_size_check=ON")


def sync(descriptor: int) -> None:
    """Force a file or folder to disk."""
    os.fsync(descriptor)


def sync_content(descriptor: int) -> None:
    """Force the content of a file to disk, without its times. `sync` does both, at twice the cost."""
    if sys.platform == "linux":
        os.fdatasync(descriptor)
    else:
        sync(descriptor)


def commit(connection: Any) -> None:
    """Commit a transaction of SQLite or of a server. It is on disk when this returns, as each connection is set so."""
    connection.execute("COMMIT")


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk. Does nothing where the system cannot (Windows)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def create_private(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read. Raises `FileExistsError` if there is one."""
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, 0o600), content)
    sync_folder(path.parent)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield an empty file to write. It appears at `path` when the block ends, whole or not at all.

    Raises `FileExistsError` rather than replace a file. Call `sync_folder` afterwards to make the name durable.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        create_private(part, b"")
        yield part
        os.link(part, path)  # unlike a renaming
    finally:
        for name in (part, part.with_name(f"{part.name}-journal")):
            with suppress(OSError):
                name.unlink()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old content or the new, never a part. Idempotent.

    Fit for the release callback of `tune`.
    """
    part = path.with_name(f".{path.name}.part")
    _write(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | FLAGS, 0o666), content)
    os.replace(part, path)
    sync_folder(path.parent)


def erase(path: Path) -> None:
    """Overwrite a file, then unlink it. Does nothing if there is none.

    Journaling and copy-on-write file systems and flash storage may keep the old blocks anyway.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | FLAGS)
    except FileNotFoundError:
        return
    _write(descriptor, secrets.token_bytes(max(os.fstat(descriptor).st_size, 1)))
    path.unlink()
    sync_folder(path.parent)


def _write(descriptor: int, content: bytes) -> None:
    """Write to the beginning of an open file, sync and close it."""
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        sync(descriptor)


def connect(
    path: Path,
    *,
    logged: bool = False,
    exclusive: bool = False,
    synced: bool = True,
    timeout: float = 30.0,
    check: Callable[[sqlite3.Connection], None] | None = None,
) -> sqlite3.Connection:
    """Connect to an existing SQLite file. Its commits are synced, and the caller begins and commits.

    With `logged` there is a write-ahead log beside the file, and readers do not wait for writers. Without it all
    committed content is in the one file. An exclusive connection, which is logged, keeps every other process out until
    it is closed or its process dies. Without `synced` a power cut may undo commits to the log. A crash of the process
    does not. `timeout` is how many seconds to wait for others. `check` may refuse the file before anything is written
    to it.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"  # a file that was removed meanwhile is not made again
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout, check_same_thread=False)
    try:
        if check is not None:
            check(connection)
        locking = ("locking_mode=EXCLUSIVE",) if exclusive else ()
        unsynced = () if synced else ("synchronous=NORMAL",)
        for pragma in (*locking, *(_LOGGED if logged or exclusive else _WHOLE), *_SETTINGS, *unsynced):
            _set(connection, pragma, timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _set(connection: sqlite3.Connection, pragma: str, timeout: float) -> None:
    """Set a pragma. SQLite itself does not wait for others that change the same file's mode at this moment."""
    end = time.monotonic() + timeout
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_PAUSE)
