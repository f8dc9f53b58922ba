"""Edits behind the library's back, older copies put back, files that are no ledger: what finds each of them."""

from __future__ import annotations

import os
import sqlite3
import threading
from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import (
    Ledger,
    LedgerDamagedError,
    LedgerError,
    LedgerMissingError,
    LedgerUnavailableError,
)
from dpselect.privacy import pure_dp
from dpselect.storage import durable
from dpselect.testing.ledger_contract import GATE
from tests.ledger.test_entries import edited


def spend(path, epsilon=1, **options):
    with Ledger.open(path, **options) as ledger:
        return ledger.budget("b").reserve(pure_dp(epsilon=epsilon), label="s")


# -- edits by SQL

STATE = "UPDATE ledger_account SET state = replace(state, {old}, {new})"
LAST = "(SELECT max(sequence) FROM ledger_entry)"

FOUND_BY_RESERVE = {
    "spent": STATE.format(old="'3/10'", new="'1/10'"),
    "refunded": STATE.format(old="'27/10'", new="'0'"),
    "outstanding": STATE.format(old="'\"outstanding\":0'", new="'\"outstanding\":1'"),
    "locked": STATE.format(old="'null'", new="'3'"),
    "state that is no JSON": "UPDATE ledger_account SET state = 'x'",
    "cap": "UPDATE ledger_account SET terms = replace(terms, '\"3\"', '\"9\"')",
    "digest": "UPDATE ledger_account SET digest = 'x'",
    "digest beyond ASCII": "UPDATE ledger_account SET digest = 'é'",
    "digest of bytes": "UPDATE ledger_account SET digest = x'00'",
    "state of bytes": "UPDATE ledger_account SET state = x'00'",
    "terms of another kind": "UPDATE ledger_account SET terms = '[]'",
    "the last head of bytes": f"UPDATE ledger_entry SET head = x'00' WHERE sequence = {LAST}",
    "the last entry of bytes": f"UPDATE ledger_entry SET body = x'00' WHERE sequence = {LAST}",
    "the last entry beyond ASCII": f"UPDATE ledger_entry SET body = 'é' WHERE sequence = {LAST}",
    "the last entry without a body": f"UPDATE ledger_entry SET body = '[]' WHERE sequence = {LAST}",
    "the last number": f"UPDATE ledger_entry SET sequence = 'x' WHERE sequence = {LAST}",
    "a number beyond": f"UPDATE ledger_entry SET sequence = 2.5 WHERE sequence = {LAST}",
    "a budget gone": "DELETE FROM ledger_account",
    "another budget's name": "UPDATE ledger_account SET name = 'c'",
    "a budget more": "INSERT INTO ledger_account SELECT 'c', terms, state, digest FROM ledger_account",
    "the last entry": f"UPDATE ledger_entry SET body = replace(body, 'settle', 'Settle') WHERE sequence = {LAST}",
    "the last head": f"UPDATE ledger_entry SET head = 'ab' WHERE sequence = {LAST}",
    "the last head in capitals": f"UPDATE ledger_entry SET head = upper(head) WHERE sequence = {LAST}",
    "the last entry gone": f"DELETE FROM ledger_entry WHERE sequence = {LAST}",
    "the last three gone": "DELETE FROM ledger_entry WHERE sequence > 5",
    "the last but one gone": f"DELETE FROM ledger_entry WHERE sequence = {LAST} - 1",
    "an entry appended": "INSERT INTO ledger_entry VALUES (9, 'x', '{}')",
}

FOUND_BY_VERIFY = {
    "an amount": 'UPDATE ledger_entry SET body = replace(body, \'"epsilon":"1"\', \'"epsilon":"2"\') WHERE sequence=3',
    "a head": "UPDATE ledger_entry SET head = 'ab' WHERE sequence = 4",
    "an entry gone": "DELETE FROM ledger_entry WHERE sequence = 4",
    "two entries exchanged": "UPDATE ledger_entry SET sequence = 99 WHERE sequence = 4; "
    "UPDATE ledger_entry SET sequence = 4 WHERE sequence = 5; UPDATE ledger_entry SET sequence = 5 WHERE sequence = 99",
    "settled": "UPDATE ledger_reservation SET settled = NULL WHERE identifier = '0'",
    "where it was reserved": "UPDATE ledger_reservation SET sequence = 5 WHERE identifier = '0'",
    "an identifier": "UPDATE ledger_reservation SET identifier = 'z' WHERE identifier = '0'",
    "a reservation gone": "DELETE FROM ledger_reservation WHERE identifier = '0'",
    "a reservation more": "INSERT INTO ledger_reservation VALUES ('b', 'z', 3, NULL, NULL)",
    "a claim": "UPDATE ledger_reservation SET claimed = 3 WHERE identifier = '0'",
}


