"""Keys of sealed stores: private to their owner, found again, and gone when they are destroyed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import stat
from pathlib import Path

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.storage.keys import KeyFile, KeyVariable, key_place, state_folder

needs_posix = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
SECRET = bytes(range(32))


@pytest.fixture
def file(tmp_path):
    return KeyFile(tmp_path / "keys")


def test_the_state_folder_of_the_user(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert state_folder() == Path("/var/state/dpselect")
    for relative in ("state", ""):
        monkeypatch.setenv("XDG_STATE_HOME", relative)
        assert state_folder() == Path.home() / ".local/state/dpselect"


@needs_posix
def test_a_key_file_is_private_and_found_again(file):
    assert file.load("a") is None
    key = file.create("a")
    assert len(key) == 32
    assert file.load("a") == key
    assert file.load("b") is None
    assert stat.S_IMODE(file.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((file.folder / "a.key").stat().st_mode) == 0o600
    assert file.create("a") != key
    assert file.variable is None
    assert str(file.folder / "a.key") in file.sought("a")


@needs_posix
def test_a_destroyed_key_is_overwritten_and_gone(file, tmp_path):
    key = file.create("a")
    os.link(file.folder / "a.key", tmp_path / "kept")
    file.destroy("a")
    file.destroy("a")
    assert file.load("a") is None
    assert not list(file.folder.iterdir())
    assert (tmp_path / "kept").read_bytes() != key


@needs_posix
def test_keys_that_others_could_read_are_refused(file, tmp_path):
    file.create("a")
    path = file.folder / "a.key"
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(StudyError, match="not private"):
            file.load("a")
    path.chmod(0o600)
    path.write_bytes(b"x" * 31)
    with pytest.raises(StudyError, match="does not hold a key"):
        file.load("a")
    (file.folder / "b.key").symlink_to(path)
    with pytest.raises(StudyError, match="not private"):
        file.load("b")
    file.folder.chmod(0o755)
    file.check()
    assert stat.S_IMODE(file.folder.stat().st_mode) == 0o700
    (tmp_path / "f").touch()
    with pytest.raises(StudyError, match="cannot be used"):
        KeyFile(tmp_path / "f").check()


def test_keys_are_derived_from_a_variable(monkeypatch):
    place = key_place("MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    assert place.load("a") is None
    with pytest.raises(StudyError, match="MY_KEY must hold the key"):
        place.create("a")
    monkeypatch.setenv("MY_KEY", base64.b64encode(SECRET).decode())
    expected = hmac.digest(SECRET, b"dpselect sealed store a", hashlib.sha256)
    assert place.create("a") == place.load("a") == expected
    assert place.load("b") != expected
    assert (place.variable, "MY_KEY" in place.sought("a")) == ("MY_KEY", True)
    place.destroy("a")
    place.destroy("a")
    assert "MY_KEY" not in os.environ


@pytest.mark.parametrize("text", ["not base64!", base64.b64encode(SECRET[:31]).decode()])
def test_variables_without_a_key_are_refused_and_not_shown(monkeypatch, text):
    monkeypatch.setenv("MY_KEY", text)
    with pytest.raises(StudyError, match="must hold 32 bytes in base64") as error:
        KeyVariable("MY_KEY").check()
    assert text not in str(error.value)


def test_the_place_of_a_key():
    assert key_place(None) == KeyFile(state_folder() / "keys")
    for wrong in ("not a name", "", 5):
        with pytest.raises(ArgumentError, match="key_variable must name"):
            key_place(wrong)
