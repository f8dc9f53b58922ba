"""Fates of cells that a database counts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np

from dpselect.ordered import Column, open_column
from tests.ordered.sources import column_laws as laws


def test_a_database_has_the_fates_of_bounds_between_whole_numbers(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(place % 11 - 5,) for place in range(110)])
        connection.commit()
    public = {"lower": -3.5, "upper": 3.5, "granularity": 0.5}
    with open_column(f"sqlite:///{tmp_path / 't.db'}", "x", table="t") as source:
        found = Column(source, **public).fates()
    assert found.tolist() == [70, 20, 20, 0, 0]
    assert found.tolist() == Column(np.arange(110) % 11 - 5, **public).fates().tolist()


def test_cells_without_a_value_are_missing_or_unreadable(tmp_path):
    """SQLite keeps text in a column of integers. A word for "no value" is missing, and other text is not."""
    cells = [0, 1, 9, 10, None, " NA ", "", "x", "y", "z"]
    url = laws.sqlite_table(tmp_path / "t.db", "INTEGER", cells)
    with open_column(url, "x", table="t") as source:
        assert Column(source, lower=1, upper=9).fates().tolist() == [2, 1, 1, 3, 3]


def test_categories_are_inside_and_other_texts_are_unreadable(tmp_path):
    url = laws.sqlite_table(tmp_path / "t.db", "TEXT", ["a", "b", "b", "c", "null", None, None, ""])
    with open_column(url, "x", table="t") as source:
        assert Column(source, categories=["a", "b"]).fates().tolist() == [3, 0, 0, 4, 1]