@pytest.mark.parametrize("name", FOUND_BY_RESERVE)
def test_reserve_finds_changed_sums_and_a_changed_end(written, name):
    """Without a witness, and without reading the record."""
    edited(written, *FOUND_BY_RESERVE[name].split("; "))
    before = written.read_bytes()
    with pytest.raises((LedgerDamagedError, ArgumentError)):  # a budget that is gone is an unknown one
        spend(written, witness=False)
    with pytest.raises(LedgerDamagedError), Ledger.open(written, witness=False) as ledger:
        ledger.verify()
    assert written.read_bytes() == before


def test_the_sums_edited_with_their_digest_are_found_too(written):
    from dpselect.ledger.fold import account_digest

    connection = sqlite3.connect(written)
    terms, state = connection.execute("SELECT terms, state FROM ledger_account").fetchone()
    state = state.replace("3/10", "1/10")
    connection.execute("UPDATE ledger_account SET state = ?, digest = ?", (state, account_digest(terms, state)))
    connection.commit()
    connection.close()
    with pytest.raises(LedgerDamagedError, match="kept sums"):
        spend(written, witness=False)


def test_the_sums_of_a_budget_above_are_checked_too(path):
    with Ledger.open(path) as ledger:
        ledger.create_budget("all", epsilon=3)
        below = ledger.create_budget("b", epsilon=3, parent="all")
        below.reserve(pure_dp(epsilon=2), label="s")
    edited(path, "UPDATE ledger_account SET state = replace(state, '\"2\"', '\"0\"') WHERE name = 'all'")
    with pytest.raises(LedgerDamagedError, match="'all'"):
        spend(path)


@pytest.mark.parametrize("name", FOUND_BY_VERIFY)
def test_verify_finds_what_reserve_does_not_read(written, name):
    edited(written, *FOUND_BY_VERIFY[name].split("; "))
    spend(written)
    with pytest.raises(LedgerDamagedError), Ledger.open(written) as ledger:
        ledger.verify()


def test_settling_checks_the_entry_that_it_gives_back_from(path):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=30, delta="1e-6")
        budget.reserve(GATE, label="s", identifier="x")
        budget.reserve(GATE, label="s", identifier="y")
    edited(
        path, 'UPDATE ledger_entry SET body = replace(body, \'"epsilon":"1"\', \'"epsilon":"9"\') WHERE sequence = 3'
    )
    edited(path, "UPDATE ledger_reservation SET sequence = 3 WHERE identifier = 'y'")
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerDamagedError, match="entry 3"):
            ledger.budget("b").settle("x", cell=False)
        with pytest.raises(LedgerDamagedError):
            ledger.budget("b").settle("y", cell=False)


def test_nothing_is_given_back_twice_when_nothing_is_open(written):
    edited(written, "UPDATE ledger_reservation SET settled = NULL")
    with Ledger.open(written) as ledger:
        with pytest.raises(LedgerDamagedError, match="kept as open"):
            ledger.budget("b").settle("0", cell=False)
        assert ledger.budget("b").spent().epsilon == Fraction(3, 10)


@pytest.mark.parametrize("table", ["ledger_meta", "ledger_entry", "ledger_account", "ledger_reservation"])
def test_a_table_that_is_gone(written, table):
    edited(written, f"DROP TABLE {table}") if table != "ledger_entry" else dropped(written)
    with pytest.raises(LedgerDamagedError, match=table):
        Ledger.open(written)


def dropped(path):
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE ledger_entry")
    connection.commit()
    connection.close()


def test_all_rows_gone(written):
    edited(written, "DELETE FROM ledger_entry", "DELETE FROM ledger_account", "DELETE FROM ledger_reservation")
    with pytest.raises(LedgerError):
        Ledger.open(written, witness=False)


