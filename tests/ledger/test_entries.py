"""The record: tampering is named, versions and files that cannot be used, what is in it and what is not."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import Ledger, LedgerDamagedError, LedgerError, LedgerUnavailableError, schema as ledger_schema
from dpselect.ledger.entries import ChainHead, canonical, next_head
from dpselect.ledger.locations import file_of, network_file_system
from dpselect.ledger.refusals import SchemaVersionError
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.privacy.release import Receipt
from dpselect.testing.ledger_contract import GATE

ASSETS = Path(__file__).parent / "assets"


def edited(path, *statements):
    """Change the file behind the library's back; the triggers are dropped first, as an intruder would."""
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.commit()
    connection.close()


def first_bad(path):
    with pytest.raises(LedgerDamagedError) as caught, Ledger.open(path, witness=False) as ledger:
        ledger.verify()
    return caught.value.sequence, str(caught.value)


# -- tampering


@pytest.mark.parametrize("sequence", [1, 2, 3, 4, 8])
def test_a_changed_entry_is_named(written, sequence):
    edited(written, f"UPDATE ledger_entry SET body = replace(body, 's', 't') WHERE sequence = {sequence}")
    assert first_bad(written)[0] == sequence


@pytest.mark.parametrize("sequence", [1, 3, 7])
def test_a_missing_entry_is_named(written, sequence):
    edited(written, f"DELETE FROM ledger_entry WHERE sequence = {sequence}")
    if sequence == 1:
        with pytest.raises(LedgerDamagedError, match="entry 1 is missing"):
            Ledger.open(written)
    else:
        assert first_bad(written)[0] == sequence


def test_a_rewritten_chain_breaks_the_rules_where_it_lies(written):
    """Anyone who hashes again can still not write a refund that the reservation does not allow."""
    with Ledger.open(written) as ledger:
        entries = [body for _, _, body in ledger.entries()]
    entries[5]["epsilon"] = "0"
    entries[5]["cell"] = "false"
    lines = [canonical(line) for line in rehashed(entries)]
    with pytest.raises(LedgerDamagedError, match="entry 6 breaks a rule") as caught:
        import_lines(lines, written.with_name("new.db"))
    assert caught.value.sequence == 6


def rehashed(entries):
    from dpselect.ledger.entries import ORIGIN, next_head

    tip = ORIGIN
    for body in entries:
        tip = next_head(tip, canonical(body))
        yield {"sequence": tip.sequence, "head": tip.head, "body": body}


def test_a_cut_tail_is_found_by_the_kept_sums_and_by_receipts(written):
    with Ledger.open(written) as ledger:
        receipt = Receipt("", "", {}, *ledger.head().__dict__.values())
    edited(written, "DELETE FROM ledger_entry WHERE sequence = 8")
    assert "kept sums" in first_bad(written)[1]
    with Ledger.open(written.with_name("copy.db"), witness=False) as ledger:
        ledger.create_budget("b", epsilon=3, delta="1e-6")
        with pytest.raises(LedgerError, match="lacks"):
            ledger.budget("b").reserve(GATE, label="s", after=receipt)


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


def test_an_entry_of_a_later_kind_is_refused(written):
    """In a record that fits otherwise: by an import, and by anyone who verifies the file."""
    with Ledger.open(written) as ledger:
        lines = list(export_lines(ledger))
    last = json.loads(lines[-1])
    body = {**last["body"], "kind": "later"}
    head = next_head(ChainHead(last["sequence"], last["head"]), canonical(body))
    line = canonical({"sequence": head.sequence, "head": head.head, "body": body})
    with pytest.raises(LedgerDamagedError, match="no known kind"):
        import_lines([*lines, line], written.with_name("copy.db"), witness=False)
    edited(written, f"INSERT INTO ledger_entry VALUES ({head.sequence}, '{head.head}', '{canonical(body)}')")
    with Ledger.open(written, witness=False) as ledger, pytest.raises(LedgerDamagedError, match="no known kind"):
        ledger.verify()


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


def test_network_file_systems_are_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    here = tmp_path.resolve()
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/vda rw\n"
        f"2 1 0:5 / {here}/share rw - nfs4 server:/x rw\n"
        f"3 2 0:6 / {here}/share/local rw - ext4 /dev/vdb rw\n"
    )
    for folder in ("share/local/deep", "share/more", "shared"):
        (tmp_path / folder).mkdir(parents=True)
    assert network_file_system(tmp_path / "share" / "more", mounts=mounts) == "nfs4"
    assert network_file_system(tmp_path / "share" / "local" / "deep", mounts=mounts) is None
    assert network_file_system(tmp_path / "shared", mounts=mounts) is None
    monkeypatch.setattr("dpselect.ledger.locations.network_file_system", lambda folder: "nfs4")
    with pytest.raises(LedgerUnavailableError, match="nfs4"):
        Ledger.open(tmp_path / "budget.db")


def test_places(tmp_path):
    assert file_of(f"sqlite:///{tmp_path}/a.db") == tmp_path / "a.db"
    assert file_of("postgresql://host/db") is None
    for wrong in (":memory:", "", "sqlite://", "mysql://host/db"):
        with pytest.raises(ArgumentError):
            file_of(wrong)


# -- what is in the record


def test_there_is_no_time_in_it(written):
    with Ledger.open(written) as ledger:
        text = "\n".join(export_lines(ledger))
    assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d|\"(date|time)\"", text)


def test_dates_of_reservations_only_when_asked_for(path):
    with Ledger.open(path, dates=True) as ledger:
        ledger.create_budget("b", epsilon=3, delta="1e-6").reserve(GATE, label="s").settle(None)
        dated = {body["kind"]: body.get("date") for _, _, body in ledger.entries()}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", dated["reserve"])
        assert dated["settle"] is None
        assert ledger.verify()


def test_export_and_import(written, tmp_path):
    with Ledger.open(written) as ledger:
        lines = list(export_lines(ledger))
        head = ledger.head()
    assert all(set(json.loads(line)) == {"sequence", "head", "body"} for line in lines)
    with import_lines(lines, tmp_path / "new.db") as copy:
        assert copy.head() == head
        assert copy.verify()
        copy.budget("b").reserve(GATE, label="s").settle(None)
        assert copy.verify()
    with pytest.raises(LedgerDamagedError, match="line 2 is not an entry"):
        import_lines([lines[0], "no json"], tmp_path / "damaged.db")
    for wrong in (lines[:1] + lines[2:], lines[::-1], ["{}"], ["no json"], []):
        with pytest.raises((LedgerDamagedError, ArgumentError)):
            import_lines(wrong, tmp_path / f"{len(wrong)}{hash(str(wrong))}.db")
