"""A released model for other programs: it answers as the model does, wherever it is loaded."""

import json
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import dpselect
from dpselect.cli import main
from dpselect.errors import ArgumentError, MissingExtraError, StudyError
from dpselect.randomness import keyed_source
from dpselect.study import export_model, parse_study, run_study
from dpselect.study.export import ExportedModel
from dpselect.study.learners import LEARNERS
from dpselect.study.to_onnx.columns import input_of
from dpselect.testing import learner_contract
from dpselect.testing.learner_contract import narrow, unpriced

FRESH = """
import json, sys, joblib
table = json.loads(sys.argv[2])
model = joblib.load(sys.argv[1])
print(json.dumps([model.predict(table).tolist(), model.predict_proba(table).tolist()]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release of a table with columns in no order."""
    place, table = tmp_path_factory.mktemp("export"), narrow()
    np.savez(
        place / "rows.npz", **{name: np.array(cells, dtype=object).astype(str) for name, cells in table.cells.items()}
    )
    study = {
        "data": {
            "source": "rows.npz",
            "label": "label",
            "classes": list(table.classes),
            "columns": {name: dict(facts) for name, facts in table.columns.items()},
        },
        "privacy": {"noise_multiplier": 1.0, "delta": 1e-5, "nominal_rows": 90},
        "learner": {"name": "dp-sgd", "sampling_rate": 0.5, "steps": 12},
        "space": {"row_norm": {"law": "log_uniform", "low": 0.5, "high": 8.0}},
        "repetitions": {"law": "fixed", "count": 1},
        "runs": {"executor": "inline"},
        "output": {"folder": "out"},
    }
    with pytest.MonkeyPatch.context() as patch, unpriced():
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        run_study(parse_study(study), base_folder=place, folder=place / "out", random=keyed_source(3))
    export_model(place / "out" / "model.npz", place / "model.joblib")
    return place


@pytest.mark.full
def test_it_answers_as_the_released_model_in_a_fresh_process(folder):
    features = narrow().features
    model = dpselect.load_model(folder / "out" / "model.npz")
    expected = [model.predict(features).tolist(), model.predict_proba(features).tolist()]
    for names in (sorted(features), sorted(features, reverse=True)):
        table = json.dumps({"further": [0] * 90, **{name: features[name] for name in names}})
        command = [sys.executable, "-c", FRESH, str(folder / "model.joblib"), table]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout) == expected


def test_scikit_learn_takes_it_for_a_fitted_classifier(folder):
    pandas = pytest.importorskip("pandas")
    exported = joblib.load(folder / "model.joblib")
    check_is_fitted(exported)
    assert is_classifier(exported)
    assert exported.classes_.tolist() == list(narrow().classes)
    assert exported.feature_names_in_.tolist() == list(dpselect.load_model(folder / "out" / "model.npz").columns)
    frame = pandas.DataFrame(narrow().features)
    answers = exported.predict(frame)
    assert exported.score(frame, answers) == 1.0
    pipeline = make_pipeline(FunctionTransformer(), exported)
    assert pipeline.predict(frame).tolist() == answers.tolist()
    for copy in (pickle.loads(pickle.dumps(exported)), clone(exported)):
        assert copy.predict(frame).tolist() == answers.tolist()
    assert len(pickle.dumps(exported)) < 2000 + len(exported.content)
    assert "ReleasedModel" in repr(exported)


def test_it_is_not_trained_again(folder):
    with pytest.raises(ArgumentError, match="not trained again"):
        joblib.load(folder / "model.joblib").fit([[1]], [1])


def test_what_is_no_model_or_has_another_ending_is_refused(folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "other.npz").write_bytes(b"x")
    with pytest.raises(StudyError, match="is not a released model"):
        export_model(tmp_path / "other.npz", tmp_path / "model.joblib")
    for arguments, said in (
        (["none.npz", "--to", "x.joblib"], "cannot be read"),
        ([str(folder / "out" / "model.npz"), "--to", "model.pkl"], "must end in .onnx or .joblib"),
        ([str(folder / "out" / "model.npz"), "--to", str(tmp_path / "no" / "x.joblib")], "cannot be written"),
    ):
        monkeypatch.setattr(sys, "argv", ["dpselect", "export", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "model.joblib").exists()
    with pytest.raises(StudyError, match="is not a released model"):
        ExportedModel(b"x").predict([[1]])


def test_a_regression_is_exported_too(tmp_path, monkeypatch):
    """Every learner of a number: the same answers to the bit after a copy, and a regressor to scikit-learn."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for learner in LEARNERS:
        if LEARNERS[learner].regressor is None or LEARNERS[learner].code:
            continue
        folder = tmp_path / learner
        folder.mkdir()
        learner_contract._study(learner_contract.numeric(), learner, folder)
        export_model(folder / "model.npz", folder / "model.joblib")
        exported, released = joblib.load(folder / "model.joblib"), dpselect.load_model(folder / "model.npz")
        rows = learner_contract.numeric().features
        answers = released.predict(rows)
        assert np.array_equal(exported.predict(rows), answers)
        assert np.array_equal(pickle.loads(pickle.dumps(exported)).predict(rows), answers)
        assert is_regressor(exported)
        assert not hasattr(exported, "classes_")
        assert exported.score(rows, answers) == 1.0
        with pytest.raises(ArgumentError, match="not trained again"):
            exported.fit(rows, answers)
        with pytest.raises((ArgumentError, AttributeError)):
            exported.predict_proba(rows)


def test_a_file_of_onnx_has_the_labels_of_the_model(folder, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    export_model(folder / "out" / "model.npz", tmp_path / "model.onnx")
    model, cells = dpselect.load_model(folder / "out" / "model.npz"), narrow().features
    tables = {}
    for name, column in model.columns.items():
        tables.setdefault(input_of(column), []).append(cells[name])
    given = {name: np.array(each, dtype=float if name == "numbers" else object).T for name, each in tables.items()}
    (found,) = runtime.InferenceSession(tmp_path / "model.onnx").run(["label"], given)
    assert found.tolist() == model.predict(cells).tolist()


def test_without_the_package_onnx_nothing_is_written(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"dpselect\[onnx\]"):
        export_model(folder / "out" / "model.npz", tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
