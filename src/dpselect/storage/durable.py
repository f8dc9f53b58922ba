"""Durable writes. Everything that must survive a crash goes through `commit` or `sync`, and nothing else does."""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path

from dpselect.randomness.starting import refuse_while_starting

__all__ = ["commit", "connect", "create_private", "erase", "sync", "sync_content", "sync_folder", "write_atomically"]

_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def sync(descriptor: int) -> None:
    """Force a file or folder to disk."""
    os.fsync(descriptor)


def sync_content(descriptor: int) -> None:
    """Force what a file holds to disk; not its times, which `sync` does too, at twice the cost."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def commit(connection: sqlite3.Connection) -> None:
    """Commit a transaction; on disk when this returns (the connections below are set so)."""
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
    """Create a file that only its owner can read; raises `FileExistsError` if there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        os.write(descriptor, content)
        sync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old content or the new, never a part. Idempotent.

    Fit for the release callback of `tune`.
    """
    part = path.with_name(f".{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        sync(file.fileno())
    os.replace(part, path)
    sync_folder(path.parent)


def erase(path: Path) -> None:
    """Overwrite a file, then unlink it; does nothing if there is none.

    Journaling and copy-on-write file systems and flash storage may keep the old blocks all the same.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | _FLAGS)
    except FileNotFoundError:
        return
    try:
        os.write(descriptor, secrets.token_bytes(max(os.fstat(descriptor).st_size, 1)))
        sync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
    sync_folder(path.parent)


def connect(path: Path, *, exclusive: bool) -> sqlite3.Connection:
    """A SQLite connection whose commits are synced; the caller begins and commits.

    An exclusive connection keeps every other process out until it is closed or its process dies.

    Raises `StartingProcessError` in a child process that is being started.
    """
    refuse_while_starting("a budget, a search or a holdout on disk")
    connection = sqlite3.connect(path, isolation_level=None, timeout=1.0 if exclusive else 30.0)
    try:
        if exclusive:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=" + ("WAL" if exclusive else "DELETE"))
        connection.execute("PRAGMA synchronous=" + ("FULL" if exclusive else "EXTRA"))
        connection.execute("PRAGMA fullfsync=ON")
    except BaseException:
        connection.close()
        raise
    return connection
