"""What is refused before anything is paid, by public facts, and what errors do not show."""

from __future__ import annotations

import json
import os
import sys
import traceback

import numpy as np
import pytest

from dpselect.cli.app import main
from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.files import read_columns
from dpselect.ledger import Ledger
from dpselect.ordered import median, open_column, quantile
from dpselect.ordered.sources.adapters import SqlTable
from dpselect.study.data import load
from dpselect.study.schema import Data
from dpselect.tables.table import open_table
from tests.ordered.sources import column_laws as laws

POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")
SECRET = "s3cr3t"


@pytest.fixture
def pay(tmp_path, monkeypatch, capsys):
    """Runs `dpselect quantile` on a budget: the exit status, what was said, and what is left of epsilon 3."""
    where = str(tmp_path / "budget.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Ledger.open(where, create=True) as ledger:
        ledger.create_budget("census", epsilon=3)

    def run(*arguments):
        usual = ("--column", "x", "--q", "0.5", "--epsilon", "1", "--ledger", where, "--budget", "census")
        monkeypatch.setattr(sys, "argv", ["dpselect", "quantile", *map(str, arguments), *usual])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        with Ledger.open(where, create=False) as ledger:
            return end.value.code or 0, out + err, float(ledger.budget("census").remaining().epsilon)

    return run


BOUNDS = ("--lower", "0", "--upper", "9")
DUCKDB = {
    "VARCHAR": "'1'", "INTERVAL": "INTERVAL 1 DAY", "STRUCT(a INTEGER)": "{'a': 1}", "BIT": "'1'",
    "ENUM('POINT')": "'POINT'", "INTEGER[]": "[1]", "INTEGER[1]": "[1]", "UUID": "uuid()", "BLOB": "'x'", "JSON": "'1'",
    "MAP(INTEGER, INTEGER)": "MAP {1: 1}", "TIME": "'10:00'",
}  # fmt: skip


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", DUCKDB)
def test_types_of_duckdb_are_checked_before_paying(tmp_path, pay, kind):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        connection.execute(f"INSERT INTO t SELECT {DUCKDB[kind]} FROM range(50)")
        with pytest.raises(ArgumentError, match="column: 'x'"):
            quantile(connection.table("t"), q=0.5, lower=0, upper=9, epsilon=1.0, spender=pytest.fail)
    status, said, left = pay(f"duckdb:///{tmp_path / 'x.duckdb'}", "--table", "t", *BOUNDS)
    assert (status, left) == (2, 3.0)
    assert "'x'" in said


@pytest.mark.parametrize("kind", ["INTERVAL", "POINT", "BLOB", "INTEGER[]", "TEXT", "anything", ""])
def test_types_of_sqlite_are_checked_before_paying(tmp_path, pay, kind):
    url = laws.sqlite_table(tmp_path / "x.db", kind if kind.isalpha() or not kind else f'"{kind}"', ["1"] * 50)
    status, said, left = pay(url, "--table", "t", *BOUNDS)
    assert (status, left) == (2, 3.0)
    assert "'x'" in said


@pytest.mark.full
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_types_of_postgresql_are_checked_before_paying(pay):
    import sqlalchemy as sa

    engine = sa.create_engine(POSTGRES)
    odd = {
        "TEXT": "'1'", "INTERVAL": "'1 day'", "UUID": "gen_random_uuid()", "INTEGER[]": "'{1}'",
        "MONEY": "'1'", "JSON": "'1'", "BYTEA": "'x'", "INT4RANGE": "'[1,2)'", "POINT": "'(1,2)'", "OID": "1",
        "TIME": "'1:00'",
    }  # fmt: skip
    for kind, cell in odd.items():
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS refused"))
            connection.execute(sa.text(f"CREATE TABLE refused (x {kind})"))
            connection.execute(sa.text(f"INSERT INTO refused VALUES ({cell.replace(':', chr(92) + ':')})"))
        status, said, left = pay(POSTGRES, "--table", "refused", *BOUNDS)
        assert (kind, status, left) == (kind, 2, 3.0), said
        assert "'x'" in said, (kind, said)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE refused"))
    engine.dispose()


def test_a_driver_is_never_quoted():
    def query(statement, parameters):
        raise RuntimeError(f"cannot cast {SECRET}")

    table = SqlTable(query, "t", "x")
    for ask in (
        lambda: median(table, lower=0.0, upper=9.0, epsilon=1.0),
        lambda: median(table, lower=0.0, upper=9.0, granularity=1.0, epsilon=1.0),
        lambda: median(table, categories=["a"], epsilon=1.0),
    ):
        with pytest.raises(ContentError) as caught:
            ask()
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_bounds_beyond_what_a_database_holds(tmp_path):
    url = laws.sqlite_table(tmp_path / "x.db", "INTEGER", [*range(500), 2**63 - 1, -(2**63)])
    with open_column(url, "x", table="t") as source:
        for lower, upper in ((0, 2**70), (-(2**70), 600), (2**65, 2**66)):
            assert lower <= quantile(source, q=0.5, lower=lower, upper=upper, epsilon=4.0).value <= upper


def test_names_that_look_like_parameters(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute('CREATE TABLE ":p1" ("x :p0" INTEGER)')
        connection.executemany('INSERT INTO ":p1" VALUES (?)', [[k] for k in range(500)])
    connection.close()
    with open_column(f"sqlite:///{tmp_path / 'x.db'}", "x :p0", table=":p1") as source:
        assert abs(quantile(source, q=0.5, lower=0, upper=500, epsilon=4.0).value - 250) < 50


def test_a_text_column_of_a_csv_file_is_not_charged(tmp_path, pay):
    path = laws.csv_file(tmp_path / "people.csv", ["north", "south", "", "nan", "east"] * 400)
    status, said, left = pay(path, *BOUNDS)
    assert (status, left) == (1, 3.0)
    assert "'x'" in said
    assert "north" not in said
    assert pay(path, *BOUNDS, "--range-epsilon", "1")[2] == 3.0
    assert pay(path, "--category", "north", "--category", "south", "--category", "east")[::2] == (0, 2.0)
    assert pay(path, *BOUNDS, "--kind", "number")[::2] == (5, 1.0)  # as was declared, and withheld
    assert pay(path, *BOUNDS, "--kind", "text")[::2] == (2, 1.0)
    mixed = laws.csv_file(tmp_path / "mixed.csv", ["1", "x", "y", "", "-"] * 40)
    assert pay(mixed, *BOUNDS, "--no-count")[::2] == (0, 0.0)


ODD_FILES = {
    "utf-16": "other,x\n1,2\n".encode("utf-16"),
    "utf-16-be": b"\xfe\xff" + "other,x\n1,2\n".encode("utf-16-be"),
    "utf-32": "other,x\n1,2\n".encode("utf-32"),
    "unmarked utf-16": "other,x\n1,2\n".encode("utf-16-le"),
    "latin-1 header": "größe,x\n1,2\n".encode("latin-1"),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_files_in_another_encoding_are_refused_by_their_header(tmp_path, pay, name):
    path = tmp_path / "odd.csv"
    path.write_bytes(ODD_FILES[name])
    status, said, left = pay(path, *BOUNDS)
    assert (status, left) == (1, 3.0)
    assert "UTF-8" in said
    for read in (lambda: open_table("odd.csv", tmp_path), lambda: read_columns(path, ["x"])):
        with pytest.raises(ContentError, match="UTF-8") as caught:
            read()
        assert "byte" not in "".join(traceback.format_exception(caught.value))


def test_a_cell_in_another_encoding_is_a_cell_that_is_no_number(tmp_path, pay):
    """A byte that is no UTF-8, and a cell of any length, concern one row alone."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b"other,x\n" + b"1,5\n" * 500 + b"1,caf\xe9\n" + b"\xff,5\n" + b"1," + b"9" * 140_000 + b"\n")
    with open_column(str(path), "x", look=True) as source:
        assert laws.ranks(source, lower=0, upper=9, granularity=1)[1] == {5: 501, 9: 1}
    assert pay(path, *BOUNDS)[::2] == (0, 2.0)
    columns = {"x": {"bounds": (0, 9)}}
    facts = Data.model_validate({"source": "rows.csv", "label": "other", "classes": ("1", "2"), "columns": columns})
    with pytest.raises(ContentError) as caught:
        load(facts, open_table("rows.csv", tmp_path))
    assert caught.value.__context__ is None
    with pytest.raises(ContentError, match="UTF-8") as caught:  # anyone who reads predictions may know all about them
        read_columns(path, ["x"])
    assert caught.value.__context__ is None


def test_study_data_show_no_cell(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {"x": {"bounds": (0, 9)}}
    facts = Data.model_validate({"source": "x.parquet", "label": "y", "classes": ("a", "b"), "columns": columns})
    text = pa.array([b"a", b"b", b"s3cr3t\xff"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": text}), tmp_path / "x.parquet")
    assert load(facts, open_table("x.parquet", tmp_path)).labels.tolist() == [0, 1, -1]
    pyarrow.parquet.write_table(pa.table({"x": ["1", "2", SECRET], "y": ["a", "b", "a"]}), tmp_path / "x.parquet")
    with pytest.raises(ContentError, match="'x' has a cell that is missing or no number") as caught:
        load(facts, open_table("x.parquet", tmp_path))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    (tmp_path / "x.parquet").write_bytes(b"PAR1 " + SECRET.encode())
    with pytest.raises(ContentError, match="Parquet"):
        open_table("x.parquet", tmp_path)


@pytest.mark.parametrize("missing", ["", "nan", "NaN", None, float("nan"), np.datetime64("NaT")])
def test_predictions_that_are_missing_cost_no_answer(tmp_path, monkeypatch, missing):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    labels = np.random.default_rng(0).integers(0, 2, 500)
    terms = {"metric": "accuracy", "questions": 20, "answers": 2, "failure_probability": 0.05}
    holdout = Holdout.create(
        tmp_path / "l.holdout", HoldoutLabels(ids=range(500), labels=labels), HoldoutRequest(**terms)
    )
    for predictions in ([missing] * 500, [*labels[1:], missing]):
        with pytest.raises(ContentError, match="rows without a prediction"):
            holdout.score(ids=range(500), predictions=predictions)
    assert holdout.status()["asked"] == 0
    holdout.score(ids=range(500), predictions=labels)


def test_the_status_of_a_holdout_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = str(tmp_path / "l.holdout")
    terms = {"metric": "accuracy", "questions": 20, "answers": 2, "failure_probability": 0.05}
    Holdout.create(place, HoldoutLabels(ids=range(500), labels=[0, 1] * 250), HoldoutRequest(**terms))
    said = []
    for arguments in ((place,), ("--holdout", place), (), (place, "--holdout", place)):
        monkeypatch.setattr(sys, "argv", ["dpselect", "holdout", "status", *arguments, "--json"])
        with pytest.raises(SystemExit) as end:
            main()
        said.append((end.value.code or 0, capsys.readouterr().out))
    assert json.loads(said[0][1])["questions_left"] == 20
    assert said[0] == said[1]
    assert said[2] == said[3] == (2, "")


@pytest.mark.parametrize("values", [[1.0, None, 2**64], (1, 10**400), [True, "x", 2.5, [1, 2]]])
def test_lists_with_odd_numbers_are_read(values):
    assert 0 <= median(values, lower=0, upper=9, epsilon=1.0).value <= 9


def test_weights_beside_missing_values_are_read():
    pa = pytest.importorskip("pyarrow")
    rows = pa.array([1, None, 3], pa.int64())
    found = laws.ranks(rows, lower=0, upper=9, weights=[1.0, 1.0, None])
    assert found[1] == {1: 1024}


def test_the_collation_of_a_column_counts_nobody_twice(tmp_path):
    """Grouped under NOCASE, the one row 'A' could stand for a thousand rows 'a'."""
    for rows in (["A"] + ["a"] * 5, ["a"] * 5 + ["A"]):
        url = laws.sqlite_table(tmp_path / "x.db", "TEXT COLLATE NOCASE", rows)
        assert laws.ranks_of_table(url, {"lower": None, "upper": None, "categories": ["a", "A"]})[1] == {0: 5, 1: 1}
