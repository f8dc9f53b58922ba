"""A learner, a metric and a source written outside of the package are named by a study file; nothing is edited."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.learners import OutputPerturbationClassifier
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study import check_study, load_model, load_study, parse_study, run_study
from dpselect.study.learners import LEARNERS, StudyLearner
from dpselect.study.metrics import METRICS, RowMetric, ScoreNoise
from dpselect.study.schema_json import study_schema
from dpselect.study.target import Target
from dpselect.tables import SOURCES, Table
from dpselect.testing.learner_contract import unpriced
from tests.cli.test_app import toml


class Halved(OutputPerturbationClassifier):
    """Of whose weights half is released."""

    def fit(self, X, y):
        super().fit(X, y)
        self.weights_ = tuple(weights / 2 for weights in self.weights_)
        return self


def halves(model, X, y):
    """Two steps for a right answer, one for a wrong one: more than a row may add, were it not cut off, for class 2."""
    return np.where(model.predict(X) == y, 2, 1) + 100 * (np.asarray(y) == 2)


def open_made_up(origin):
    name, _, count = origin.source.removeprefix("made-up:").partition("/")
    if name != "corners":
        raise StudyError(f"{origin.key}: made-up:{name} is not one of corners")
    place = np.arange(int(count))

    def chunks(names, numbers):
        columns = {"a": place % 2 * 1.0, "b": place // 2 % 2 * 1.0, "label": place % 2, "row": place}
        for start in range(0, len(place), 7):
            yield {name: columns[name][start : start + 7] for name in names}

    return Table(("a", "b", "label", "row"), chunks)


DOCUMENT = {
    "data": {"source": "made-up:corners/80", "label": "label", "classes": [0, 1], "bounds": [0, 1], "row_key": "row"},
    "privacy": {"epsilon": 8.0, "delta": 1e-5, "nominal_rows": 80},
    "validation": {"metric": "test-halves"},
    "learner": {"name": "test-halved"},
    "space": {"regularization": {"law": "log_uniform", "low": 0.01, "high": 0.1}},
    "repetitions": {"law": "fixed", "count": 2},
    "runs": {"executor": "inline"},
    "output": {"folder": "out"},
}


@pytest.fixture(autouse=True)
def registered():
    """As a file from anywhere registers its own; taken back for the other tests."""
    with ExitStack() as stack:
        for registry in (LEARNERS, METRICS, SOURCES):
            assert list(registry)  # its own files are loaded
            stack.enter_context(patch.dict(registry._things))
        LEARNERS.register("test-halved")(StudyLearner(Halved, "epsilon", inverse=True))
        METRICS.register("test-halves")(lambda target: RowMetric(halves, steps=2))
        SOURCES.register("made-up:")(open_made_up)
        yield


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_study_file_names_all_three(tmp_path):
    (tmp_path / "toy.toml").write_text(toml(DOCUMENT))
    study = load_study(tmp_path / "toy.toml")
    with unpriced():
        assert check_study(study, base_folder=tmp_path, folder=tmp_path / "out")["learner"] == "test-halved"
        release = run_study(study, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(1)).release
    assert release["found"]
    # two of two steps for about 16 of nominally 16 rows; with noise of scale 2 steps
    assert 0.5 < release["score"] < 2.0
    model = load_model(tmp_path / "out" / "model.npz")
    assert isinstance(model.estimator, Halved)
    assert model.predict([[0.0, 0.0], [1.0, 0.0]]).tolist() == [0, 1]


class Centred(OutputPerturbationClassifier):
    """Answers by what a row is beside the others."""

    def predict(self, X):
        return super().predict(np.asarray(X) - np.mean(X, axis=0))


class Remembering(OutputPerturbationClassifier):
    """Answers by what it was asked before."""

    calls = 0

    def predict(self, X):
        self.calls += 1
        return (super().predict(X) + self.calls) % 2


MIXING = {
    "centred": (Centred, halves),
    "remembering": (Remembering, halves),
    "share of all": (Halved, lambda model, X, y: np.full(len(y), 2 * int(np.mean(model.predict(X) == y) > 0.5))),
    "neighbour": (Halved, lambda model, X, y: np.r_[y[:1] == y[-1:], y[1:] == model.predict(X)[:-1]]),
    "alone": (Halved, lambda model, X, y: np.full(len(y), len(y) > 1)),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "centred" else pytest.mark.full) for n in MIXING])
def test_answers_and_scores_that_depend_on_other_rows_are_refused(tmp_path, name):
    """A row of the part that scores could move all other rows' scores; found before anything is charged."""
    learner, rule = MIXING[name]
    LEARNERS._things["test-halved"] = StudyLearner(learner, "epsilon", inverse=True)
    METRICS._things["test-halves"] = lambda target: RowMetric(rule, steps=2)
    with unpriced(), pytest.raises(StudyError, match="depends on the rows beside it"):
        run_study(parse_study(DOCUMENT), base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(1))
    assert not (tmp_path / "out").exists()


