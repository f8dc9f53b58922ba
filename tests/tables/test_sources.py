"""What is said of a source that is not there, or of no kind that is read: the public names that are there instead."""

import sqlite3
from contextlib import closing

import pytest

from dpselect.cli import app as command_line
from dpselect.errors import ArgumentError
from dpselect.ordered import open_column
from dpselect.tables import Written
from dpselect.tables.table import open_table


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("d.duckdb", r"write duckdb:///d\.duckdb and name a table \(data\.table\)"),
        ("d.SQLITE3", r"write sqlite:///d\.SQLITE3 and name a table"),
        ("d.xls", r"save it as \.xlsx or \.csv"),
        ("d.json", r"one object a line"),
        ("d.sav", r"export it as \.parquet or \.csv"),
        ("d.doc", r"must be a path ending in \.csv"),
    ],
)
def test_a_file_that_is_not_read_says_what_would_do(name, said, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(ArgumentError, match=said):
        open_table(name, tmp_path)


def test_an_engine_that_is_not_read_is_named_without_its_driver():
    with pytest.raises(ArgumentError, match="'mysql' is not read"), open_column("mysql://host/x", "x", table="t"):
        pass


def test_a_missing_file_has_no_number_of_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["dpselect", "holdout", "create", "no.csv", "--to", "h.db", "--questions", "5"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 1
    assert capsys.readouterr().err == "dpselect: no.csv: No such file or directory\n"
