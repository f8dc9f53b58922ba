"""Transactions check the sums that they read against the last entry."""

from __future__ import annotations

import sqlite3

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import (
    Ledger,
    LedgerDamagedError,
)
from dpselect.privacy import pure_dp
from dpselect.testing.ledger_contract import GATE
from tests.ledger.edits import LAST, edited, spend

# -- edits by SQL

STATE = "UPDATE ledger_account SET state = replace(state, {old}, {new})"
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
