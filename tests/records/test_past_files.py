"""Files and databases that earlier versions wrote are read as before: same answers, same hashes, same signatures.

A search that was killed under version 0.2.0 was refused by the next version too (other record), so it has no answer.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from dpselect.errors import StudyError
from dpselect.holdout import Gate
from dpselect.ledger import Ledger, StaleRecordError
from tests.holdout.server.serving import POSTGRES, fresh_database
from tests.records import past_files

ASSETS = Path(__file__).parent / "assets"


def unpacked(name, folder):
    with zipfile.ZipFile(ASSETS / f"{name}.zip") as archive:
        archive.extractall(folder)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("version", ["0.2.0", "after-0.2.0"])
def test_what_an_earlier_version_wrote_is_read(version, tmp_path):
    folder = unpacked(f"records-{version}", tmp_path)
    expected = json.loads((folder / "expected.json").read_text())
    expected.pop("search")
    for _ in range(2):
        assert past_files.questions(folder) == expected
    with pytest.raises(StudyError, match="another version"):  # its learners draw other numbers from the same key
        past_files.search(folder)


def test_what_an_earlier_version_witnessed_is_remembered(tmp_path):
    folder = unpacked("records-after-0.2.0", tmp_path)
    with Ledger.open(folder / "budget.db") as ledger:
        last = ledger.head().sequence
    with closing(sqlite3.connect(folder / "budget.db")) as connection:
        connection.execute("DROP TRIGGER ledger_entry_no_delete")
        connection.execute("DELETE FROM ledger_entry WHERE sequence = ?", (last,))
        connection.commit()
    with pytest.raises(StaleRecordError, match=f"lacks entry {last}"):
        Ledger.open(folder / "budget.db")
    with closing(sqlite3.connect(folder / "my.gate")) as connection:
        connection.execute("DELETE FROM entry WHERE sequence > 2")
        connection.commit()
    status = Gate.open(folder / "my.gate").status()
    assert (status["asked"], status["restored"]) == (2, 1)


@pytest.fixture
def past_database(tmp_path, monkeypatch):
    """A database that an earlier version wrote, its URL, what it held, and the last answer in the state folder."""
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.setenv("DPSELECT_SHARED_KEY", base64.b64encode(bytes(range(32))).decode())
    past = json.loads((unpacked("records-after-0.2.0", tmp_path) / "postgresql.json").read_text())
    witness = tmp_path / "state" / "dpselect" / "records" / f"{past['gate'][0]}.witness.db"
    witness.write_bytes(bytes.fromhex(past["witness"]))
    with fresh_database() as url:
        # both tables as this version makes them, then filled as the earlier one did
        past_files.empty_tables(url)
        with psycopg.connect(url) as connection:
            for table, content in past["tables"].items():
                columns = ", ".join(content["columns"])
                for row in content["rows"]:
                    values = [bytes.fromhex(cell[1]) if isinstance(cell, list) else cell for cell in row]
                    marks = ", ".join(["%s"] * len(values))
                    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)
        yield url, past, psycopg


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_what_an_earlier_version_wrote_to_a_server_is_read(past_database):
    url, past, psycopg = past_database
    gate = Gate.open(f"{url}#my")
    assert [gate.identifier, gate.purse, gate.certificate()["signature"]] == past["gate"]
    with Ledger.open(url, witness=url) as ledger:
        assert ledger.verify()
        assert [ledger.head().sequence, ledger.head().head] == past["ledger"]
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM holdout_entry WHERE sequence = 4")
        connection.execute("UPDATE ledger_witness SET sequence = sequence + 1, head = repeat('0', 64)")
    with pytest.raises(StudyError, match="older copy"):
        Gate.open(f"{url}#my").status()
    with pytest.raises(StaleRecordError):
        Ledger.open(url, witness=url)
