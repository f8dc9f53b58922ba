"""Studies whose rows are read although they are in a database, each with its reason; and those whose rows stay."""

import sqlite3
from contextlib import closing

import pytest

from dpselect.study import check_study, parse_study
from dpselect.study.in_database.reasons import reason_to_read, rows_note
from tests.study.in_database.cases import COLUMNS, ENGINES, NUMBERS, database, document, priced

DRIVERS = {"duckdb": "duckdb", "postgresql": "psycopg"}


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with closing(sqlite3.connect(tmp_path / "d.db")) as base:
        base.execute(
            "CREATE TABLE people (key INTEGER, age INTEGER, income REAL, city TEXT, spent REAL, bought TEXT, born DATE)"
        )
    return f"sqlite:///{tmp_path / 'd.db'}"


def with_columns(**columns):
    return {"data": {"columns": {**COLUMNS, **columns}}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learner": {"name": "dp-sgd"}}, 'learner.name is not "ridge"'),
        ({"learner": {"map": "bins"}}, "learner.map is set"),
        ({"learner": {"class_weights": {"yes": 3.0}}}, "learner.class_weights is set"),
        ({"learner": {"row_norm": 1e120}}, "learner.row_norm is too far from 1"),
        ({"data": {"row_key": None}}, "data.row_key is not set"),
        (
            {"privacy": {"adjacency": "replace_one"}, "search": {"design": "one-run"}},
            "under replace_one the position of a row splits them",
        ),
        (with_columns(income={"bounds": "private", "missing": 0}), "bounds are private"),
        (with_columns(income={"bounds": [1, 9], "missing": 2, "scale": "log"}), "column 'income' has a type"),
        (with_columns(income={"bounds": [1, 9], "missing_values": [-99], "missing": 2}), "column 'income' has a type"),
        (with_columns(income={"kind": "integer", "bounds": [1, 9], "missing": 2}), "column 'income' has a type"),
        (with_columns(income={"categories": [1, 9]}), "column 'income' has a type"),
        (with_columns(income={"bounds": [0, 1e200], "missing": 2}), "column 'income' has a type"),
        (with_columns(born={"kind": "date", "bounds": ["1900-01-01", "2030-01-01"]}), "column 'born' has a type"),
        (with_columns(city={"kind": "text", "n_features": 8}), "column 'city' has a type"),
        (with_columns(age={"bounds": [0, 100], "scale": "bins:400"}), "more than 200 features"),
    ],
)
def test_rows_are_read(changes, said, url, tmp_path):
    wanted = document(url, **changes)
    wanted["data"] = {key: value for key, value in wanted["data"].items() if value is not None}
    assert said in reason_to_read(priced(wanted, tmp_path))


def test_rows_stay_and_the_check_says_so(url, tmp_path):
    for label in ({}, NUMBERS, with_columns(age={"kind": "integer", "bounds": [0, 9]})["data"]):
        one = priced(document(url, **({"label": label} if label is NUMBERS else {"data": label})), tmp_path)
        assert reason_to_read(one) is None
    notes = check_study(parse_study(document(url)), base_folder=tmp_path)["notes"]
    assert "the database adds up the rows that train and dpselect reads the rows that validate" in notes
    alone = document(url, validation={"data": "none"})
    del alone["validation"]["fraction"]
    assert rows_note(priced(alone, tmp_path)) == "the database adds up the rows that train"
    read = rows_note(priced(document(url, learner={"map": "bins"}), tmp_path))
    assert read == "dpselect reads all rows: learner.map is set"
    assert rows_note(priced(document(url, learner={"name": "dp-sgd"}), tmp_path)) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_may_differ_from_one_statement_to_the_next_are_read(engine, tmp_path):
    """A row of a view with random() could be in several parts, and move the sums of each statement by its norm."""
    with database(engine, tmp_path, []) as url:
        module = sqlite3 if engine == "sqlite" else pytest.importorskip(DRIVERS[engine])
        with closing(module.connect(url if engine == "postgresql" else url.partition(":///")[2])) as base:
            base.execute("CREATE VIEW odd AS SELECT * FROM people")
            base.commit()
            wanted = document(url)
            wanted["data"]["table"] = "odd"
        assert reason_to_read(priced(document(url), tmp_path)) is None
        assert "data.table is a view" in reason_to_read(priced(wanted, tmp_path))


def test_computed_columns_of_duckdb_may_differ_too(tmp_path):
    columns = ("BIGINT", "DOUBLE", "DOUBLE GENERATED ALWAYS AS (random())", "VARCHAR", "DOUBLE", "VARCHAR")
    with database("duckdb", tmp_path, [], columns) as url:
        assert "computed columns" in reason_to_read(priced(document(url), tmp_path))
