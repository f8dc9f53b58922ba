"""Folders: what is in them, without links."""

import pytest

from dpselect.decoding.limits import LimitError
from dpselect.integrations.sweeps import folders


def test_links_are_not_followed(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "f").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "g").symlink_to("/dev/zero")
    assert [each.name for each in folders.folders_in(tmp_path)] == ["b"]
    assert [each.name for each in folders.files_below(tmp_path)] == ["f"]
    assert not list(folders.files_below(tmp_path / "link"))
    assert not list(folders.files_below(tmp_path / "absent"))
    assert not folders.is_plain_file(tmp_path / "b" / "g")


def test_depth_and_entries_are_limited(tmp_path, monkeypatch):
    deep = tmp_path
    for _ in range(12):
        deep = deep / "d"
        deep.mkdir()
        (deep / "f").touch()
    assert len(list(folders.files_below(tmp_path))) == folders._DEEPEST
    monkeypatch.setattr(folders, "_MOST", 1)
    (tmp_path / "e").mkdir()
    with pytest.raises(LimitError, match="more than 1"):
        folders.folders_in(tmp_path)
