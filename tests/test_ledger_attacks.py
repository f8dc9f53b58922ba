"""Edits behind the library's back, older copies put back, files that are no ledger: what finds each of them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import warnings
from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import (
    InsufficientBudget,
    Ledger,
    LedgerDamagedError,
    LedgerError,
    LedgerMissingError,
    LedgerUnavailableError,
    LostLedgerWarning,
    StaleRecordError,
    UnwitnessedWarning,
    export_lines,
    import_lines,
)
from dpselect.privacy import pure_dp
from dpselect.storage.heads import HeadFile
from dpselect.storage.keys import state_folder
from dpselect.testing.ledger_contract import GATE
from tests.test_ledger_record import edited


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def written(path):
    """Entry 1 begins the ledger, 2 is budget b of 3, 3 to 8 are reservations and settlements in turn: 0.3 are spent."""
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
        for number in range(3):
            budget.reserve(GATE, label="s", identifier=str(number)).settle(None)
    return path


def spend(path, epsilon=1, **options):
    with Ledger.open(path, **options) as ledger:
        return ledger.budget("b").reserve(pure_dp(epsilon=epsilon), label="s")


def witness_file(path):
    with Ledger.open(path, witness=False) as ledger:
        return state_folder() / "ledgers" / f"{ledger.id}.head"


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
    "a reservation more": "INSERT INTO ledger_reservation VALUES ('b', 'z', 3, NULL)",
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
        ledger.close()  # the connection is opened anew
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


# -- older copies, and the witness


def test_an_older_copy_is_refused_when_opened_and_at_the_next_spend(written, tmp_path):
    old = shutil.copy(written, tmp_path / "old.db")
    receipt = spend(written)
    with Ledger.open(written) as ledger:
        head = ledger.head()
    shutil.copy(old, written)
    with pytest.raises(StaleRecordError, match=f"lacks entry {receipt.sequence}"):
        Ledger.open(written)
    with Ledger.open(written, witness=False) as backup:  # a backup can be read
        assert backup.budget("b").spent().epsilon == Fraction(3, 10)
        assert backup.verify()
        assert backup.head() != head


def test_an_older_copy_put_back_under_an_open_ledger(written, tmp_path):
    old = shutil.copy(written, tmp_path / "old.db")
    with Ledger.open(written) as ledger:
        ledger.budget("b").reserve(pure_dp(epsilon=1), label="s")
        ledger.close()  # closes the connection; what is there is opened anew
        os.replace(old, written)
        with pytest.raises(StaleRecordError):
            ledger.budget("b")


def test_a_copy_that_went_another_way(written, tmp_path):
    """As many entries as the witness knows, and other ones."""
    other = shutil.copy(written, tmp_path / "other.db")
    spend(other, witness=False)
    spend(written)
    with pytest.raises(StaleRecordError):
        Ledger.open(other)
    spend(written)


def test_the_end_rewritten_with_its_hashes_is_found_by_the_witness(written):
    """Last entry and sums go back together, as the record itself would have them: no hash is wrong."""
    connection = sqlite3.connect(written)
    backup = connection.execute("SELECT state, digest FROM ledger_account").fetchone()
    connection.close()
    spend(written)
    edited(
        written,
        f"DELETE FROM ledger_entry WHERE sequence = {LAST}",
        "DELETE FROM ledger_reservation WHERE sequence = 9",
    )
    connection = sqlite3.connect(written)
    connection.execute("UPDATE ledger_account SET state = ?, digest = ?", backup)
    connection.commit()
    connection.close()
    with Ledger.open(written, witness=False) as ledger:
        assert ledger.verify()  # the record alone cannot know
    with pytest.raises(StaleRecordError):
        Ledger.open(written)


def test_a_ledger_is_known_wherever_it_lies(written, tmp_path):
    moved = tmp_path / "folder" / "renamed.db"
    moved.parent.mkdir()
    old = shutil.copy(written, tmp_path / "old.db")
    os.replace(written, moved)
    spend(moved)
    with pytest.raises(StaleRecordError):
        Ledger.open(old)


def test_another_user_or_machine_takes_what_it_first_sees(written, tmp_path, monkeypatch):
    old = shutil.copy(written, tmp_path / "old.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    spend(written)
    assert witness_file(written).is_file()
    with pytest.raises(StaleRecordError):
        Ledger.open(old)


def test_a_new_ledger_where_another_was_is_told(written):
    written.unlink()
    with Ledger.open(written) as ledger, pytest.warns(LostLedgerWarning, match="8 entries"):
        ledger.create_budget("b", epsilon=3)
    spend(written)


@pytest.mark.filterwarnings("error")
def test_ledgers_side_by_side_do_not_meet(tmp_path):
    for name in ("one.db", "two.db"):
        with Ledger.open(tmp_path / name) as ledger:
            ledger.create_budget("b", epsilon=3)
    for name in ("one.db", "two.db"):
        spend(tmp_path / name)


def test_a_death_between_the_ledger_and_its_witness_locks_nobody_out(written, monkeypatch):
    class Death(BaseException):
        pass

    def die(*_):
        raise Death

    with Ledger.open(written) as ledger:
        budget = ledger.budget("b")
        with monkeypatch.context() as patched:
            patched.setattr(HeadFile, "advance", die)
            with pytest.raises(Death):
                budget.reserve(pure_dp(epsilon=1), label="s", identifier="x")
    known = HeadFile(witness_file(written)).read().sequence
    assert known == 8
    with Ledger.open(written) as ledger:
        budget = ledger.budget("b")
        assert budget.spent().epsilon == Fraction(13, 10)
        receipt = budget.reserve(pure_dp(epsilon=1), label="s", identifier="x")  # nothing more, and witnessed now
        assert budget.spent().epsilon == Fraction(13, 10)
    assert HeadFile(witness_file(written)).read().sequence == receipt.sequence == 9


def test_a_witness_that_is_behind_catches_up(written):
    file = witness_file(written)
    behind = file.read_bytes()
    spend(written, 0.5)
    file.write_bytes(behind)
    spend(written, 0.5)
    assert HeadFile(file).read().sequence == 10


def test_a_torn_witness(written):
    file = witness_file(written)
    known = HeadFile(file).read().sequence
    content = bytearray(file.read_bytes())
    slots = {number: content[number * 4096 : number * 4096 + 1024] for number in (0, 1)}
    latest = next(number for number, slot in slots.items() if f'"sequence": {known}'.encode() in slot)
    content[latest * 4096 + 100 : latest * 4096 + 1024] = bytes(924)
    file.write_bytes(content)
    assert HeadFile(file).read().sequence == known - 1
    spend(written, 0.5)
    file.write_bytes(b"x" * 5120)
    with pytest.raises(LedgerDamagedError, match="damaged"):
        spend(written, 0.5)
    file.write_bytes(b"")  # one whose making was cut off
    spend(written, 0.5)
    assert HeadFile(file).read().sequence == 10


def test_a_state_folder_that_cannot_be_written_is_told_once(path, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with Ledger.open(path) as ledger:
        with pytest.warns(UnwitnessedWarning, match="cannot be written"):
            budget = ledger.create_budget("b", epsilon=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            budget.reserve(pure_dp(epsilon=1), label="s")
    with pytest.raises(LedgerUnavailableError, match="cannot be written"):  # asked for by name
        Ledger.open(path, witness=tmp_path / "file" / "here")


def test_a_witness_that_cannot_be_raised_refuses(written, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpselect.storage.durable.sync_content", full)
    with Ledger.open(written) as ledger, pytest.raises(LedgerUnavailableError, match="No space left"):
        ledger.budget("b").reserve(pure_dp(epsilon=1), label="s")


def test_named_witnesses(path, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    for witness in (tmp_path / "file.head", str(folder)):
        with Ledger.open(path, witness=witness) as ledger:
            if not path.exists():
                ledger.create_budget("b", epsilon=3)
            old = shutil.copy(path, tmp_path / "old.db")
            ledger.budget("b").reserve(pure_dp(epsilon=1), label="s")
        with pytest.raises(StaleRecordError):
            Ledger.open(old, witness=witness)
    monkeypatch.setenv("DPSELECT_LEDGER_WITNESS", str(folder))
    with pytest.raises(StaleRecordError):
        Ledger.open(old)
    monkeypatch.delenv("DPSELECT_LEDGER_WITNESS")
    with Ledger.open(tmp_path / "another.db", witness=False) as ledger:
        ledger.create_budget("b", epsilon=3)
    with pytest.raises(ArgumentError, match="another ledger"):
        Ledger.open(tmp_path / "another.db", witness=tmp_path / "file.head")
    for wrong in ("", "mysql://host/db"):
        with pytest.raises(ArgumentError):
            Ledger.open(path, witness=wrong)


def test_an_export_that_is_older_than_the_witness_is_not_imported(written, tmp_path):
    with Ledger.open(written) as ledger:
        lines = list(export_lines(ledger))
        ledger.budget("b").reserve(pure_dp(epsilon=1), label="s")
        with pytest.raises(StaleRecordError):
            import_lines(lines, tmp_path / "new.db")
        assert not (tmp_path / "new.db").exists()
        with import_lines(export_lines(ledger), tmp_path / "new.db") as copy:
            copy.budget("b").reserve(pure_dp(epsilon=1), label="s")
        with pytest.raises(StaleRecordError):  # a move is for good
            ledger.budget("b").reserve(pure_dp(epsilon=1), label="s")


def test_an_identifier_that_leaves_the_folder_is_no_identifier(written):
    """The file of the witness is named by what the ledger says: only 32 hexadecimal digits are taken."""
    from tests.test_ledger_record import rehashed

    with Ledger.open(written, witness=False) as ledger:
        bodies = [body for _, _, body in ledger.entries()]
    bodies[0]["id"] = "../../../x"
    (first, *_) = rehashed(bodies)
    edited(
        written,
        f"UPDATE ledger_entry SET head = '{first['head']}', "
        "body = replace(body, substr(body, instr(body, '\"id\":\"') + 6, 32), '../../../x') WHERE sequence = 1",
    )
    with pytest.raises(LedgerDamagedError, match="begin a ledger"):
        Ledger.open(written)


def test_processes_share_a_witness(path):
    with Ledger.open(path) as ledger:
        ledger.create_budget("b", epsilon=1)
    script = (
        "import sys; from dpselect.ledger import *; from dpselect.privacy import pure_dp\n"
        "budget = Ledger.open(sys.argv[1]).budget('b')\n"
        "for _ in range(10): budget.reserve(pure_dp(epsilon=0.05), label='s')"
    )
    children = [subprocess.Popen([sys.executable, "-c", script, path]) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    with Ledger.open(path) as ledger:
        assert ledger.budget("b").remaining().epsilon == 0
        assert HeadFile(witness_file(path)).read().sequence == ledger.head().sequence == 22
        with pytest.raises(InsufficientBudget):
            ledger.budget("b").reserve(pure_dp(epsilon=0.05), label="s")
