"""Sums by the database: those of the array to the last bit, the same model, the same refusals, one row at a time."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import targets_of, unit_rows
from dpselect.randomness import keyed_source
from dpselect.study import load as loading, parse_study, run_study
from dpselect.study.data import load
from dpselect.study.in_database import rows as summing
from dpselect.study.in_database.reasons import reason_to_read
from dpselect.study.in_database.rows import sum_rows
from tests.study.in_database.cases import CLASSES, COLUMNS, ENGINES, NUMBERS, database, document, priced, rows


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def both(one):
    """The rows as the database adds them up, and as they are read."""
    assert reason_to_read(one) is None
    settled = one.settled
    return sum_rows(one, counted=True), load(settled.study.data, settled.table, settled.columns, counted=True)


def summed(features, labels, target):
    """The sums of rows, by NumPy."""
    z = (unit_rows(features, 1.0, intercept=0.0) / STEP).astype(np.int64)
    if target.bounds is None:
        z, labels, classes = z[labels >= 0], labels[labels >= 0], len(target.classes)
        t = classes * np.eye(classes, dtype=np.int64)[labels] - 1
    else:
        t = (targets_of(labels, len(labels), target.bounds) / STEP).astype(np.int64)[:, None]
    return len(z), z.sum(axis=0), z.T @ z, t.sum(axis=0), z.T @ t


@pytest.mark.parametrize("label", [CLASSES, NUMBERS], ids=["classes", "numbers"])
@pytest.mark.parametrize("engine", ENGINES)
def test_sums_cells_and_held_out_rows_are_those_of_the_array(engine, label, tmp_path):
    with database(engine, tmp_path, rows(60)) as url:
        one = priced(document(url, label), tmp_path)
        found, read = both(one)
    study = one.settled.study
    (features, labels), (held_out, answers) = read.parts(study)
    for sums, wanted in (
        (found.sums, summed(features, labels, study.data.target)),
        (found.held_out_sums, summed(held_out, answers, study.data.target)),
        (found.all[0], summed(read.features, read.labels, study.data.target)),
    ):
        for got, expected in zip((sums.count, sums.totals, sums.gram, sums.targets, sums.moments), wanted, strict=True):
            assert np.array_equal(got, expected)
    assert np.array_equal(found.held_out.features, held_out)
    assert np.array_equal(found.held_out.labels, answers)
    assert np.array_equal(found.cells, read.cells)
    assert len(found) == len(read)


@pytest.mark.parametrize("label", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_sums_of_several_statements_are_those_of_one(label, tmp_path, monkeypatch):
    """PostgreSQL and SQLite have a limit on the results of a statement."""
    with database("sqlite", tmp_path, rows(30)) as url:
        one = priced(document(url, label), tmp_path)
        whole = sum_rows(one, counted=False)
        monkeypatch.setattr(summing, "_EXPRESSIONS", 7)
        parts = sum_rows(one, counted=False)
    assert whole.digest() == parts.digest()


def test_cells_of_sqlite_that_are_not_of_their_columns_type_are_read_alike(tmp_path):
    """A fraction in a column of integers, numbers in text, keys that are not UTF-8, a category that is a blob."""
    table = rows(20)
    table[3:6] = [
        (30, "x", None, b"Oslo", 1.0, "yes"),
        (b"\xff\xfe", 7.5, "4.25", 1, 2, "no"),
        ("k", 8, 1, "Oslo", 1, 1),
    ]
    types = ("TEXT", "INTEGER", "INTEGER", "TEXT", "REAL", "TEXT")
    with database("sqlite", tmp_path, table, types) as url:
        with closing(sqlite3.connect(tmp_path / "d.db")) as base, base:
            base.execute("UPDATE people SET key = CAST(X'ff41' AS TEXT) WHERE age = 8")
        wanted = document(url)
        wanted["data"]["columns"] = {**COLUMNS, "age": {"bounds": [0, 100], "missing": 50}}
        found, read = both(priced(wanted, tmp_path))
    study = parse_study(wanted)
    (features, labels), (held_out, _) = read.parts(study)
    assert np.array_equal(found.sums.gram, summed(features, labels, study.data.target)[2])
    assert np.array_equal(found.held_out.features, held_out)


@pytest.mark.parametrize("engine", ENGINES)
def test_bounds_and_fills_next_to_zero_make_no_engine_fail(engine, tmp_path):
    """PostgreSQL fails for results below the least float64, and only if a row has such a cell."""
    cells = [(None, -0.3), (-1e308, 0.0), (1e-310, 2e-310), (1e308, 5e-324)]
    table = [(key, age, income, "Rome", 1.0, "yes" if key % 2 else "no") for key, (age, income) in enumerate(cells)]
    with database(engine, tmp_path, table) as url:
        for bounds, fill in (([-5e-324, 1], -5e-324), ([0, 1e100], 5e-324), ([-1e-320, 1e100], 0)):
            wanted = document(url)
            wanted["data"]["columns"] = {"age": {"bounds": bounds, "missing": fill}, "income": {"bounds": bounds}}
            found, read = both(priced(wanted, tmp_path))
            assert np.array_equal(
                found.all[0].gram, summed(read.features, read.labels, parse_study(wanted).data.target)[2]
            )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("label", [CLASSES, NUMBERS], ids=["classes", "numbers"])
@pytest.mark.full
def test_the_released_model_is_that_of_the_rows_to_the_bit(engine, label, tmp_path, monkeypatch):
    search = {
        "space": {"floor": {"law": "log_uniform", "low": 0.1, "high": 1.0}},
        "repetitions": {"law": "fixed", "count": 3},
        "search": {"design": "two-stage"},
    }
    with database(engine, tmp_path, rows(600)) as url:
        released = []
        for folder in ("counted", "read"):
            study = parse_study(document(url, label, **search))
            run_study(study, base_folder=tmp_path, folder=tmp_path / folder, random=keyed_source(7))
            released.append([(tmp_path / folder / name).read_bytes() for name in ("model.npz", "release.json")])
            monkeypatch.setattr(loading, "reason_to_read", lambda _: "this test reads them")
    assert released[0] == released[1]


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_one_row_more_changes_the_sums_by_that_row_alone(engine, tmp_path):
    """The claim of the theorem: |z| <= 1 for every row, however odd its cells are."""
    incomes = [float("inf"), float("-inf"), None, 1e-310]
    odd = list(itertools.product([5e-324, -1e308, 1e308, None], incomes, ["Rome", ""]))
    columns = {**COLUMNS, "age": {"bounds": [0, 100], "missing": 50}}

    def sums(table, folder):
        folder.mkdir()
        with database(engine, folder, table) as url:
            wanted = document(url)
            wanted["data"]["columns"] = columns
            return sum_rows(priced(wanted, folder), counted=False).all[0]

    before = sums(rows(12), tmp_path / "before")
    for place, (age, income, city) in enumerate(odd[::3]):
        after = sums([*rows(12), (99, age, income, city, 1.0, "yes")], tmp_path / str(place))
        assert after.count == before.count + 1
        moved, row = after.gram - before.gram, after.totals - before.totals
        assert np.array_equal(moved, np.outer(row, row))
        assert np.trace(moved) <= 2**32


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_what_load_refuses_is_refused_in_the_same_words(engine, tmp_path):
    base = rows(30)
    cases = {
        "empty": ([], CLASSES),
        "lost": ([*base, (99, None, 1.0, "Rome", 1.0, "yes")], CLASSES),
        "class": ([(*row[:5], "yes") for row in base], CLASSES),
        "label": ([*base, (99, 1.0, 1.0, "Rome", None, "yes")], NUMBERS),
        "all": ([(row[0], row[1], None, *row[3:]) for row in base], CLASSES),
    }
    for name, (table, label) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        with database(engine, folder, table) as url:
            one = priced(document(url, label), folder)
            with pytest.raises(ContentError) as summed_up:
                sum_rows(one, counted=True)
            with pytest.raises(ContentError) as read:
                load(one.settled.study.data, one.settled.table, one.settled.columns, counted=True)
        assert str(summed_up.value) == str(read.value)