def test_their_names_are_in_the_schema_and_in_messages():
    tables = study_schema()["$defs"]
    assert "test-halved" in tables["Learner"]["properties"]["name"]["enum"]
    assert "test-halves" in tables["Validation"]["properties"]["metric"]["enum"]
    for table, wrong, said in (
        (
            "learner",
            {"name": "deep"},
            "learner.name: .*unknown learner 'deep'.*naive-bayes, output-perturbation, ridge, test-halved",
        ),
        (
            "validation",
            {"metric": "f1"},
            "validation.metric: .*unknown metric 'f1'.*absolute-error, accuracy, .*test-halves",
        ),
    ):
        with pytest.raises(StudyError, match=said):
            parse_study({**DOCUMENT, table: wrong})


def test_a_source_that_nobody_opens_names_those_that_are(tmp_path):
    for source in ("rows.nothing", "Made-up:corners/8", "made-upcorners"):
        study = parse_study({**DOCUMENT, "data": {**DOCUMENT["data"], "source": source}})
        with pytest.raises(StudyError, match=r"data.source .*a path ending in \.csv.*made-up:.*sklearn:"):
            check_study(study, base_folder=tmp_path, folder=tmp_path / "out")
    with pytest.raises(ArgumentError, match="exists already"):
        SOURCES.register(".csv")(open_made_up)


def test_one_row_moves_a_total_by_its_steps_at_most():
    """What a metric's function says beyond that is cut off, regardless of the row."""

    class Wrong:
        def predict(self, X):
            return np.zeros(len(X))

    metric = METRICS["test-halves"](Target((0, 1)))
    X, y = np.zeros((3, 1)), np.array([0, 1, 2])
    assert metric.cells(Wrong(), X, y).tolist() == [2 + 1 + 2, 1]
    assert [metric.cells(Wrong(), X[k:], y[k:]).tolist() for k in (1, 2, 3)] == [[3, 1], [2, 0], [0, 0]]
    below = RowMetric(lambda model, X, y: np.full(len(y), -5))
    assert below.cells(None, X, y).tolist() == [0, 3]


@pytest.mark.full
def test_noise_covers_the_steps_of_a_row():
    """The law of the noise is that of a count at epsilon over steps: twice the deviation for two steps."""
    random, noise = keyed_source(5), ScoreNoise(1.0, Adjacency.REPLACE_ONE)
    made = {name: METRICS[name](Target((0, 1))) for name in ("accuracy", "test-halves")}
    empty = {name: metric.lost(np.zeros(0, dtype=np.int64)) for name, metric in made.items()}
    draws = {name: [metric.noisy(empty[name], noise, random)[0] for _ in range(4000)] for name, metric in made.items()}
    spread = {name: np.mean(np.abs(values)) for name, values in draws.items()}
    # E|X| of discrete Laplace is 2q/(1 - q^2), q = exp(-epsilon): 0.851 and 1.919; six standard errors are 0.12, 0.2
    assert spread["accuracy"] == pytest.approx(0.8509, abs=0.12)
    assert spread["test-halves"] == pytest.approx(1.9190, abs=0.2)
