"""Database engines: transactions, locks, types, and errors that show no statement and no password."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.holdout.server.submitters import Submitters
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.records.engines import Database, Server, is_server, shown_url, sqlite, unusable
from dpselect.storage import durable
from tests.holdout.server.serving import POSTGRES, fresh_database


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


def test_both_engines_name_the_same_types():
    assert Database.types.keys() == Server.types.keys()


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
