"""Public test rows: the model that was written is loaded and tried on them, for nothing."""

import json
import tomllib

import numpy as np
import pytest
from sklearn import datasets
from typer.testing import CliRunner

import dpselect
import dpselect.study
import dpselect.study.refit
import dpselect.study.search
from dpselect.cli.app import app
from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.randomness import keyed_source
from dpselect.report.page import render_page
from dpselect.study import check_study, load_study, parse_study, run_study
from dpselect.study.render import Constant, PublicTest
from dpselect.study.target import Target
from dpselect.tables.table import open_table
from dpselect.testing.learner_contract import unpriced
from tests.cli.test_app import toml
from tests.docs.test_examples import EXAMPLES, load
from tests.report.pages import FACTS, RELEASE
from tests.study.columns.test_column import rows_with, run, study_of


@pytest.fixture(autouse=True)
def quickly(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with unpriced():
        yield


ORDER = ["c", "a", "b", "target"]


def test_the_accuracy_is_that_of_the_model_in_the_file(tmp_path):
    rows_with(ORDER, tmp_path, "d.csv")
    rows_with(["target", "b", "a", "c"], tmp_path, "test.csv")
    release = run(study_of(test={"source": "test.csv"}), tmp_path).release
    model = dpselect.load_model(tmp_path / "out" / "model.npz")
    table = open_table("test.csv", tmp_path)
    cells = table.read(table.columns)
    right = model.predict(cells) == cells["target"].astype(int)
    metrics = release["test"]["metrics"]
    constant = release["test"]["constant"]
    assert release["test"] == {
        "source": "test.csv", "rows": 60, "accuracy": np.mean(right), "metrics": metrics, "constant": constant
    }  # fmt: skip
    labels = cells["target"].astype(int)
    assert constant["answer"] == np.argmax(np.bincount(labels))
    assert constant["metrics"]["accuracy"] == np.mean(labels == constant["answer"])
    assert list(constant["metrics"]) == list(metrics)
    assert metrics["accuracy"] == np.mean(right)
    assert list(metrics) == ["accuracy", "auc", "balanced-accuracy", "log-loss"]
    assert json.loads((tmp_path / "out" / "release.json").read_text())["test"] == release["test"]


@pytest.mark.full
def test_a_model_that_was_scrambled_on_its_way_to_the_file_shows(tmp_path, monkeypatch):
    """The accuracy is that of what was written, not of what was trained."""
    rows_with(ORDER, tmp_path, "d.csv", count=400)
    study = study_of(test={"source": "d.csv"}, learner={"name": "dp-sgd", "sampling_rate": 0.5, "steps": 60})
    whole = run(study, tmp_path, folder="whole").release["test"]["accuracy"]
    original = dpselect.study.refit.model_bytes

    def reversed_weights(recipe, *, weights, **rest):
        return original(recipe, weights=[-w for w in weights], **rest)

    monkeypatch.setattr(dpselect.study.refit, "model_bytes", reversed_weights)
    scrambled = run(study, tmp_path).release["test"]["accuracy"]
    assert whole > 0.8
    assert scrambled < 0.2


@pytest.mark.full
def test_test_rows_take_no_part_in_the_search(tmp_path):
    rows_with(ORDER, tmp_path, "d.csv")
    rows_with(ORDER, tmp_path, "test.csv", count=9)
    plain, tested = run(study_of(), tmp_path, "plain"), run(study_of(test={"source": "test.csv"}), tmp_path, "tested")
    assert plain.release["test"] is None
    assert plain.release == {**tested.release, "test": None}
    models = [(found.folder / "model.npz").read_bytes() for found in (plain, tested)]
    assert models[0] == models[1]


def test_nothing_found_has_no_accuracy(tmp_path, monkeypatch):
    rows_with(ORDER, tmp_path, "d.csv")
    monkeypatch.setattr("dpselect.study.split.StudyObjective.__call__", lambda *_: 1 / 0)
    release = run(study_of(test={"source": "d.csv"}), tmp_path).release
    assert (release["found"], release["test"]) == (False, None)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("c,a,target\n1,1,0\n", StudyError, r"test.source 'test.csv': no such column: 'b'"),
        ("c,a,b\n1,1,0\n", StudyError, r"test.source 'test.csv': no such column: 'target'"),
        (None, StudyError, r"cannot read test.source"),
        ("c,a,b,target\n1,x,1,0\n1,1,1,1\n", ContentError, "'a' has a cell that is missing or no number"),
    ],
)
def test_test_rows_that_cannot_be_read_are_found_before_anything_is_drawn(tmp_path, monkeypatch, text, error, said):
    rows_with(ORDER, tmp_path, "d.csv")
    if text is not None:
        (tmp_path / "test.csv").write_text(text)
    monkeypatch.setattr(dpselect.study.search, "tune", lambda *_, **__: pytest.fail("the search began"))
    with pytest.raises(error, match=said):
        run(study_of(test={"source": "test.csv"}), tmp_path)
    if error is StudyError:
        with pytest.raises(error, match=said):
            check_study(study_of(test={"source": "test.csv"}), base_folder=tmp_path, folder=tmp_path / "other")


