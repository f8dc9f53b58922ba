"""A table of SQLite with odd numbers."""

from __future__ import annotations

import sqlite3

import pytest

from tests.ordered.sources.columns_cases import FLOATS, WHOLE


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "rows.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the rows" ("a ""b""" REAL, whole INTEGER)')
        rows = [(None if x != x else float(x), None) for x in FLOATS] + [(None, int(x)) for x in WHOLE]
        connection.executemany("INSERT INTO [the rows] VALUES (?, ?)", rows)
    connection.close()
    return f"sqlite:///{path}"
