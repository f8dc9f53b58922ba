"""Opening, making and sharing the database of a ledger."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from fractions import Fraction

import pytest

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


def test_a_locked_ledger_says_so_and_charges_nothing(written):
    other = sqlite3.connect(written, isolation_level=None)
    with Ledger.open(written, timeout=0.05) as ledger:
        budget = ledger.budget("b")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailableError, match="locked"):
            budget.reserve(GATE, label="s")
        other.execute("ROLLBACK")
        assert budget.spent().epsilon == Fraction(3, 10)
    other.close()


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives up being root to lose a permission")
def test_a_read_only_file(written):
    with tempfile.TemporaryDirectory() as folder:  # one that others can enter
        os.chmod(folder, 0o755)
        path = shutil.copy(written, folder)
        os.chmod(path, 0o444)
        first = shutil.copy(written, os.path.join(folder, "first.db"))
        script = (  # the first ledger imports all that is needed: the interpreter's files may be closed to others
            "import os; from dpselect.ledger import *; from dpselect.privacy import pure_dp\n"
            f"with Ledger.open({first!r}) as ledger: ledger.budget('b').reserve(pure_dp(epsilon=0.1), label='s')\n"
            "os.setuid(65534)\n"
            f"try: Ledger.open({path!r}, witness=False).budget('b').reserve(pure_dp(epsilon=1), label='s')\n"
            "except LedgerUnavailableError as error: print(error)"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert re.search("readonly|read-only|unable to open", ran.stdout), ran.stderr
        with Ledger.open(path, witness=False) as ledger:
            assert ledger.verify()
            assert ledger.budget("b").spent().epsilon == Fraction(3, 10)


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