@pytest.mark.full
def test_the_command_prints_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows_with(ORDER, tmp_path, "d.csv")
    study = study_of(test={"source": "d.csv"}, validation={"release_score": True})
    document = study.model_dump(mode="json", exclude_defaults=True)
    original = dpselect.study.run_study
    monkeypatch.setattr(dpselect.study, "run_study", lambda *a, **k: original(*a, **k, random=keyed_source(1)))
    (tmp_path / "toy.toml").write_text(toml(document))
    said = CliRunner().invoke(app, ["tune", "toy.toml", "--quiet"])
    assert said.exit_code == 0, said.output
    release = json.loads((tmp_path / "out" / "release.json").read_text())
    accuracy = release["test"]["accuracy"]
    assert f"accuracy on private rows, with noise: {release['validation']['value']:.4g}; between" in said.stdout
    assert f"accuracy of the loaded model on 60 public test rows: {accuracy:.3f}" in said.stdout
    as_json = CliRunner().invoke(app, ["tune", "toy.toml", "--quiet", "--json", "--output", "other"])
    assert json.loads(as_json.stdout)["test"]["accuracy"] == accuracy


@pytest.mark.full
def test_the_report_shows_it_beside_one_answer_for_all_rows():
    page = render_page({**RELEASE, "validation": None}, FACTS)
    assert "accuracy on public test rows</dt><dd>0.7<" in page
    assert "constant prediction</dt><dd>0.61<" in page
    assert "public test rows" not in render_page({**RELEASE, "test": None}, FACTS)


@pytest.mark.parametrize("target", [Target(("no", "yes", "late")), Target(bounds=(0.0, 10.0))])
def test_one_answer_is_the_commonest_class_or_the_mean(target):
    random = np.random.default_rng(3)
    labels = random.integers(-1, 3, 400) if target.classes else random.uniform(0.0, 10.0, 400)
    best = Constant.best(target, labels)
    rows = PublicTest("rows", {}, labels, target)
    found = rows._metrics(best, labels)
    if target.classes:
        known = labels[labels >= 0]
        assert best.place == np.argmax(np.bincount(known))
        assert found["accuracy"] == np.mean(labels == best.place) < np.mean(known == best.place)
        assert found["balanced-accuracy"] == pytest.approx(1 / 3)
    else:
        assert best.answer == pytest.approx(np.mean(labels))
        assert found["r2"] == pytest.approx(0.0, abs=1e-3)
        assert found["absolute-error"] == pytest.approx(np.mean(np.abs(labels - labels.mean())), abs=1e-3)


def cells_of(source):
    table = open_table(source, EXAMPLES)
    return table.read(table.columns)


def test_bundled_sets_have_two_parts():
    X, y = datasets.load_digits(return_X_y=True)
    parts = {part: cells_of(f"sklearn:digits{part}") for part in ("", "/train", "/test")}
    assert [len(cells["target"]) for cells in parts.values()] == [1797, 1437, 360]
    assert np.array_equal(parts["/test"]["target"], y[::5])
    assert np.array_equal(parts["/test"]["pixel_3_4"], X[::5, 28])
    assert np.array_equal(np.delete(y, np.s_[::5]), parts["/train"]["target"])
    with pytest.raises(ArgumentError, match=r"/train or /test, got 'dev'"):
        open_table("sklearn:digits/dev", EXAMPLES)


@pytest.mark.parametrize("name", ["digits", "breast_cancer", "iris", "wine", "diabetes"])
def test_names_of_bundled_sets_are_those_of_scikit_learn(name):
    """They are known without it, so that a check need not load it."""
    bunch = getattr(datasets, f"load_{name}")()
    table = open_table(f"sklearn:{name}", EXAMPLES)
    assert table.columns == (*bunch.feature_names, "target")
    cells = table.read(table.columns)
    assert np.array_equal(np.column_stack([cells[n] for n in bunch.feature_names]), bunch.data)


@pytest.mark.full
@pytest.mark.parametrize("name", ["digits", "breast_cancer", "tumours"])
def test_the_examples_hold_test_rows_out_of_the_search(name):
    study = load_study(EXAMPLES / f"{name}.toml")
    found = check_study(study, base_folder=EXAMPLES, folder=EXAMPLES / "nowhere")
    assert found["feature_columns"] == {"digits": 64, "breast_cancer": 12, "tumours": 30}[name]
    train, test = (cells_of(source) for source in (study.data.source, study.test.source))
    rows = [set(zip(*(map(str, cells) for cells in part.values()), strict=True)) for part in (train, test)]
    assert not rows[0] & rows[1]


def test_the_tables_of_the_example_are_what_its_script_makes(tmp_path):
    load("tumours").main(tmp_path)
    for name in ("tumours.csv", "tumours-test.csv"):
        assert (tmp_path / name).read_text() == (EXAMPLES / name).read_text()


@pytest.mark.full
@pytest.mark.parametrize(("name", "least"), [("digits", 0.75), ("tumours", 0.8)])
def test_the_model_of_an_example_is_good_as_loaded(tmp_path, name, least):
    """Of a search from a key with a made-up noise: whether the way to the file keeps what was learned."""
    study = tomllib.loads((EXAMPLES / f"{name}.toml").read_text(encoding="utf-8"))
    quick = parse_study({**study, "repetitions": {"law": "fixed", "count": 3}, "runs": {"executor": "inline"}})
    release = run_study(quick, base_folder=EXAMPLES, folder=tmp_path / "out", random=keyed_source(2)).release
    assert release["test"]["accuracy"] > least
