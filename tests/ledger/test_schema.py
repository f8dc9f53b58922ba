"""Tables of a ledger: append-only, private, and brought from older versions to the present one."""

from __future__ import annotations

import os
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect.ledger import Ledger, schema as ledger_schema
from dpselect.ledger.refusals import SchemaVersionError
from dpselect.privacy.release import Receipt
from dpselect.testing.ledger_contract import GATE
from tests.ledger.edits import edited

ASSETS = Path(__file__).parent / "assets"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entry SET body = '{}' WHERE sequence = 3",
        "DELETE FROM ledger_entry WHERE sequence = 8",
        "INSERT OR REPLACE INTO ledger_entry SELECT sequence, head, '{}' FROM ledger_entry WHERE sequence = 3",
        "INSERT INTO ledger_entry VALUES (20, 'x', '{}')",
    ],
)
def test_entries_are_append_only(written, statement):
    connection = sqlite3.connect(written)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


# -- versions


def test_an_unknown_schema_version(written):
    edited(written, "UPDATE ledger_meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(SchemaVersionError, match="99"):
        Ledger.open(written)


def made_from(path, statements):
    connection = sqlite3.connect(path)
    connection.executescript((ASSETS / statements).read_text(encoding="ascii"))
    connection.close()


def test_the_first_released_version_opens(path):
    """A file of version 2, kept as the statements that make it."""
    made_from(path, "ledger-v2.sql")
    known = Receipt("", "", {}, 4, (ASSETS / "ledger-v2.head").read_text(encoding="ascii").strip())
    with Ledger.open(path) as ledger:
        assert ledger.verify(known)
        assert ledger.budget("census").spent().epsilon == Fraction(11, 10)
        ledger.budget("census").reserve(GATE, label="new", after=known)
        assert ledger.verify(known)


def test_a_file_from_before_the_first_release_is_refused(path):
    """Its entries say nothing about the sums after them, which nothing could check at a spend."""
    made_from(path, "ledger-v1.sql")
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match="what was left"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_migrations_run_in_order_and_keep_the_record(written, monkeypatch):
    """By the first write; a ledger that is read alone stays as it is."""
    with Ledger.open(written) as ledger:
        head = ledger.head()
    ran = []

    def to_four(database):
        ran.append(1)
        database.execute("CREATE INDEX ledger_reservation_sequence ON ledger_reservation (sequence)")

    monkeypatch.setattr(ledger_schema, "SCHEMA_VERSION", 4)
    monkeypatch.setattr("dpselect.ledger.store.SCHEMA_VERSION", 4)
    monkeypatch.setattr(ledger_schema, "MIGRATIONS", {**ledger_schema.MIGRATIONS, 3: to_four})
    with Ledger.open(written) as ledger:
        assert ledger.verify()
        assert ledger.head() == head
    assert ran == []
    for number in range(2):
        with Ledger.open(written) as ledger:
            ledger.budget("b").reserve(GATE, label="s", identifier=f"new {number}")
            assert ledger.verify()
            assert ledger.head().sequence == head.sequence + 1 + number
    assert ran == [1]


# -- files


def test_the_file_is_private_and_synced(path):
    os.umask(os.umask(0))  # no matter what it is
    with Ledger.open(path) as ledger:
        ledger.create_budget("b", epsilon=1)
        with ledger._store.write() as transaction:
            pragma = transaction.database.execute
            assert pragma("PRAGMA synchronous").fetchone()[0] == 2  # FULL
            assert pragma("PRAGMA journal_mode").fetchone()[0] == "wal"
            assert pragma("PRAGMA application_id").fetchone()[0] == int.from_bytes(b"dpsl", "big")
            assert pragma("PRAGMA user_version").fetchone()[0] == ledger_schema.SCHEMA_VERSION
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["budget.db", "budget.db-wal", "budget.db-shm"], 0o600)
