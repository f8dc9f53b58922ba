"""The parts of which records are made: the chain of hashes, the seal, transactions, files that appear whole."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing, suppress

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.holdout import shared_record
from dpselect.holdout.server.submitters import Submitters
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.records.chain import BYTES, LINES, ChainHead
from dpselect.records.engines import Database, Server, is_server, shown_url, sqlite, unusable
from dpselect.records.seal import EXTRA_BYTES, BrokenSealError, Seal
from dpselect.records.witness import FolderWitness
from dpselect.storage import durable
from tests.holdout.server.serving import POSTGRES, fresh_database

KEY, OTHER = bytes(range(32)), bytes(32)


@pytest.mark.parametrize(("chain", "number"), [(LINES, b"8\n"), (BYTES, bytes([0, 0, 0, 0, 0, 0, 0, 8]))])
def test_a_head_is_the_hash_of_head_number_and_content(chain, number):
    before = ChainHead(7, "ab" * 32)
    content = bytes([0xAB] * 32) + number + b"entry"
    assert chain.next_head(before, b"entry") == ChainHead(8, hashlib.sha256(content).hexdigest())
    assert chain.place_after(before) == bytes([0xAB] * 32) + number


def test_only_the_key_and_the_bound_bytes_open_a_seal():
    sealed = Seal(KEY).close(b"secret", b"place")
    assert Seal(KEY).open(sealed, b"place") == b"secret"
    assert len(sealed) == len(b"secret") + EXTRA_BYTES
    assert sealed != Seal(KEY).close(b"secret", b"place"), "a fresh nonce"
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    cases = [(KEY, sealed, b"other"), (OTHER, sealed, b"place"), *((KEY, one, b"place") for one in changed)]
    cases += [(KEY, sealed[:length], b"place") for length in (0, 5, 12, 20, len(sealed) - 1)]
    for key, content, bound_to in cases:
        with pytest.raises(BrokenSealError):
            Seal(key).open(content, bound_to)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "a.db"
    durable.create_private(found, b"")
    return found


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return [value for (value,) in connection.execute("SELECT x FROM t")]


def test_a_transaction_that_raises_leaves_nothing_but_what_was_kept(path):
    with closing(sqlite(path)) as database, suppress(ZeroDivisionError), database.transaction(write=True):
        database.create("CREATE TABLE t (x {whole}) {strict}")
        database.execute("INSERT INTO t VALUES (:x)", x=1)
        database.keep()
        database.execute("INSERT INTO t VALUES (:x)", x=2)
        raise ZeroDivisionError
    assert rows(path) == [1]


def test_after_a_full_disk_an_exclusive_connection_keeps_others_out(path, monkeypatch):
    """SQLite itself ends a transaction that finds the disk full. The connection, and with it the lock, must last."""

    def full(connection):
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    with closing(sqlite(path, exclusive=True)) as database:
        with database.transaction(write=True):
            database.create("CREATE TABLE t (x {whole}) {strict}")
        with monkeypatch.context() as patch:
            patch.setattr(durable, "commit", full)
            with pytest.raises(sqlite3.OperationalError, match="full"), database.transaction(write=True):
                database.execute("INSERT INTO t VALUES (:x)", x=1)
        with closing(sqlite3.connect(path, timeout=0)) as other, pytest.raises(sqlite3.OperationalError, match="lock"):
            other.execute("SELECT x FROM t")
        with database.transaction(write=True):
            database.execute("INSERT INTO t VALUES (:x)", x=2)
    assert rows(path) == [2]


@pytest.mark.parametrize(("options", "level"), [({}, 3), ({"logged": True}, 2), ({"logged": True, "synced": False}, 1)])
def test_commits_are_synced_unless_that_is_declined(path, options, level):
    with closing(durable.connect(path, **options)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


def test_both_engines_name_the_same_types():
    assert Database.types.keys() == Server.types.keys()


def test_a_whole_file_never_replaces_one_and_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    with suppress(ZeroDivisionError), durable.whole_file(path) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with durable.whole_file(path) as part:
        part.write_text("whole")
        assert not path.exists()
    with pytest.raises(FileExistsError), durable.whole_file(path) as part:
        part.write_text("other")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "whole")]


def test_urls_are_shown_without_passwords():
    assert is_server("postgresql+psycopg://me:secret@host/db?password=secret")
    assert shown_url("postgresql://me:s@cret@host/db?password=secret") == "host/db"


def test_errors_of_drivers_show_no_statement():
    with pytest.raises(StudyError, match=r"^in use$"), unusable("broken", locked="in use"):
        raise sqlite3.OperationalError("database is locked")
    with pytest.raises(StudyError, match=r"^broken$"), unusable("broken", locked="in use"):
        raise sqlite3.OperationalError("no such column: secret")
    with pytest.raises(ValueError, match="mine"), unusable("broken"):
        raise ValueError("mine")


def test_the_later_of_both_witnesses_of_a_shared_record_counts(tmp_path, monkeypatch):
    """Version 0.2 kept the last answer in a table of SQLite; later versions keep it in a file of two slots."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name, folder = "ab" * 16, tmp_path / "dpselect" / "records"
    assert shared_record._witnessed(name) is None
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / f"{name}.witness.db")) as old:
        assert shared_record._witnessed(name) is None, "its making was cut off"
        old.execute("CREATE TABLE witness (id INTEGER PRIMARY KEY, sequence INTEGER, head BLOB) STRICT")
        old.execute("INSERT INTO witness VALUES (1, 5, ?)", (bytes(32),))
        old.commit()
    assert shared_record._witnessed(name) == ChainHead(5, "00" * 32)
    witness = FolderWitness(folder)
    for sequence, latest in ((4, 5), (6, 6), (5, 6)):
        witness.advance(name, ChainHead(sequence, "ff" * 32), "here")
        assert shared_record._witnessed(name).sequence == latest


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_a_schema_made_later_hides_no_ledger_and_no_quota(tmp_path):
    """Else a budget, or a quota, would begin again in the schema that now comes first on the search path."""
    psycopg = pytest.importorskip("psycopg")
    with fresh_database() as url:
        with Ledger.open(url) as ledger:
            ledger.create_budget("b", epsilon=1).reserve(pure_dp(epsilon=1), label="all")
        with Submitters(url) as submitters:
            token = submitters.invite("Ada", questions=1)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA AUTHORIZATION CURRENT_USER")
            assert connection.execute("SELECT current_schema()").fetchone() != ("public",)
        with Ledger.open(url) as ledger:
            with pytest.raises(ArgumentError, match="already"):
                ledger.create_budget("b", epsilon=1)
            assert ledger.budget("b").remaining().epsilon == 0
        with Submitters(url) as submitters:
            assert submitters.by_token(token).name == "Ada"