# -- files that are no ledger


def foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (a)")
    connection.commit()
    connection.close()


def without_tables(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.commit()
    connection.close()


FILES = {
    "no bytes": (lambda path: path.touch(), LedgerDamagedError, "empty"),
    "text": (lambda path: path.write_text("no database" * 1000), LedgerDamagedError, "not a database"),
    "zeros": (lambda path: path.write_bytes(bytes(8192)), LedgerError, ""),
    "another database": (foreign, LedgerError, "not a ledger"),
    "a database without tables": (without_tables, LedgerError, "not a ledger"),
    "a folder": (lambda path: path.mkdir(), LedgerUnavailableError, "not a file"),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), LedgerUnavailableError, "No such file"),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_is_no_ledger_is_refused_and_left_as_it_is(path, kind):
    make, error, said = FILES[kind]
    make(path)
    before = path.read_bytes() if path.is_file() else None
    for create in (True, False):
        with pytest.raises(error, match=said):
            Ledger.open(path, create=create).create_budget("b", epsilon=3)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert before is None or path.read_bytes() == before


def test_a_ledger_cut_to_no_bytes_is_no_fresh_one(written):
    os.truncate(written, 0)
    for witness in (True, False):
        with pytest.raises(LedgerDamagedError, match="emptied"):
            Ledger.open(written, witness=witness)
    assert written.stat().st_size == 0


def test_a_ledger_cut_while_it_is_open(path):
    def spend_all():
        for _ in range(9):
            budget.reserve(pure_dp(epsilon=1), label="s")

    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=300)
        os.truncate(path, 0)
        with pytest.raises(LedgerError):
            spend_all()
        ledger.close()  # the connection is opened again
        with pytest.raises(LedgerDamagedError):
            spend_all()


# -- making one


def test_opening_makes_nothing(path):
    with Ledger.open(path) as ledger:
        calls = [
            ledger.budgets,
            ledger.head,
            ledger.verify,
            lambda: ledger.id,
            lambda: ledger.budget("b"),
            lambda: list(ledger.entries()),
            lambda: ledger.create_budget("c", epsilon=1, parent="b"),
        ]
        for call in calls:
            with pytest.raises(LedgerMissingError, match="there is no ledger"):
                call()
        assert "no ledger yet" in ledger._repr_html_()
        assert list(path.parent.iterdir()) == []
        ledger.create_budget("b", epsilon=1)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(LedgerMissingError):
        Ledger.open(path.with_name("other.db"), create=False)
    with pytest.raises(LedgerUnavailableError, match="no folder"):
        Ledger.open(path.parent / "nowhere" / "budget.db")


def test_one_that_appears_meanwhile_is_found(path):
    with Ledger.open(path) as first, Ledger.open(path) as second:
        first.create_budget("a", epsilon=1)
        second.create_budget("b", epsilon=1)
        assert [budget.name for budget in second.budgets()] == ["a", "b"]
        assert first.id == second.id


class Busy:
    """A connection to a file whose mode others change a few times."""

    def __init__(self, times, code=sqlite3.SQLITE_BUSY):
        self.times, self.code = times, code

    def execute(self, statement):
        self.times -= 1
        if self.times >= 0:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error


def test_who_opens_waits_for_others_that_open():
    """SQLite's own waiting leaves out a change of the file's mode: several openers at once met `database is locked`."""
    durable._set(Busy(3), "journal_mode=WAL", 30.0)
    with pytest.raises(sqlite3.OperationalError):
        durable._set(Busy(10**6), "journal_mode=WAL", 0.02)
    with pytest.raises(sqlite3.OperationalError):
        durable._set(Busy(1, sqlite3.SQLITE_READONLY), "journal_mode=WAL", 30.0)


@pytest.mark.filterwarnings("error::dpselect.ledger.LostLedgerWarning")
def test_many_make_it_at_once(path):
    start = threading.Barrier(6)

    def make(name):
        with Ledger.open(path) as ledger:
            start.wait()
            ledger.create_budget(name, epsilon=1)

    threads = [threading.Thread(target=make, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Ledger.open(path) as ledger:
        assert len(ledger.budgets()) == 6
        assert ledger.verify()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
