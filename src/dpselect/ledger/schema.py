"""Tables, the triggers that make entries append-only, and schema versions.

`ledger_entry` is the record. `ledger_account` and `ledger_reservation` are its fold, kept so that a spend takes
time that does not depend on how long the record is. Each account has a digest, and the last entry has the hash of all
of them: a spend checks what it reads against it, and `verify` folds the record again and compares everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpselect.ledger.locations import APPLICATION_ID
from dpselect.ledger.refusals import LedgerDamagedError, SchemaVersionError
from dpselect.records.engines import Database

__all__ = ["CLAIMS", "MIGRATIONS", "SCHEMA_VERSION", "create_tables", "is_there", "migrate", "schema_version"]

SCHEMA_VERSION = 3

_OLDEST = 2  # entries of version 1 said nothing about the sums after them


def _with_claims(database: Database) -> None:
    database.execute("ALTER TABLE ledger_reservation ADD COLUMN claimed BIGINT")


MIGRATIONS: Mapping[int, Callable[[Database], None]] = {2: _with_claims}
"""From a version to the next. Entries are never rewritten: a migration changes tables and the fold, not the record."""

CLAIMS = 3
"""The version from which on reservations have claims."""

_TABLES = (
    "CREATE TABLE ledger_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE ledger_entry (sequence BIGINT PRIMARY KEY, head TEXT NOT NULL UNIQUE, body TEXT NOT NULL)",
    "CREATE TABLE ledger_account (name TEXT PRIMARY KEY, terms TEXT NOT NULL, state TEXT NOT NULL, "
    "digest TEXT NOT NULL)",
    "CREATE TABLE ledger_reservation (budget TEXT NOT NULL, identifier TEXT NOT NULL, sequence BIGINT NOT NULL, "
    "settled BIGINT, claimed BIGINT, PRIMARY KEY (budget, identifier))",
)

# An INSERT OR REPLACE deletes without firing delete triggers, so the order of insertion is checked too.
_SQLITE_TRIGGERS = (
    "CREATE TRIGGER ledger_entry_no_update BEFORE UPDATE ON ledger_entry "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
    "CREATE TRIGGER ledger_entry_no_delete BEFORE DELETE ON ledger_entry "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
    "CREATE TRIGGER ledger_entry_in_order BEFORE INSERT ON ledger_entry "
    "WHEN NEW.sequence != (SELECT coalesce(max(sequence), 0) + 1 FROM ledger_entry) "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
)

_POSTGRESQL_TRIGGERS = (
    "CREATE FUNCTION ledger_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'entries are append-only'; END $$",
    "CREATE TRIGGER ledger_entry_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entry "
    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_entry_refuse()",
)

_TRIGGERS = {"sqlite": _SQLITE_TRIGGERS, "postgresql": _POSTGRESQL_TRIGGERS}


def is_there(database: Database) -> bool:
    """Whether there is a ledger. Raises `LedgerDamagedError` when some of its tables are gone."""
    missing = {"ledger_meta", "ledger_entry", "ledger_account", "ledger_reservation"} - database.tables()
    if database.dialect == "postgresql" and len(missing) == 4:
        return False
    if missing:
        raise LedgerDamagedError(f"the ledger lacks its table {min(missing)}: restore a copy")
    return True


def create_tables(database: Database) -> None:
    """The tables and triggers of the current version."""
    if database.dialect == "sqlite":
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in _TABLES + _TRIGGERS[database.dialect]:
        database.execute(statement)
    database.execute("INSERT INTO ledger_meta (key, value) VALUES ('schema', '')")
    _note_version(database, SCHEMA_VERSION)


def schema_version(database: Database) -> int:
    """The version of the tables. Raises `SchemaVersionError` for one that this library does not know."""
    row = database.execute("SELECT value FROM ledger_meta WHERE key = 'schema'").fetchone()
    stored = None if row is None else str(row[0])
    if stored is None or not stored.isdecimal() or not _OLDEST <= int(stored) <= SCHEMA_VERSION:
        raise SchemaVersionError(
            f"the ledger has schema version {stored!r}, and this library knows {_OLDEST} to {SCHEMA_VERSION}. Use a "
            "newer library for a later one; of an earlier one, make a new ledger whose budgets are what was left"
        )
    return int(stored)


def migrate(database: Database) -> None:
    """Bring older tables to the current version, within the caller's transaction."""
    for version in range(schema_version(database), SCHEMA_VERSION):
        MIGRATIONS[version](database)
        _note_version(database, version + 1)


def _note_version(database: Database, version: int) -> None:
    database.execute("UPDATE ledger_meta SET value = :version WHERE key = 'schema'", version=str(version))
    if database.dialect == "sqlite":
        database.execute(f"PRAGMA user_version = {version}")
