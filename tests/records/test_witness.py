"""Witnesses keep the latest head of a record outside of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from dpselect.holdout import shared_record
from dpselect.records.chain import ChainHead
from dpselect.records.witness import FolderWitness


def test_the_later_of_both_witnesses_of_a_shared_record_counts(tmp_path, monkeypatch):
    """Version 0.2 kept the last answer in a table of SQLite; later versions keep it in a file of two slots."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name, folder = "ab" * 16, tmp_path / "dpselect" / "records"
    assert shared_record._witnessed(name) is None
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / f"{name}.witness.db")) as old:
        assert shared_record._witnessed(name) is None, "its making was cut off"
        old.execute("CREATE TABLE witness (id INTEGER PRIMARY KEY, sequence INTEGER, head BLOB) STRICT")
        old.execute("INSERT INTO witness VALUES (1, 5, ?)", (bytes(32),))
        old.commit()
    assert shared_record._witnessed(name) == ChainHead(5, "00" * 32)
    witness = FolderWitness(folder)
    for sequence, latest in ((4, 5), (6, 6), (5, 6)):
        witness.advance(name, ChainHead(sequence, "ff" * 32), "here")
        assert shared_record._witnessed(name).sequence == latest
