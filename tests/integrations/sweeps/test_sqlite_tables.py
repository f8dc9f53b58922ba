"""SQLite files: plain tables, read-only."""

import sqlite3
from contextlib import closing

import pytest

from dpselect.decoding.limits import LimitError
from dpselect.errors import ContentError
from dpselect.integrations.sweeps import sqlite_tables
from dpselect.integrations.sweeps.sqlite_tables import SqliteTables, has_tables


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE a (x, y)")
        made.execute("INSERT INTO a VALUES (1, 'b'), (2, CAST(X'ff' AS TEXT))")
        made.execute("CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r")
    return path


def test_rows_of_a_table(path):
    with SqliteTables.opened(path) as tables:
        assert tables.names == {"a"}
        assert tables.rows("a", "x, y") == [(1, "b"), (2, "\ufffd")]


def test_a_view_is_no_table(path):
    with SqliteTables.opened(path) as tables, pytest.raises(ContentError, match="no table 'v'"):
        tables.rows("v", "n")
    assert has_tables(str(path), "a")
    assert not has_tables(str(path), "a", "v")


def test_what_is_no_database(tmp_path):
    path = tmp_path / "a.db"
    assert not has_tables(str(path), "a")
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    assert not has_tables(str(path), "a")
    with pytest.raises(ContentError, match="SQLite"), SqliteTables.opened(path):
        pass


def test_rows_are_limited(path, monkeypatch):
    monkeypatch.setattr(sqlite_tables, "SWEEP", sqlite_tables.SWEEP.__class__(size=1, entries=1))
    with SqliteTables.opened(path) as tables, pytest.raises(LimitError, match="more than 1 rows"):
        tables.rows("a", "x")


def test_a_missing_column_is_an_error_of_content(path):
    with pytest.raises(ContentError, match="cannot be read"), SqliteTables.opened(path) as tables:
        tables.rows("a", "z")
