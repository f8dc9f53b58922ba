"""A record that one process reads again and again: nothing twice, and nothing that is no longer there."""

import shutil
import sqlite3

import pytest

from dpselect.errors import StudyError
from dpselect.holdout import Gate, GateRules, Holdout
from dpselect.holdout.record import Record
from tests.holdout.server.serving import make_gate, make_holdout


@pytest.fixture
def record(tmp_path, state):
    """A record with three entries, and its path."""
    path = tmp_path / "x.record"
    record = Record.create(path, kind="thing", terms={}, secret=b"s", exposure=(0,))
    for number in (1, 2, 3):
        put(record, number)
    return record, path


def put(record, number):
    with record.turn() as turn:
        turn.append({"number": number}, (number,))


def numbers(record):
    with record.turn() as turn:
        return [entry.get("number", "lost") for entry in turn.entries]


def test_what_was_read_is_not_read_again(record, monkeypatch):
    seen, whole = [], record[0]._opened

    def opened(sealed, bound_to):
        seen.append(sealed)
        return whole(sealed, bound_to)

    monkeypatch.setattr(record[0], "_opened", opened)
    assert numbers(record[0]) == [1, 2, 3]
    seen.clear()
    put(record[0], 4)
    assert numbers(record[0]) == [1, 2, 3, 4]
    assert len(seen) == 1


def test_what_another_process_writes_is_seen(record):
    mine, path = record
    other = Record.open(path, kind="thing")
    assert numbers(mine) == numbers(other) == [1, 2, 3]
    put(other, 4)
    put(other, 5)
    assert numbers(mine) == [1, 2, 3, 4, 5]
    put(mine, 6)
    assert numbers(other) == numbers(mine) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("others", [0, 1, 2])
def test_an_older_copy_that_is_restored_under_a_reader_is_noticed(record, tmp_path, others):
    """The last entry of the copy is dropped, as it may never have been counted."""
    mine, path = record
    shutil.copy(path, tmp_path / "older")
    put(mine, 4)
    assert numbers(mine) == [1, 2, 3, 4]
    shutil.copy(tmp_path / "older", path)
    for number in range(others):  # by another process, so that the file is as long as before, or longer
        put(Record.open(path, kind="thing"), 10 + number)
    fresh = Record.open(path, kind="thing")
    assert numbers(mine) == numbers(fresh) == [1, 2, "lost", *range(10, 10 + others)]


def test_a_last_row_that_was_changed_is_noticed(record):
    mine, path = record
    assert numbers(mine) == [1, 2, 3]
    with sqlite3.connect(path) as file:
        file.execute("UPDATE entry SET sealed = zeroblob(length(sealed)) WHERE sequence = 3")
    for _ in range(2):
        with pytest.raises(StudyError, match="cannot be opened"):
            numbers(mine)


def test_a_file_without_its_last_row_is_an_older_copy(record):
    mine, path = record
    numbers(mine)
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM entry WHERE sequence = 3")
    assert numbers(mine) == numbers(Record.open(path, kind="thing")) == [1, "lost"]


def test_one_gate_knows_what_another_one_was_asked(tmp_path, state):
    better = make_gate(tmp_path / "my.gate", rules=GateRules(answer_seconds=0))
    first, second = Gate.open(tmp_path / "my.gate"), Gate.open(tmp_path / "my.gate")
    worse = dict.fromkeys(better, 0)
    for gate in (first, second, first, second):
        gate.ask(worse)
        assert first.status() == second.status() == Gate.open(tmp_path / "my.gate").status()
    assert second.ask(better, candidate="b")
    assert first.ask(better, candidate="b"), "from the record"
    assert first.certificate() == second.certificate() == Gate.open(tmp_path / "my.gate").certificate()
    assert len(first.status()["asks"]) == 5


def test_one_holdout_knows_what_another_one_was_asked(tmp_path, state):
    guesses = make_holdout(tmp_path / "x.holdout", questions=20)
    first, second = Holdout.open(tmp_path / "x.holdout"), Holdout.open(tmp_path / "x.holdout")
    for number, holdout in enumerate((first, second, second, first)):
        found = holdout.score(ids=guesses, predictions=guesses.values(), claim=0.9 + number * 1e-3)
        assert (found.repeated, found.questions_left) == (False, 19 - number)
    for holdout in (first, second):
        assert holdout.score(ids=guesses, predictions=guesses.values(), claim=0.901).repeated
        assert holdout.status() == Holdout.open(tmp_path / "x.holdout").status()
