"""The sealed record: what it hides, what it notices, and that its exposure never goes back."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.errors import BudgetError, StudyError
from dpselect.holdout.record import Record
from dpselect.storage import durable
from dpselect.storage.keys import state_folder
from tests.holdout.record_cases import entries, execute, exposure, make, say


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "a.record"


def counter_of(record):
    return state_folder() / "records" / f"{record.identifier}.db"


def test_entries_last_and_are_sealed(path):
    record = make(path)
    say(record, "SHIBBOLETH")
    say(Record.open(path, kind="test"), "second")
    assert entries(path) == [{"word": "SHIBBOLETH"}, {"word": "second"}]
    assert Record.open(path, kind="test").secret() == b"SECRET-LABELS"
    everything = b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())
    assert b"SHIBBOLETH" not in everything
    assert b"SECRET" not in everything
    assert b'{"k": 3}' in everything


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_only_the_owner_can_read_anything(path):
    record = make(path)
    say(record, "a")
    files = [path, counter_of(record), state_folder() / "keys" / f"{record.identifier}.key"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
    assert all(stat.S_IMODE(file.parent.stat().st_mode) == 0o700 for file in files[1:])
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.record", "state"]  # nothing left over


def test_a_file_is_never_replaced(path):
    path.write_text("mine")
    with pytest.raises(StudyError, match="exists already"):
        make(path)
    assert path.read_text() == "mine"


def test_a_spender_that_refuses_leaves_no_file(path):
    def refuse(identifier):
        raise BudgetError("no")

    with pytest.raises(BudgetError):
        make(path, reserve=refuse)
    assert [file for file in path.parent.rglob("*") if file.is_file()] == []


def test_a_newer_format_is_refused(path):
    make(path)
    execute(path, "UPDATE about SET format = 2")
    with pytest.raises(StudyError, match="newer version of dpselect"):
        Record.open(path, kind="test")


def test_an_older_format_that_never_was_is_refused(path):
    make(path)
    execute(path, "UPDATE about SET format = 0")
    with pytest.raises(StudyError, match="damaged"):
        Record.open(path, kind="test")


@pytest.mark.parametrize("content", [b"", b"id,label\n1,2\n", bytes(5000)])
def test_what_is_no_record_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(StudyError):
        Record.open(path, kind="test")


def test_without_its_key_nothing_is_read(path, monkeypatch):
    make(path)
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "elsewhere"))
    with pytest.raises(StudyError, match="key"):
        Record.open(path, kind="test")


def test_with_a_key_in_a_variable_the_counter_is_still_needed(path, monkeypatch):
    monkeypatch.setenv("HOLDOUT_KEY", "A" * 43 + "=")
    record = make(path, key_variable="HOLDOUT_KEY")
    say(record, "a")
    assert entries(path) == [{"word": "a"}]
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "elsewhere"))
    with pytest.raises(StudyError, match="no count of the answers"):
        entries(path)


def test_restoring_an_older_copy_cannot_lower_the_exposure(path):
    record = make(path)
    say(record, "a")
    old = path.with_suffix(".old")
    shutil.copy2(path, old)
    for word in "bcd":
        say(record, word)
    for _ in range(3):
        shutil.copy2(old, path)
        assert entries(path) == [{"lost": [4, 4]}]  # the last entry of an older copy may never have been counted
    say(Record.open(path, kind="test"), "e")
    assert exposure(entries(path)) == 5


def test_deleting_the_last_entries_cannot_lower_the_exposure(path):
    record = make(path)
    for word in "abcd":
        say(record, word)
    execute(path, "DELETE FROM entry WHERE sequence > 1")
    assert exposure(entries(path)) == 4


def crash_before_the_counter(act, monkeypatch):
    """Commit an entry to the file and die before the counter has it."""
    real, count = durable.commit, []

    def commit(connection):
        count.append(1)
        if len(count) == 2:
            raise KeyboardInterrupt
        real(connection)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "commit", commit)
        with pytest.raises(KeyboardInterrupt):
            act()


def test_a_crash_between_file_and_counter_loses_nothing(path, monkeypatch):
    record = make(path)
    say(record, "a")
    crash_before_the_counter(lambda: say(record, "b"), monkeypatch)
    assert entries(path) == [{"word": "a"}, {"word": "b"}]
    say(record, "c")
    assert exposure(entries(path)) == 3


def test_a_crash_does_not_make_a_hole_for_copies(path, monkeypatch):
    """A question on record but not counted, a restored copy, another question: the first file must not count as new."""
    record = make(path)
    say(record, "a")
    before, with_x = path.with_suffix(".before"), path.with_suffix(".x")
    shutil.copy2(path, before)
    crash_before_the_counter(lambda: say(record, "x"), monkeypatch)
    shutil.copy2(path, with_x)
    shutil.copy2(before, path)
    say(record, "y")
    shutil.copy2(with_x, path)  # as many entries as are counted, another history
    with pytest.raises(StudyError, match="two copies"):
        entries(path)
    shutil.copy2(before, path)
    assert entries(path) == [{"lost": [2, 2]}]
    shutil.copy2(with_x, path)
    assert entries(path) == [{"word": "a"}, {"lost": [2, 2]}]  # x was never counted, so it is not shown


def test_a_crash_while_an_older_copy_is_brought_up_is_mended(path, monkeypatch):
    record = make(path)
    say(record, "a")
    say(record, "b")
    old = path.with_suffix(".old")
    shutil.copy2(path, old)
    for word in "cd":
        say(record, word)
    for _ in range(2):
        shutil.copy2(old, path)
        crash_before_the_counter(lambda: entries(path), monkeypatch)
        assert entries(path) == [{"word": "a"}, {"lost": [4, 4]}]
    say(record, "e")
    shutil.copy2(path, old)
    assert entries(path) == [{"word": "a"}, {"lost": [4, 4]}, {"word": "e"}]


STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from([None, None, "file", "counter"])),
    st.tuples(st.just("look"), st.sampled_from([None, "file", "counter"])),
    st.tuples(st.just("keep"), st.integers(0, 2)),
    st.tuples(st.just("restore"), st.integers(0, 2)),
)


@pytest.mark.full
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=14))
def test_no_copies_and_crashes_show_more_than_is_counted(monkeypatch, steps):
    """Deaths before the file or before the counter is written, three copies kept and restored at will.

    Every answer that was ever read is within the exposure, which never falls; and the file as it was last used works.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        monkeypatch.setenv("XDG_STATE_HOME", f"{folder}/state")
        path, last = Path(folder, "a.record"), Path(folder, "last")
        record, shown, most = make(path), set(), 0
        shutil.copy2(path, last)
        for number, (kind, how) in enumerate([*steps, ("last", None)]):
            copy = Path(folder, f"copy-{how}")
            if kind == "keep":
                shutil.copy2(path, copy)
            elif kind == "restore":
                if copy.exists():
                    shutil.copy2(copy, path)
            elif kind == "last":
                shutil.copy2(last, path)
                entries(path)  # is not refused
            else:
                act = partial(say, record, number) if kind == "say" else partial(entries, path)
                try:
                    died(act, how, monkeypatch)
                    found = entries(path)
                except StudyError as error:
                    if "two copies" not in str(error):
                        raise
                    continue
                shown |= {entry["word"] for entry in found if "word" in entry}
                assert len(shown) <= exposure(found)
                assert most <= exposure(found)
                most = exposure(found)
                shutil.copy2(path, last)


def died(act, where, monkeypatch):
    """Do something, but die before the file or before the counter is committed."""
    real, left = durable.commit, {None: -1, "file": 1, "counter": 2}[where]

    def commit(connection):
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        real(connection)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(durable, "commit", commit)
        act()


def test_a_counter_of_another_history_is_refused(path):
    record = make(path)
    say(record, "a")
    old = counter_of(record).with_suffix(".old")
    shutil.copy2(counter_of(record), old)
    say(record, "b")
    say(record, "c")
    shutil.copy2(old, counter_of(record))
    with pytest.raises(StudyError, match="two copies"):
        entries(path)


def test_a_failed_write_shows_nothing_and_costs_nothing(path, monkeypatch):
    record = make(path)

    def full(connection):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(durable, "commit", full)
        with pytest.raises(StudyError, match="cannot be written"):
            say(record, "a")
    assert entries(path) == []
    say(record, "a")
    assert json.dumps(entries(path)) == '[{"word": "a"}]'
