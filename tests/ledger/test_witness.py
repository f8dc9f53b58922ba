"""Older copies of a ledger that are put back, and the witness that finds them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import (
    InsufficientBudget,
    Ledger,
    LedgerDamagedError,
    LedgerUnavailableError,
    LostLedgerWarning,
    StaleRecordError,
    UnwitnessedWarning,
)
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.privacy import pure_dp
from dpselect.storage.heads import HeadFile
from dpselect.storage.keys import state_folder
from tests.ledger.edits import LAST, edited, spend


def witness_file(path):
    with Ledger.open(path, witness=False) as ledger:
        return state_folder() / "ledgers" / f"{ledger.id}.head"


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
        ledger.close()  # closes the connection; what is there is opened again
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

    def die(file, kept):
        if kept.sequence > known_before:
            raise Death

    with Ledger.open(written) as ledger:
        budget, known_before = ledger.budget("b"), ledger.head().sequence
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

    with Ledger.open(written) as ledger:
        budget = ledger.budget("b")
        budget.reserve(pure_dp(epsilon=0.1), label="s")
        before = budget.spent().epsilon
        with monkeypatch.context() as patched:
            patched.setattr("dpselect.storage.durable.sync_content", full)
            with pytest.raises(LedgerUnavailableError, match=r"No space left.*same identifier"):
                budget.reserve(pure_dp(epsilon=0.1), label="s", identifier="x")
            for _ in range(5):  # the first was committed before it was known; nothing more is
                with pytest.raises(LedgerUnavailableError, match="No space left"):
                    budget.reserve(pure_dp(epsilon=0.1), label="s")
            assert budget.spent().epsilon == before + Fraction(1, 10)
        budget.reserve(pure_dp(epsilon=0.1), label="s", identifier="x")
        assert budget.spent().epsilon == before + Fraction(1, 10)


class FullDisk:
    """A disk on which no file grows: what is on it already can be written again."""

    def __init__(self, monkeypatch):
        self._write = os.write
        monkeypatch.setattr("dpselect.storage.heads.os.write", self)

    def __call__(self, descriptor, content):
        room = os.fstat(descriptor).st_size - os.lseek(descriptor, 0, os.SEEK_CUR)
        if room <= 0:
            raise OSError(28, "No space left on device")
        return self._write(descriptor, content[:room])


def test_on_a_full_disk_a_refused_reservation_is_not_charged(written, monkeypatch):
    file = witness_file(written)
    file.write_bytes(file.read_bytes()[:1024])  # as it was left when its second slot had no room yet
    with Ledger.open(written, witness=False) as ledger:
        before = ledger.head()
    with monkeypatch.context() as patched:
        FullDisk(patched)
        for _ in range(3):
            with Ledger.open(written) as ledger:
                for _ in range(2):
                    with pytest.raises(LedgerUnavailableError, match="No space left"):
                        ledger.budget("b").reserve(pure_dp(epsilon=0.5), label="s")
                assert ledger.head() == before
    spend(written, 0.5)


def test_a_witness_that_has_its_room_takes_later_heads_on_a_full_disk(written, monkeypatch):
    spend(written, 0.5)
    with Ledger.open(written) as ledger:
        FullDisk(monkeypatch)
        receipts = [ledger.budget("b").reserve(pure_dp(epsilon=0.5), label="s") for _ in range(3)]
    assert HeadFile(witness_file(written)).read().sequence == receipts[-1].sequence


@pytest.mark.slow
def test_a_state_folder_on_a_real_disk_that_is_full_charges_nothing(tmp_path):
    """A file system of 64 KiB in a user namespace of its own."""
    unshare = shutil.which("unshare")
    probe = [unshare or "unshare", "--user", "--map-root-user", "--mount"]
    if unshare is None or subprocess.run([*probe, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    state = tmp_path / "state"
    state.mkdir()
    program = f"""
import os, pathlib
from dpselect.ledger import Ledger, LedgerUnavailableError
from dpselect.privacy import pure_dp
budget = Ledger.open({str(tmp_path / "ledger.db")!r}).create_budget("b", epsilon=100)
other = Ledger.open({str(tmp_path / "other.db")!r}, witness=False).create_budget("b", epsilon=100)
with open({str(state / "filler")!r}, "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        pass
for _ in range(20):  # room was taken when the ledger was made
    budget.reserve(pure_dp(epsilon=0.5), label="s")
assert budget.spent().epsilon == 10
refused = 0
for _ in range(20):  # no room, and no witness yet
    try:
        Ledger.open({str(tmp_path / "other.db")!r}).budget("b").reserve(pure_dp(epsilon=0.5), label="s")
    except LedgerUnavailableError:
        refused += 1
assert refused == 20 and other.spent().epsilon == 0
"""
    mounted = (
        f"mount -t tmpfs -o size=64k none {state} && exec {sys.executable} -c '{program.replace(chr(39), chr(34))}'"
    )
    done = subprocess.run(
        [*probe, "sh", "-c", mounted],
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
    from tests.ledger.test_entries import rehashed

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


@pytest.mark.full
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
