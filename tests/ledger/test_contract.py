"""The shipped contract on SQLite, and on a real PostgreSQL server when DPSELECT_TEST_POSTGRES names one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from urllib.parse import quote

import pytest

from dpselect.ledger import Ledger, LedgerDamagedError, LedgerUnavailableError, StaleRecordError
from dpselect.testing.ledger_contract import GATE, LedgerContract

POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")


class TestSqlite(LedgerContract):
    @pytest.fixture
    def where(self, tmp_path):
        return str(tmp_path / "budget.db")


@contextlib.contextmanager
def empty_schema():
    """The URL of an empty schema, dropped afterwards."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    yield f"{POSTGRES}&options={quote(f'-csearch_path={name}')}"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def changed(where, *statements):
    """Change tables behind the library's back."""
    import psycopg

    with psycopg.connect(where) as connection:
        connection.execute("ALTER TABLE ledger_entry DISABLE TRIGGER ALL")
        for statement in statements:
            connection.execute(statement)
        connection.execute("ALTER TABLE ledger_entry ENABLE TRIGGER ALL")


@pytest.fixture
def schema():
    with empty_schema() as where:
        yield where


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
class TestPostgresql(LedgerContract):
    @pytest.fixture
    def where(self, schema):
        return schema

    def test_entries_are_append_only(self, where):
        import psycopg

        with Ledger.open(where) as ledger:
            ledger.create_budget("b", epsilon=1)
        for statement in ("UPDATE ledger_entry SET head = 'x'", "DELETE FROM ledger_entry", "TRUNCATE ledger_entry"):
            with psycopg.connect(where) as connection, pytest.raises(psycopg.errors.RaiseException):
                connection.execute(statement)

    def test_commits_are_synchronous_whatever_the_server_says(self, where):
        import psycopg

        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            connection.execute("ALTER ROLE CURRENT_USER SET synchronous_commit = 'off'")
        try:
            with Ledger.open(where) as ledger:
                ledger.create_budget("b", epsilon=1)
                with ledger._store.write() as transaction:
                    shown = transaction.database.execute("SHOW synchronous_commit").fetchone()[0]
            assert shown == "on"
        finally:
            with psycopg.connect(POSTGRES, autocommit=True) as connection:
                connection.execute("ALTER ROLE CURRENT_USER RESET synchronous_commit")

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE ledger_account SET state = replace(state, '\"1\"', '\"0\"')",
            "UPDATE ledger_account SET terms = replace(terms, '\"3\"', '\"9\"')",
            "DELETE FROM ledger_entry WHERE sequence = 3",
            "UPDATE ledger_entry SET body = replace(body, 's', 't') WHERE sequence = 3",
        ],
    )
    def test_reserve_finds_changed_sums_and_a_changed_end(self, where, statement):
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            budget.reserve(GATE, label="s")
            changed(where, statement)
            with pytest.raises(LedgerDamagedError):
                budget.reserve(GATE, label="s")

    def test_a_witness_finds_a_record_that_was_put_back(self, where, tmp_path):
        with Ledger.open(where, witness=tmp_path / "witness") as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            with ledger._store.read() as transaction:
                query = "SELECT state, digest FROM ledger_account"
                state, digest = transaction.database.execute(query).fetchone()
            budget.reserve(GATE, label="s")
            back = f"UPDATE ledger_account SET state = '{state}', digest = '{digest}'"
            changed(where, back, "DELETE FROM ledger_entry WHERE sequence = 3", "DELETE FROM ledger_reservation")
            with pytest.raises(StaleRecordError, match="entry 3"):
                budget.reserve(GATE, label="s")
        with Ledger.open(where) as ledger:  # a server has none by default
            assert ledger.verify()

    @pytest.mark.parametrize("url", ["who:hush@127.0.0.1:9/none", "who@127.0.0.1:9/none?password=hush"])
    def test_a_name_in_an_error_holds_no_password(self, url):
        with pytest.raises(LedgerUnavailableError, match=r"127\.0\.0\.1:9/none") as caught:
            Ledger.open(f"postgresql://{url}", timeout=2)
        assert "hush" not in str(caught.value)

    def test_a_held_lock_and_a_dropped_connection_charge_nothing(self, where):
        import psycopg

        with Ledger.open(where, timeout=1) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            budget.reserve(GATE, label="s", identifier="x")
            with psycopg.connect(where) as other:
                other.execute("LOCK TABLE ledger_entry IN EXCLUSIVE MODE")
                for call in (lambda: budget.reserve(GATE, label="s"), lambda: budget.settle("x", cell=False)):
                    with pytest.raises(LedgerUnavailableError, match="lock timeout"):
                        call()
            with ledger._store.read() as transaction:
                backend = transaction.database.execute("SELECT pg_backend_pid()").fetchone()[0]
            with psycopg.connect(POSTGRES, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", (backend,))
            with pytest.raises(LedgerUnavailableError):
                budget.reserve(GATE, label="s")
            assert budget.spent().epsilon == 1
            assert ledger.verify()


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_a_record_moves_from_a_file_to_a_server(tmp_path, schema):
    from dpselect.ledger.transfer import export_lines, import_lines

    with Ledger.open(tmp_path / "a.db") as ledger:
        receipt = ledger.create_budget("b", epsilon=3, delta="1e-6").reserve(GATE, label="one", identifier="x")
        with import_lines(export_lines(ledger), schema) as moved:
            assert moved.head() == ledger.head()
            assert moved.verify(receipt)
            moved.budget("b").settle("x", cell=False)
            assert moved.verify(receipt)


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_a_server_is_the_witness_of_files(tmp_path, schema):
    copies = []
    for name in ("a.db", "b.db"):
        with Ledger.open(tmp_path / name, witness=schema) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            copies.append(shutil.copy(tmp_path / name, tmp_path / f"old-{name}"))
            budget.reserve(GATE, label="s")
    for copy in copies:
        with pytest.raises(StaleRecordError):
            Ledger.open(copy, witness=schema)
    with Ledger.open(tmp_path / "a.db", witness=schema) as ledger:
        ledger.budget("b").reserve(GATE, label="s")
