"""Studies and searches of scikit-learn that are copied, or resumed on other rows: one release, fresh noise."""

from __future__ import annotations

import base64
import csv
import hashlib
import shutil
import sqlite3
from contextlib import closing

import pytest

from dpselect.errors import ClaimError
from dpselect.learners import OutputPerturbationClassifier
from dpselect.ledger import Ledger
from dpselect.study import parse_study, run_study
from dpselect.tuning import SearchFinishedError
from dpselect.tuning.machine import Search
from tests.integrations.sklearn.test_search import PURE_STUDY, X, Y, own_state, search
from tests.storage.test_claims import Stopped, copies_at_every_write

__all__ = ["own_state"]

NAMES = ("a", "b", "label")


def write_rows(tmp_path, count):
    rows = [(i % 7, (3 * i) % 8, ("no", "yes")[i % 7 > 3]) for i in range(count)]
    with open(tmp_path / "rows.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([NAMES, *rows])


def study(**tables):
    document = {
        **PURE_STUDY,
        "data": {"source": "rows.csv", "label": "label", "classes": ["no", "yes"], "bounds": [0, 8]},
        "privacy": {"epsilon": 8.0, "nominal_rows": 150, "ledger": "budget.db", "budget": "b"},
        "runs": {"executor": "inline"},
        "output": {"folder": "out", "key_variable": "COPIES_KEY"},
    }
    return parse_study({**document, **tables})


@pytest.fixture
def kept_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put_back():
        monkeypatch.setenv("COPIES_KEY", base64.b64encode(b"k" * 32).decode())

    put_back()
    return put_back


def begun(copy):
    """Whether a folder holds a search; one from before that is another search, with its own charge."""
    if not (copy / "search.sealed").exists():
        return False
    with closing(sqlite3.connect(copy / "search.sealed")) as connection:
        return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0


@pytest.mark.full
@pytest.mark.usefixtures("no_page")
@pytest.mark.parametrize("tables", [{}, {"refit": {}}], ids=["one-stage", "two-stage"])
@pytest.mark.parametrize("named", [True, False])
def test_copies_of_an_output_folder_hold_one_model(tmp_path, monkeypatch, kept_key, tables, named):
    """Made after every write; the search ends, a row is gone, and every copy is resumed."""
    write_rows(tmp_path, 150)
    with Ledger.open(tmp_path / "budget.db", witness=False) as ledger:
        budget = ledger.create_budget("b", epsilon=8)
    if not named:  # a ledger in the folder, which is copied with it
        tables = {**tables, "privacy": {"epsilon": 8.0, "nominal_rows": 150}}
    asked = study(**tables)
    made = copies_at_every_write(tmp_path, monkeypatch, lambda: run_study(asked, base_folder=tmp_path))
    write_rows(tmp_path, 149)
    refused = []
    for copy in filter(begun, made):
        kept_key()
        try:
            run_study(asked, base_folder=tmp_path, folder=copy, resume=True)
        except (ClaimError, SearchFinishedError) as error:
            refused.append(type(error))
    assert ClaimError in refused
    models = {hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob("*/model.npz")}
    assert len(models) == 1
    assert not named or budget.spent().epsilon <= 8


@pytest.mark.full
@pytest.mark.usefixtures("no_page")
def test_a_study_is_resumed_on_other_rows_with_fresh_noise(tmp_path, monkeypatch, kept_key):
    """Nothing is refused for what the rows are; the same rows continue where the search was."""
    with Ledger.open(tmp_path / "budget.db", witness=False) as ledger:
        ledger.create_budget("b", epsilon=8)
    again = []
    real = Search.begin_anew
    monkeypatch.setattr(Search, "begin_anew", lambda *a, **k: again.append(1) or real(*a, **k))

    def run(count, *, resume, killed):
        write_rows(tmp_path, count)
        kept_key()
        with monkeypatch.context() as patch:
            if killed:
                patch.setattr("dpselect.tuning.executors.perform", lambda *_: (_ for _ in ()).throw(Stopped))
                with pytest.raises(Stopped):
                    run_study(study(), base_folder=tmp_path, resume=resume)
            else:
                return run_study(study(), base_folder=tmp_path, resume=resume)
        return None

    run(150, resume=False, killed=True)
    run(150, resume=True, killed=True)
    assert again == []
    run(149, resume=True, killed=True)
    assert again == [1]
    assert run(149, resume=True, killed=False).release["found"]
    assert again == [1]


class Interrupted(OutputPerturbationClassifier):
    times = 0

    def fit(self, X, y):
        if Interrupted.times:
            Interrupted.times -= 1
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.mark.full
@pytest.mark.parametrize("rows", [500, 499])
def test_a_search_of_scikit_learn_is_resumed_on_other_rows_with_fresh_noise(tmp_path, monkeypatch, rows):
    again = []
    real = Search.begin_anew
    monkeypatch.setattr(Search, "begin_anew", lambda *a, **k: again.append(1) or real(*a, **k))
    stored = {"store": tmp_path / "s", "estimator": Interrupted(epsilon=2.0), "rehearse": False}
    Interrupted.times = 1
    with pytest.raises(KeyboardInterrupt):
        search(**stored).fit(X, Y)
    assert search(**stored, resume=True, release=lambda _: None).fit(X[:rows], Y[:rows]).best_estimator_ is not None
    assert again == [1] * (rows < 500)


@pytest.mark.full
def test_a_further_run_of_scikit_learn_is_not_made_again_for_a_copy(tmp_path, monkeypatch):
    """Copied between settling and writing, and resumed on other rows: the very same model."""
    monkeypatch.setenv("COPIES_KEY", base64.b64encode(b"k" * 32).decode())
    written = []

    def release(result):
        written.append([part.tobytes() for part in result.value.weights_])
        if len(written) == 1:
            shutil.copytree(tmp_path / "out", tmp_path / "copy")

    (tmp_path / "out").mkdir()
    stored = {"refit": True, "score_epsilon": 1.0, "rehearse": False, "key_variable": "COPIES_KEY", "release": release}
    search(store=tmp_path / "out" / "s", **stored).fit(X, Y)
    monkeypatch.setenv("COPIES_KEY", base64.b64encode(b"k" * 32).decode())
    search(store=tmp_path / "copy" / "s", resume=True, **stored).fit(X[:400], Y[:400])
    assert written[0] == written[1]
