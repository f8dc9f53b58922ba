"""Edits behind the library's back, older copies put back, files that are no ledger: what finds each of them."""

from __future__ import annotations

import os
import sqlite3

import pytest

from dpselect.ledger import (
    Ledger,
    LedgerDamagedError,
    LedgerError,
    LedgerUnavailableError,
)
from tests.ledger.edits import edited, spend

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


@pytest.mark.parametrize("name", FOUND_BY_VERIFY)
def test_verify_finds_what_reserve_does_not_read(written, name):
    edited(written, *FOUND_BY_VERIFY[name].split("; "))
    spend(written)
    with pytest.raises(LedgerDamagedError), Ledger.open(written) as ledger:
        ledger.verify()


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
