"""Engines split rows as Python does, by the key's own cell."""

import sqlite3

import pytest

from dpselect.privacy import Adjacency
from dpselect.study.in_database.dialect import DIALECTS, Split
from dpselect.study.row_parts import key_digests, validation_mask
from dpselect.tables.statements import with_parameters

SPLIT = Split("k", 0.37, "a study")
KEYS = [*map(str, range(300)), None, "", "caf\u00e9", "x" * 200, "O'Hara", "%s :p0"]


def statement(engine, source):
    parameters = []

    def bound(value):
        parameters.append(value)
        return f":p{len(parameters) - 1}"

    condition = DIALECTS[engine].held_out('"k"', SPLIT, bound)
    return f'SELECT CASE WHEN {condition} THEN 1 ELSE 0 END FROM {source} ORDER BY "at"', parameters


def in_sqlite():
    base = sqlite3.connect(":memory:")
    for name, function in DIALECTS["sqlite"].functions(SPLIT).items():
        base.create_function(name, -1, function)
    base.execute('CREATE TABLE t ("at" INTEGER, "k" TEXT)')
    base.executemany("INSERT INTO t VALUES (?, ?)", enumerate(KEYS))
    asked, parameters = statement("sqlite", "t")
    return base.execute(with_parameters(asked, lambda at: f"?{at + 1}"), parameters).fetchall()


def in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.execute('CREATE TABLE t ("at" INTEGER, "k" VARCHAR)')
    base.execute("INSERT INTO t SELECT unnest($1), unnest($2)", [list(range(len(KEYS))), KEYS])
    asked, parameters = statement("duckdb", "t")
    return base.execute(with_parameters(asked, lambda at: f"${at + 1}"), parameters).fetchall()


@pytest.mark.parametrize("ask", [in_sqlite, in_duckdb])
def test_rows_are_held_out_as_they_are_when_they_are_read(ask):
    wanted = validation_mask(
        key_digests(KEYS), fraction=SPLIT.fraction, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt=SPLIT.salt
    )
    assert [bool(held) for (held,) in ask()] == wanted.tolist()
    assert 80 < sum(wanted) < 150


def test_the_largest_of_many_numbers_needs_no_long_list_of_arguments():
    base = sqlite3.connect(":memory:")
    found = DIALECTS["sqlite"].greatest([str(number % 311) for number in range(400)])
    assert base.execute(f"SELECT {found}").fetchone() == (310,)
    assert found.count("max(") > 7
    assert DIALECTS["duckdb"].greatest(["a"]) == "a"
