"""The sealed store: what is on disk, what opens it, and what is left after wiping."""

from __future__ import annotations

import base64
import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from dpselect.errors import StudyError
from dpselect.privacy.release import Receipt
from dpselect.storage import durable
from dpselect.storage.keys import KeyFile, KeyVariable, key_place, state_folder
from dpselect.tuning.machine import Bond, Candidate, Search, Stage
from dpselect.tuning.sealed_store import SealedStore, Shape

SHAPE = Shape(slots=5, payload_bytes=100)
MASTER = bytes(range(32))
RECEIPT = Receipt(account="a", identifier="i", charged={"epsilon": 1.0, "delta": 0.0})


@pytest.fixture
def keys(tmp_path):
    return KeyFile(tmp_path / "state" / "keys")


def opened(path, keys, *, resume=False, fingerprint="f", shape=SHAPE):
    return SealedStore.open(path, fingerprint=fingerprint, shape=shape, keys=keys, resume=resume)


def sealed_search(store) -> Search:
    store.reserved(RECEIPT)
    store.create_key()
    search = Search(slots=SHAPE.slots)
    bond = Bond(b"b" * 32, b"c" * 32, b"r" * 32, b"l" * 16)
    return search.seal(counted=3, executed=5, master=MASTER, replayable=True, bond=bond).reserve().start()


@pytest.fixture
def path(tmp_path, keys):
    """A store killed in the middle of its trials."""
    path = tmp_path / "search.db"
    with opened(path, keys) as store:
        search = sealed_search(store).finish(1, Candidate(1, 0.25, b"t" * 16, b"winner")).lose(2)
        store.save(search)
    return path


def test_an_attempt_in_this_process_does_not_let_other_processes_in(path, keys):
    """Anyone who closes a file loses, on POSIX, every lock that its process holds on it."""
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT stage FROM search')"
    with opened(path, keys, resume=True) as store:
        store.load()
        for resume in (False, True):
            with pytest.raises(StudyError), opened(path, keys, resume=resume):
                pass
        other = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert "locked" in other.stderr


def test_a_search_comes_back(path, keys):
    with opened(path, keys, resume=True) as store:
        search = store.load()
        assert store.receipt == RECEIPT
    assert (search.stage, search.counted, search.executed, search.master) == (Stage.RUNNING, 3, 5, MASTER)
    assert (search.best.index, search.best.score, search.best.payload) == (1, 0.25, b"winner")
    assert search.replayable
    assert search.bond == Bond(b"b" * 32, b"c" * 32, b"r" * 32, b"l" * 16)
    assert search.pending() == [0, 2, 3, 4]
    assert search.losses == bytes((0, 0, 1, 0, 0))


