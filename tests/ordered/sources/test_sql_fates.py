"""Fates of cells that a database counts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np

from dpselect.ordered import Column, open_column


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
