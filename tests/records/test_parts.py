"""Files that appear whole, and commits that are synced."""

from __future__ import annotations

from contextlib import closing, suppress

import pytest

from dpselect.storage import durable


@pytest.mark.parametrize(("options", "level"), [({}, 3), ({"logged": True}, 2), ({"logged": True, "synced": False}, 1)])
def test_commits_are_synced_unless_that_is_declined(path, options, level):
    with closing(durable.connect(path, **options)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


def test_a_whole_file_never_replaces_one_and_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    with suppress(ZeroDivisionError), durable.whole_file(path) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with durable.whole_file(path) as part:
        part.write_text("whole")
        assert not path.exists()
    with pytest.raises(FileExistsError), durable.whole_file(path) as part:
        part.write_text("other")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "whole")]
