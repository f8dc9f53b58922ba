"""Durable writes: whole or not at all, for their owner alone, and forced to disk with the folder that names them."""

from __future__ import annotations

import os
import sqlite3
import stat

import pytest

from dpselect.storage import durable

needs_posix = pytest.mark.skipif(os.name == "nt", reason="modes and folders of POSIX")


@pytest.fixture
def synced(monkeypatch):
    """The inodes that were forced to disk."""
    found = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: found.append(os.fstat(descriptor).st_ino))
    return found


@needs_posix
def test_a_private_file_is_created_once(tmp_path, synced):
    path = tmp_path / "key"
    durable.create_private(path, b"secret")
    assert path.read_bytes() == b"secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    with pytest.raises(FileExistsError):
        durable.create_private(path, b"other")
    assert path.read_bytes() == b"secret"


@needs_posix
def test_a_write_replaces_the_old_content_as_a_whole(tmp_path, synced, monkeypatch):
    path = tmp_path / "out.json"
    durable.write_atomically(path, b"old and long")
    durable.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["out.json"]
    assert synced[-2:] == [path.stat().st_ino, tmp_path.stat().st_ino]

    def fail(*_):
        raise OSError

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError):
        durable.write_atomically(path, b"newer")
    assert path.read_bytes() == b"new"


def test_a_whole_file_appears_when_its_block_ends(tmp_path):
    path = tmp_path / "copy.db"
    with durable.whole_file(path) as part:
        assert part.read_bytes() == b""
        part.write_bytes(b"done")
        assert not path.exists()
    assert path.read_bytes() == b"done"
    with pytest.raises(FileExistsError), durable.whole_file(path):
        pass
    with pytest.raises(ZeroDivisionError), durable.whole_file(tmp_path / "other"):
        raise ZeroDivisionError
    assert [one.name for one in tmp_path.iterdir()] == ["copy.db"]


def test_erasing_overwrites_first(tmp_path):
    path, kept = tmp_path / "key", tmp_path / "link"
    durable.erase(path)  # nothing is there
    path.write_bytes(b"secret bytes")
    os.link(path, kept)  # what is left of the content
    durable.erase(path)
    assert not path.exists()
    assert len(kept.read_bytes()) == 12
    assert b"secret" not in kept.read_bytes()


def pragma(connection, name):
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize(
    ("how", "journal", "synchronous", "locking"),
    [
        ({}, "delete", 3, "normal"),
        ({"logged": True}, "wal", 2, "normal"),
        ({"exclusive": True}, "wal", 2, "exclusive"),
        ({"logged": True, "synced": False}, "wal", 1, "normal"),
    ],
)
def test_commits_of_a_connection_are_synced(tmp_path, how, journal, synchronous, locking):
    path = tmp_path / "r.db"
    sqlite3.connect(path).close()
    connection = durable.connect(path, **how)
    assert (pragma(connection, "journal_mode"), pragma(connection, "synchronous")) == (journal, synchronous)
    assert pragma(connection, "locking_mode") == locking
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE t (x)")
    durable.commit(connection)
    assert not connection.in_transaction
    connection.close()


def test_a_file_that_is_not_there_or_is_refused_is_not_changed(tmp_path):
    with pytest.raises(sqlite3.OperationalError):
        durable.connect(tmp_path / "none.db")
    assert not list(tmp_path.iterdir())

    def check(connection):
        raise ValueError("not this one")

    path = tmp_path / "r.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not this one"):
        durable.connect(path, logged=True, check=check)
    assert path.read_bytes() == before
