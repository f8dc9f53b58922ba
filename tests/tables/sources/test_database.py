"""Tables of databases: names that are there, locks, and errors that quote no cell."""

import sqlite3
from contextlib import closing

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import open_column
from dpselect.tables import Written
from dpselect.tables.sources.database import _is_interruption
from dpselect.tables.table import open_table


def test_a_locked_database_is_said_to_be(tmp_path, monkeypatch):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE people (x REAL)")
        other.execute("BEGIN EXCLUSIVE")
        patient = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *where, **how: patient(*where, **{**how, "timeout": 0.01}))
        with pytest.raises(ArgumentError, match="locked by another process"):
            open_table(f"sqlite:///{path}", tmp_path, form=Written(table="people"))
        with (
            pytest.raises(ArgumentError, match="locked by another process"),
            open_column(f"sqlite:///{path}?timeout=0.01", "x", table="people"),
        ):
            pass


def test_what_a_database_says_of_a_cell_is_not_the_context_of_an_error_either(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES ('secret')")
        connection.execute("CREATE VIEW v AS SELECT json_extract(x, '$.a') AS x FROM t")
    with pytest.raises(ArgumentError) as refused:
        open_table("sqlite:///t.db", tmp_path, form=Written(table="v")).read(["x"])
    assert refused.value.__context__ is refused.value.__cause__ is None


@pytest.fixture
def database(tmp_path, request):
    """The URL of a database with a table people."""
    path = tmp_path / "d.db"
    if request.param == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE people (age INTEGER, job TEXT)")
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE people (age INTEGER, job TEXT)")
    return f"{request.param}:///{path}"


@pytest.mark.parametrize("database", ["sqlite", "duckdb"], indirect=True)
def test_a_database_names_its_tables_and_columns(database):
    for table in (None, "persons"):
        with pytest.raises(ArgumentError, match="there are 'people'"):
            open_table(database, form=Written(table=table))
        with pytest.raises(ArgumentError, match="there are 'people'"), open_column(database, "age", table=table):
            pass
    with pytest.raises(ArgumentError, match="there are 'age', 'job'"), open_column(database, "Age2", table="people"):
        pass


def test_an_interrupted_query_is_an_interruption():
    """And no failure of the database, which a message would tell of."""
    duckdb = pytest.importorskip("duckdb")
    for error in (duckdb.InterruptException("x"), RuntimeError("Query interrupted")):
        assert _is_interruption(error)
    assert not _is_interruption(duckdb.Error("Conversion Error: cannot cast 'Query interrupted'"))
