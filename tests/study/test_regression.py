"""Studies whose label is a number: from the file to predictions in the units of the label."""

import json
import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app
from dpselect.errors import ContentError, StudyError
from dpselect.randomness import keyed_source
from dpselect.study import check_study, load_study, parse_study, run_study
from dpselect.study.model_file import load_model
from dpselect.study.schema_json import study_schema
from dpselect.testing.learner_contract import unpriced

COLUMNS = {"size": {"bounds": [0, 200]}, "floor": {"categories": ["low", "high"]}, "age": {"bounds": [0, 90]}}
DOCUMENT = {
    "name": "rents",
    "data": {
        "source": "rents.csv",
        "task": "regression",
        "label": "rent",
        "label_bounds": [-500, 3500],
        "columns": COLUMNS,
    },
    "privacy": {"epsilon": 8.0, "delta": 1e-5, "nominal_rows": 300},
    "validation": {"release_score": True},
    "learner": {"name": "ridge"},
    "space": {"floor": {"law": "log_uniform", "low": 0.01, "high": 0.1}},
    "repetitions": {"law": "fixed", "count": 2},
    "runs": {"executor": "inline"},
    "output": {"folder": "out"},
}


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def table(rows=300, seed=1):
    """Rents by size and floor; the label stands in the middle."""
    random = np.random.default_rng(seed)
    size, floor = random.uniform(0, 200, rows), random.choice(["low", "high"], rows)
    rent = 10.0 * size + 500.0 * (floor == "high") - 300.0 + 50.0 * random.normal(size=rows)
    return {"size": size.round(1), "rent": rent.round(2), "floor": floor, "age": random.integers(0, 90, rows)}


