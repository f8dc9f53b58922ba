"""Sealed entries: each is bound to its place, its record and all entries before it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from dpselect.errors import StudyError
from dpselect.holdout.record import Record
from tests.holdout.record_cases import entries, execute, make, say


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "a.record"


def test_another_kind_is_refused(path):
    make(path)
    with pytest.raises(StudyError, match="another thing than a holdout"):
        Record.open(path, kind="holdout")


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE about SET terms = '{"k": 4}'""",
        "UPDATE about SET sealed = zeroblob(40)",
        "UPDATE about SET sealed = x''",
    ],
)
def test_changed_terms_or_secrets_are_noticed(path, statement):
    make(path)
    execute(path, statement)
    with pytest.raises(StudyError, match="cannot be opened"):
        Record.open(path, kind="test").secret()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET sealed = zeroblob(60) WHERE sequence = 2",
        "DELETE FROM entry WHERE sequence = 2",
        "DELETE FROM entry WHERE sequence = 1",
        "UPDATE entry SET sequence = 7 WHERE sequence = 3",
        "UPDATE entry SET sealed = (SELECT sealed FROM entry WHERE sequence = 1) WHERE sequence = 2",
    ],
)
def test_changed_entries_are_noticed(path, statement):
    record = make(path)
    for word in "abc":
        say(record, word)
    execute(path, statement)
    with pytest.raises(StudyError, match="was changed"):
        entries(path)


def test_entries_of_another_record_are_noticed(path):
    other = path.with_name("b.record")
    for place in (path, other):
        say(make(place), "a")
    with closing(sqlite3.connect(other)) as connection:
        (sealed,) = connection.execute("SELECT sealed FROM entry").fetchone()
    execute(path, "UPDATE entry SET sealed = ?", sealed)
    with pytest.raises(StudyError, match="was changed"):
        entries(path)
