"""The rows that a study's runs train and score on: what stands for their number is public."""

import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study import parse_study
from dpselect.study.data import Rows
from dpselect.study.load import open_rows
from dpselect.study.price import price
from dpselect.study.split import _cells, _public_rows, split
from dpselect.study.validate import StudyPaths, validate
from dpselect.tables.row_digests import Digests
from tests.study.schema_cases import STUDY

ADD = {"privacy": {"noise_multiplier": 8.0, "delta": 1e-6, "nominal_rows": 120}}  # named, so that none is sought
REPLACE = {
    "privacy": {"epsilon": 3.0, "delta": 0.0, "adjacency": "replace_one"},
    "learner": {"name": "output-perturbation"},
    "space": {"regularization": {"law": "log_uniform", "low": 0.01, "high": 1.0}},
}
PRIVATE = {"fraction": 0.3, "score_epsilon": 0.1}
TRAINING = {"data": "training", "score_epsilon": 0.1}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state):
    monkeypatch.chdir(tmp_path)


def objectives(*sizes, validation, tables=ADD):
    """One run of a search over the first so many rows of a table, for each of the sizes."""
    table = np.random.default_rng(0).uniform(0.0, 8.0, (200, 2))
    lines = [f"{a:.3f},{b:.3f},{number % 3}" for number, (a, b) in enumerate(table)]
    data = {"source": "rows.csv", "label": "kind", "classes": ["0", "1", "2"], "bounds": [0, 8]}
    study = parse_study({**copy.deepcopy(STUDY), "data": data, "validation": validation, **tables})
    priced, found = None, []
    for rows in sizes:
        Path("rows.csv").write_text("\n".join(["a,b,kind", *lines[:rows]]) + "\n")
        priced = priced or price(validate(study, StudyPaths(Path(), Path("out"))))  # without a look at the rows
        found.append(split(open_rows(priced)))
    return found


@pytest.mark.parametrize(("validation", "declared"), [(PRIVATE, 36.0), (TRAINING, 120.0)])
def test_scores_are_of_the_declared_number_of_rows_where_the_number_is_private(validation, declared):
    """Sixty rows more, and a score divides by the same number: else it would tell how many there are."""
    found = objectives(90, 150, validation=validation)
    assert [run.score_rows for run in found] == [pytest.approx(declared)] * 2
    assert len({run.score_rows for run in found}) == 1
    scored = [len(run.validation[1]) for run in found]
    assert scored[0] < scored[1]
    assert declared not in scored


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_score_is_of_one_row_at_least(adjacency):
    study = SimpleNamespace(privacy=SimpleNamespace(adjacency=adjacency, nominal_rows=2))
    assert _public_rows(study, np.empty(0), 0.3) == 1.0


def test_equal_noisy_counts_have_equal_scores_whatever_the_number_of_rows():
    """All that a score may depend on beside public figures is what has noise."""
    few, many = objectives(60, 150, validation=PRIVATE)
    nothing = np.zeros_like(few.metric.cells(Guess(), *few.validation))
    cells = few.metric.noisy(nothing, few.score_noise, keyed_source(1))
    told = [run.metric.score(cells, rows=run.score_rows, noise=run.score_noise) for run in (few, many)]
    assert told[0] == told[1]


class Guess:
    """Predicts the first class."""

    weights_ = ()

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)

    def predict_proba(self, X):
        return np.tile([1.0, 0.0, 0.0], (len(X), 1))


@pytest.mark.parametrize("validation", [PRIVATE, TRAINING])
def test_where_rows_are_replaced_their_number_is_public_and_counts(validation):
    for run in objectives(100, 150, validation=validation, tables=REPLACE):
        assert run.score_rows == len(run.validation[1])


def test_the_rows_of_a_run_are_in_no_representation():
    """What a traceback or a debugger's log shows of a run, or of the rows that it was made of."""
    (run,) = objectives(90, validation=PRIVATE)
    assert "training" not in repr(run)
    assert "array" not in repr(run)
    assert "array" not in repr(run.train)


def test_a_score_of_private_rows_is_that_of_the_noisy_cells():
    (run,) = objectives(90, validation=PRIVATE)
    run = replace(run, train=lambda params, random, rows: (Guess(), ()))
    cells = run.metric.cells(Guess(), *run.validation)
    scores = {run({}, keyed_source(seed)).score for seed in range(8)}
    assert len(scores) > 1
    noisy = run.metric.noisy(cells, run.score_noise, keyed_source(0).spawn("score"))
    expected = run.metric.score(noisy, rows=run.score_rows, noise=run.score_noise)
    assert run({}, keyed_source(0)).score == expected


def test_cells_are_counted_again_under_bounds_that_were_bought():
    column = SimpleNamespace(limits=(0.0, 10.0))
    numbers = {"x": np.array([-1.0, 5.0, 20.0, 30.0, np.nan])}
    rows = Rows(np.zeros((5, 0)), np.zeros(5), Digests(b""), numbers=numbers, cells=np.full((2, 5), 7))
    settled = SimpleNamespace(columns={"name": column, "x": column})
    found = _cells(SimpleNamespace(rows=rows, priced=SimpleNamespace(settled=settled)))
    assert found[0].tolist() == [7] * 5  # no numbers to look at
    assert found[1].tolist() == [1, 1, 2, 7, 7]
    assert rows.cells[1].tolist() == [7] * 5