def write(path, cells):
    lines = [",".join(cells), *(",".join(map(str, row)) for row in zip(*cells.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


def changed(**tables):
    return {**DOCUMENT, **{name: {**DOCUMENT.get(name, {}), **keys} for name, keys in tables.items()}}


def run(tmp_path, document=DOCUMENT, folder="out", key=1):
    with unpriced():
        return run_study(
            parse_study(document), base_folder=tmp_path, folder=tmp_path / folder, random=keyed_source(key)
        ).release


@pytest.mark.cases(1)
@pytest.mark.parametrize("learner", ["ridge", "dp-sgd"])
def test_a_model_predicts_in_units_of_the_label(tmp_path, learner):
    write(tmp_path / "rents.csv", table())
    write(tmp_path / "test.csv", table(100, seed=2))
    space = {"row_norm": {"law": "uniform", "low": 1.5, "high": 2.0}}
    document = {**changed(learner={"name": learner}, test={"source": "test.csv"}), "space": space}
    release = run(tmp_path, document)
    assert release["task"] == "regression"
    model = dpselect.load_model(tmp_path / "out" / "model.npz")
    assert (model.classes, model.label_bounds) == ((), (-500.0, 3500.0))
    rows = table(100, seed=2)
    off = np.abs(model.predict(rows) - rows["rent"])
    assert np.mean(off) < 250.0 < np.mean(np.abs(rows["rent"] - np.mean(rows["rent"])))
    assert release["test"]["absolute_error"] == pytest.approx(np.mean(off), abs=0.1)
    assert release["test"]["metrics"]["r2"] == pytest.approx(1.0 - np.mean(off**2) / np.var(rows["rent"]), abs=1e-2)
    found = release["validation"]
    assert found["metric"] == "absolute-error"
    assert found["low"] <= found["value"] <= found["high"]
    assert release["score"] <= 0.0


def test_predictions_are_the_same_in_every_container_and_order_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")

    write(tmp_path / "rents.csv", table())
    run(tmp_path)
    model, rows = dpselect.load_model(tmp_path / "out" / "model.npz"), table(20, seed=3)
    expected = model.predict(rows)
    frame = pandas.DataFrame(rows)
    np.testing.assert_array_equal(model.predict(frame[["age", "rent", "floor", "size"]]), expected)
    np.testing.assert_array_equal(model.predict(frame[["size", "floor", "age"]].to_numpy(dtype=object)), expected)
    one_by_one = [model.predict(frame.iloc[[k]])[0] for k in range(20)]
    np.testing.assert_array_equal(one_by_one, expected)  # to the last bit, no matter what stands beside a row
    with pytest.raises(ValueError, match="predicts a number: it has no classes"):
        model.predict_proba(rows)


@pytest.mark.full
def test_every_source_of_labels_gives_the_same_release(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet

    cells = table()
    write(tmp_path / "rents.csv", cells)
    frame = pa.table({name: pa.array(column.tolist()) for name, column in cells.items()})
    pyarrow.parquet.write_table(frame, tmp_path / "rents.parquet")
    np.savez(tmp_path / "rents.npz", **{name: np.array(column.tolist()) for name, column in cells.items()})
    connection = sqlite3.connect(tmp_path / "rents.db")
    connection.execute("CREATE TABLE rents (size REAL, rent REAL, floor TEXT, age INT)")
    rows = zip(*(column.tolist() for column in cells.values()), strict=True)
    connection.executemany("INSERT INTO rents VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    sources = [{"source": f"rents.{end}"} for end in ("csv", "parquet", "npz")]
    sources.append({"source": "sqlite:///rents.db", "table": "rents"})
    releases, models = [], set()
    for place, source in enumerate(sources):
        releases.append({**run(tmp_path, changed(data=source), f"out{place}"), "data": None})  # names its source
        models.add((tmp_path / f"out{place}" / "model.npz").read_bytes())
    assert len(models) == 1
    assert all(release == releases[0] for release in releases)


def test_labels_beyond_their_bounds_are_cut_off(tmp_path):
    cells = table()
    far = {**cells, "rent": np.where(cells["rent"] > 1000.0, 1e300, cells["rent"])}
    cut = {**cells, "rent": np.where(cells["rent"] > 1000.0, 3500.0, cells["rent"])}
    for name, rows in (("far", far), ("cut", cut)):
        write(tmp_path / "rents.csv", rows)
        run(tmp_path, folder=name)
    assert (tmp_path / "far" / "model.npz").read_bytes() == (tmp_path / "cut" / "model.npz").read_bytes()


@pytest.mark.parametrize("cell", ["", "?", "nan", "twelve", "1_0"])
def test_a_label_that_is_missing_or_no_number_is_refused_before_anything_is_charged(tmp_path, cell):
    cells = table()
    cells["rent"] = np.array([cell, *cells["rent"][1:]], dtype=object)
    write(tmp_path / "rents.csv", cells)
    with pytest.raises(ContentError, match="column 'rent' has a label that is missing or no number") as caught:
        run(tmp_path)
    assert not cell or cell not in str(caught.value).replace("missing or no number", "")
    assert "a decimal comma is declared by data.decimal" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.cases(2)
@pytest.mark.parametrize("bounds", [[-1e-9, 1e-9], [-1e300, 1e300], [-2e6, -1e6]])
@pytest.mark.parametrize("learner", ["ridge", "dp-sgd"])
def test_tiny_huge_and_negative_labels(tmp_path, bounds, learner):
    cells = table()
    middle, half = bounds[0] / 2 + bounds[1] / 2, bounds[1] / 2 - bounds[0] / 2
    cells["rent"] = middle + half * (cells["size"] / 100.0 - 1.0)
    write(tmp_path / "rents.csv", cells)
    document = {**changed(data={"label_bounds": bounds}, learner={"name": learner}), "space": {}}
    document["space"] = {"row_norm": {"law": "uniform", "low": 1.5, "high": 2.0}}
    release = run(tmp_path, document)
    found = load_model(tmp_path / "out" / "model.npz").predict(cells)
    assert np.all((found >= bounds[0]) & (found <= bounds[1]))
    assert np.mean(np.abs(found / half - cells["rent"] / half)) < 0.3
    assert json.loads(json.dumps(release["validation"], allow_nan=False)) == release["validation"]


@pytest.mark.full
def test_a_constant_label_and_public_validation(tmp_path):
    cells = table()
    cells["rent"] = np.full(300, 100.0)
    write(tmp_path / "rents.csv", cells)
    for metric in ("absolute-error", "squared-error", "r2"):
        validation = {"metric": metric, "data": "public", "source": "rents.csv"}
        release = run(tmp_path, changed(validation=validation), folder=metric)
        assert release["found"]
        assert release["validation"] is None  # nothing was paid for that could be said


def test_all_that_is_wrong_is_said_at_once():
    document = changed(
        data={"classes": [0, 1], "class_shares": {"0": 0.5}},
        learner={"class_weights": {"0": 2.0}},
        validation={"metric": "auc"},
    )
    del document["data"]["label_bounds"]
    document["privacy"] = {**document["privacy"], "epsilon": -1}
    with pytest.raises(StudyError) as caught:
        parse_study(document)
    lines = [line.strip() for line in str(caught.value).splitlines()[1:]]
    assert 'data.classes: goes with task = "classification"' in lines
    assert 'data.class_shares: goes with task = "classification"' in lines
    assert "data.label_bounds: needed for a regression: the least and the largest label, public" in lines
    assert 'learner.class_weights: goes with task = "classification"' in lines
    assert (
        "validation.metric: auc is not for a regression; there are absolute-error, median-error, r2, squared-error"
        in lines
    )
    assert any(line.startswith("privacy.epsilon: ") for line in lines)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"label_bounds": [3, 3]}, "data.label_bounds: must be two numbers"),
        ({"label_bounds": [0, 1e301]}, "data.label_bounds: must be two numbers"),
        ({"label_bounds": [1]}, "data.label_bounds"),
        ({"label_bounds": ["a", "b"]}, "data.label_bounds"),
        ({"label_bounds": [float("nan"), 1.0]}, "data.label_bounds: must be two numbers"),
        ({"task": "ranking"}, "data.task"),
        ({"task": "classification"}, "(?s)data.label_bounds: goes with.*data.classes: needed"),
        ({"task": "classification", "classes": [0, 1], "class_shares": {"2": 0.1}}, "'2' is none of data.classes"),
        ({"task": "classification", "classes": [0, 1], "class_shares": {"0": 0.6, "1": 0.6}}, "more than 1"),
    ],
)
def test_what_does_not_go_together_is_named(data, said):
    with pytest.raises(StudyError, match=said):
        parse_study(changed(data=data))


def test_what_only_the_check_can_know(tmp_path):
    write(tmp_path / "rents.csv", table())
    for wrong, said in (
        (
            changed(learner={"name": "output-perturbation"}),
            "knows no regression; there are boosted-trees, dp-sgd, least-squares, ridge",
        ),
        (changed(learner={"name": "dp-sgd", "sampling_rate": 0.5}), "learner.sampling_rate: unknown key"),
        (
            changed(validation={"metric": "squared-error"}, data={"label_bounds": [-1e200, 1e200]}),
            "validation.metric: squared-error needs label_bounds",
        ),
    ):
        with pytest.raises(StudyError, match=said):
            check_study(parse_study(wrong), base_folder=tmp_path, folder=tmp_path / "out")


def test_the_schema_knows_the_keys():
    data = study_schema()["$defs"]["Data"]["properties"]
    assert data["task"]["enum"] == ["classification", "regression"]
    assert {"label_bounds", "class_shares"} <= data.keys()
    assert "r2" in study_schema()["$defs"]["Validation"]["properties"]["metric"]["enum"]


def command(*arguments, **options):
    return CliRunner().invoke(app, list(arguments), **options)


def test_from_a_draft_to_predictions(tmp_path):
    """init, a person's answers, tune --check, tune and predict, on a table whose label stands in the middle."""
    write(tmp_path / "rents.csv", table())
    drafted = command("init", "rents.csv", "--label", "rent", "--task", "regression", "--to", "study.toml")
    assert drafted.exit_code == 0, drafted.output
    text = (tmp_path / "study.toml").read_text()
    assert 'task = "regression"' in text
    assert "classes" not in text
    with pytest.raises(StudyError, match=r"data.label_bounds: still to be filled in"):
        load_study(tmp_path / "study.toml")
    blank = '["FILL IN", "FILL IN"]'
    text = text.replace(f"label_bounds = {blank}", "label_bounds = [-500, 3500]")
    text = text.replace(
        f'floor = {{ bounds = {blank}, missing = "indicator" }}', 'floor = { categories = ["low", "high"] }'
    )
    text = text.replace(f"bounds = {blank}", "bounds = [0, 200]").replace('rows = "FILL IN"', "rows = 300")
    (tmp_path / "study.toml").write_text(text.replace("limit = 10", "limit = 2") + '\n[runs]\nexecutor = "inline"\n')
    with unpriced():
        tuned = command("tune", "study.toml", "--quiet")
    assert tuned.exit_code == 0, (tuned.output, tuned.exception)
    release = json.loads((tmp_path / "release" / "release.json").read_text())
    if release["found"]:
        told = command("predict", "release/model.npz", "rents.csv", "--keep", "size")
        header, first = told.stdout.splitlines()[:2]
        assert header == "size,prediction"
        assert -500.0 <= float(first.split(",")[1]) <= 3500.0
        refused = command("predict", "release/model.npz", "rents.csv", "--probabilities")
        assert "--probabilities: this model predicts a number" in str(refused.exception)


def test_init_shows_both_or_asks(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("age,rent\n")
    shown = command("init", "t.csv", "--label", "rent").stdout
    assert 'in place of classes: task = "regression" and label_bounds' in shown
    monkeypatch.setattr("dpselect.cli.init._in_terminal", lambda: True)
    answers = "900\n\n0, 3000\nnumber\n17, 90\n"
    result = command("init", "t.csv", "--label", "rent", "--to", "s.toml", input=answers)
    assert result.exit_code == 0, result.output
    study = load_study(tmp_path / "s.toml")
    assert (study.data.task, study.data.label_bounds, study.metric) == ("regression", (0.0, 3000.0), "absolute-error")
    wrong = command("init", "t.csv", "--label", "rent", "--task", "ranking")
    assert "--task: must be classification or regression" in str(wrong.exception)
