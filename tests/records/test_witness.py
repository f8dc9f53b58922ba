"""Witnesses keep the latest head of a record outside of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from dpselect.errors import ArgumentError
from dpselect.holdout import shared_record
from dpselect.records.chain import ChainHead
from dpselect.records.engines import RecordDamagedError, RecordUnavailableError
from dpselect.records.witness import FileWitness, FolderWitness


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


RECORD, HERE = "ab" * 16, "here"


def test_a_witness_only_goes_forward(tmp_path):
    witness = FolderWitness(tmp_path)
    assert witness.read(RECORD) is None
    for sequence, kept in ((3, 3), (2, 3), (4, 4)):
        witness.advance(RECORD, ChainHead(sequence, f"{sequence:064x}"), HERE)
        assert witness.read(RECORD) == ChainHead(kept, f"{kept:064x}")
    assert witness.last_at(HERE).chain == RECORD
    assert witness.last_at("there") is None


def test_a_file_is_the_witness_of_one_record(tmp_path):
    witness = FileWitness(tmp_path / "w")
    witness.advance(RECORD, ChainHead(1, "0" * 64), HERE)
    with pytest.raises(ArgumentError, match="another ledger"):
        witness.read("cd" * 16)
    (tmp_path / "w").write_bytes(b"x" * 9000)
    with pytest.raises(RecordDamagedError, match="damaged"):
        witness.read(RECORD)


@pytest.mark.parametrize("identifier", ["", "../x", "AB" * 16, "ab" * 15, "ab" * 16 + "\n"])
def test_an_identifier_is_32_hexadecimal_digits(tmp_path, identifier):
    with pytest.raises(RecordDamagedError, match="no identifier"):
        FolderWitness(tmp_path).read(identifier)


def test_a_folder_that_cannot_be_made_is_told_once_or_refuses(tmp_path):
    (tmp_path / "file").touch()
    told = []
    lenient = FolderWitness(tmp_path / "file", without=told.append)
    for sequence in (1, 2):
        lenient.advance(RECORD, ChainHead(sequence, "0" * 64), HERE)
    assert len(told) == 1
    assert "cannot be written" in told[0]
    with pytest.raises(RecordUnavailableError, match="cannot be written"):
        FolderWitness(tmp_path / "file").advance(RECORD, ChainHead(1, "0" * 64), HERE)