@given(
    counted=st.integers(0, 2**63),
    payload=st.none() | st.binary(max_size=100),
    score=st.floats(allow_nan=False),
    done=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_the_record_has_one_size_and_round_trips(counted, payload, score, done):
    best = None if payload is None else Candidate(counted, score, b"t" * 16, payload)
    search = Search(slots=5, stage=Stage.RUNNING, counted=counted, executed=counted, done=bytes(done), losses=bytes(5))
    search = replace(search, best=best)
    record = SHAPE.pack(search)
    assert len(record) == SHAPE.plain_bytes
    assert SHAPE.unpack(record, Stage.RUNNING) == search


def test_files_are_private_and_the_key_lies_elsewhere(path, keys, tmp_path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (key,) = keys.folder.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    written = b"".join(file.read_bytes() for file in tmp_path.glob("search.db*"))
    assert key.read_bytes() not in written


def test_the_journal_is_private_too(tmp_path, keys):
    before = os.umask(0)
    try:
        with opened(tmp_path / "s.db", keys) as store:
            store.save(sealed_search(store))
            modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("s.db*")}
    finally:
        os.umask(before)
    assert modes == {0o600}


def test_nothing_secret_is_in_the_clear(path, tmp_path):
    written = b"".join(file.read_bytes() for file in tmp_path.glob("search.db*"))
    for secret in (b"winner", MASTER, b"t" * 16):
        assert secret not in written


def test_every_save_has_a_fresh_nonce(tmp_path, keys):
    with opened(tmp_path / "s.db", keys) as store:
        search = sealed_search(store)
        store.save(search)
        first = store._sealed()
        store.save(search)
        second = store._sealed()
    assert first[:12] != second[:12]
    assert sum(a == b for a, b in zip(first, second, strict=True)) < len(first) / 10


def test_only_one_process_holds_a_store(path, keys):
    with opened(path, keys, resume=True) as store:
        store.load()
        with pytest.raises(StudyError, match="another process"), opened(path, keys, resume=True):
            pass


def test_an_old_store_is_not_overwritten(path, keys):
    with pytest.raises(StudyError, match="already holds"), opened(path, keys):
        pass


def test_a_changed_study_is_refused_before_anything_sealed_is_read(path, keys, monkeypatch):
    monkeypatch.setattr(SealedStore, "load", lambda self: pytest.fail("read"))
    monkeypatch.setattr(SealedStore, "_sealed", lambda self: pytest.fail("read"))
    with pytest.raises(StudyError, match="changed"), opened(path, keys, resume=True, fingerprint="g"):
        pass
    with pytest.raises(StudyError, match="changed"), opened(path, keys_in_variable(monkeypatch), resume=True):
        pass


def keys_in_variable(monkeypatch):
    monkeypatch.setenv("TUNER_TEST_KEY", base64.b64encode(b"k" * 32).decode())
    return KeyVariable("TUNER_TEST_KEY")


def assert_refused(path, keys, match="cannot be opened", **options):
    with pytest.raises(StudyError, match=match) as caught, opened(path, keys, resume=True, **options) as store:
        store.load()
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    for secret in ("winner", "0.25", MASTER.hex()):
        assert secret not in str(caught.value)


def edit(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def test_a_missing_key(path, keys):
    next(keys.folder.iterdir()).unlink()
    assert_refused(path, keys, match="key of this search is missing")


def test_a_wrong_key(path, keys):
    next(keys.folder.iterdir()).write_bytes(b"w" * 32)
    assert_refused(path, keys)


def test_a_key_that_others_can_read(path, keys):
    next(keys.folder.iterdir()).chmod(0o644)
    assert_refused(path, keys, match="not private")


@pytest.mark.parametrize("position", [0, 11, 12, 40, 100, -1])
def test_a_changed_record(path, keys, position):
    connection = sqlite3.connect(path)
    sealed = bytearray(connection.execute("SELECT sealed FROM search").fetchone()[0])
    connection.close()
    sealed[position] ^= 1
    edit(path, "UPDATE search SET sealed = ?", bytes(sealed))
    assert_refused(path, keys)


@pytest.mark.parametrize("stage", ["sealed", "released", "settled"])
def test_a_changed_stage(path, keys, stage):
    edit(path, "UPDATE search SET stage = ?", stage)
    assert_refused(path, keys)


def test_a_stage_set_back_does_not_redraw(path, keys):
    edit(path, "UPDATE search SET stage = 'new'")
    with opened(path, keys, resume=True) as store:
        store.load()
        with pytest.raises(StudyError, match="changed"):
            store.create_key()
    assert len(next(keys.folder.iterdir()).read_bytes()) == 32


def test_a_record_from_another_study(path, keys, tmp_path):
    other = tmp_path / "other.db"
    with opened(other, keys) as store:
        store.save(sealed_search(store))
    connection = sqlite3.connect(other)
    (sealed,) = connection.execute("SELECT sealed FROM search").fetchone()
    connection.close()
    edit(path, "UPDATE search SET sealed = ?", sealed)
    assert_refused(path, keys)


def test_a_record_of_another_shape(path, keys):
    assert_refused(path, keys, shape=Shape(slots=4, payload_bytes=102))


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0" + b"x" * 200])
def test_a_file_that_is_no_store(tmp_path, keys, content):
    path = tmp_path / "s.db"
    path.write_bytes(content)
    assert_refused(path, keys, match="not a store")


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE search", "DELETE FROM search", "UPDATE search SET stage = 'later'", "UPDATE search SET receipt = '{'"],
)
def test_a_damaged_store(path, keys, statement):
    if statement == "DROP TABLE search":
        edit(path, "CREATE TABLE other (x)")
    edit(path, statement)
    with pytest.raises((StudyError, ValueError)), opened(path, keys, resume=True) as store:
        assert store.receipt


def test_an_unwritable_place(tmp_path, keys):
    with pytest.raises(StudyError, match="cannot be written"), opened(tmp_path / "missing" / "s.db", keys):
        pass


def test_wiping_destroys_the_key_and_the_record(path, keys):
    with opened(path, keys, resume=True) as store:
        store.load()
        before = store._sealed()
        assert store.wipe() is None
        after = store._sealed()
    assert list(keys.folder.iterdir()) == []
    assert len(after) == len(before)
    assert after != before
    assert not path.with_name("search.db-wal").exists()


def test_erasing_overwrites_before_it_unlinks(tmp_path, monkeypatch):
    path = tmp_path / "k"
    path.write_bytes(b"k" * 32)
    seen = []
    monkeypatch.setattr(durable, "sync", lambda fd: seen.append(path.read_bytes() if path.exists() else None))
    durable.erase(path)
    durable.erase(path)
    assert len(seen[0]) == 32
    assert seen[0] != b"k" * 32
    assert seen[1:] == [None]


def test_a_key_in_a_variable(tmp_path, monkeypatch):
    keys = keys_in_variable(monkeypatch)
    path = tmp_path / "s.db"
    with opened(path, keys) as store:
        store.save(sealed_search(store))
        one = keys.load(store.identifier)
    assert one != keys.load("other")
    assert one != b"k" * 32
    with opened(path, keys, resume=True) as store:
        assert store.load().master == MASTER
        assert store.wipe() == "TUNER_TEST_KEY"
    assert "TUNER_TEST_KEY" not in os.environ


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(b"k" * 31).decode()])
def test_a_bad_variable_is_named_and_not_quoted(monkeypatch, text):
    monkeypatch.setenv("TUNER_TEST_KEY", text)
    with pytest.raises(StudyError, match="TUNER_TEST_KEY") as caught:
        KeyVariable("TUNER_TEST_KEY").check()
    assert not text or text not in str(caught.value)


def test_where_keys_lie(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "dpselect"
    assert key_place(None).variable is None
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_folder().parts[-3:] == (".local", "state", "dpselect")
    with pytest.raises(ValueError, match="key_variable"):
        key_place("not a name")
