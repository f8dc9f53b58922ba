"""Names, orders and spellings in a study's source: columns are never mixed up, in training, scoring or a resume."""

import json

import numpy as np
import pytest

import dpselect
import dpselect.study.load
import dpselect.study.write
from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.randomness import keyed_source
from dpselect.study import parse_study, run_study
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table
from dpselect.testing.learner_contract import unpriced
from tests.study.schema_cases import STUDY, changed


@pytest.fixture(autouse=True)
def quickly(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with unpriced():
        yield


def data(**changes):
    return Data.model_validate({"source": "d.csv", "label": "y", "classes": (0, 1), "bounds": (0, 1), **changes})


def opened(tmp_path, text, **changes):
    (tmp_path / "d.csv").write_text(text, encoding="utf-8")
    return load(data(**changes), open_table("d.csv", tmp_path))


@pytest.mark.parametrize("header", ["a,b,a,y", "a,b,y,y", "a, a ,b,y", ",b,,y"])
def test_two_columns_of_one_name_are_refused(tmp_path, header):
    with pytest.raises(StudyError, match="more than one column"):
        opened(tmp_path, f"{header}\n0,1,0,1\n1,0,1,0\n")


def test_two_columns_of_one_name_are_refused_in_parquet_and_npz(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table([[0.0], [1.0], [0]], names=["a", "a", "y"]), tmp_path / "d.parquet")
    np.savez(tmp_path / "d.npz", X=np.zeros((2, 2)), x1=np.zeros(2), y=np.zeros(2))
    for name in ("d.parquet", "d.npz"):
        with pytest.raises(ArgumentError, match="more than one column"):
            open_table(name, tmp_path).check(["a" if "parquet" in name else "x1"])


def test_a_feature_may_have_the_name_of_the_label_in_another_case(tmp_path):
    rows = opened(tmp_path, "Y,y,a\n0.25,1,0.5\n0.75,0,1\n")
    assert rows.features.tolist() == [[-0.5, 0.0], [0.5, 1.0]]
    assert rows.labels.tolist() == [1, 0]


def test_quoted_headers_are_read_like_quoted_cells(tmp_path):
    rows = opened(tmp_path, '"größe, ""cm""", "b, c",y\n0.25, "0.5",1\n0.75,1,0\n')
    assert rows.features.tolist() == [[-0.5, 0.0], [0.5, 1.0]]
    assert open_table("d.csv", tmp_path).columns == ('größe, "cm"', "b, c", "y")


@pytest.mark.parametrize("options", [[1, 1.0], [1, "1"], ["1.0", "1"], [True, 1], [True, "true"], ["a", " a "]])
def test_categories_and_classes_that_are_the_same_are_refused(options):
    with pytest.raises(ValueError, match="categories must differ"):
        Column(categories=options)
    with pytest.raises(ValueError, match="classes must differ"):
        data(classes=options)


def test_no_category_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        Column(categories=[])


@pytest.mark.parametrize("declared", [[True, False], ["True", "False"], [1, 0], ["true", "false"]])
@pytest.mark.parametrize("written", [("True", "False"), ("true", "false"), ("1", "0"), ("1.0", "0.0")])
def test_booleans_in_a_csv(tmp_path, declared, written):
    yes, no = written
    rows = opened(tmp_path, f"a,y\n{yes},1\n{no},0\n", bounds=None, columns={"a": {"categories": declared}})
    assert rows.features.tolist() == [[1, 0], [0, 1]]
    assert opened(tmp_path, f"a,y\n0,{yes}\n1,{no}\n", classes=declared).labels.tolist() == [0, 1]


def test_booleans_and_missing_categories_in_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"a": [True, False, True], "c": pandas.Categorical(["x", None, "z"]), "y": [True, False, True]}
    )
    frame.to_parquet(tmp_path / "d.parquet")
    facts = data(
        source="d.parquet", bounds=None, columns={"a": {"categories": [True]}, "c": {"categories": ["x", "z"]}}
    )
    rows = load(facts, open_table("d.parquet", tmp_path))
    assert rows.features.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert rows.labels.tolist() == [1, 0, 1]


def test_columns_of_other_shapes_are_refused_by_name(tmp_path):
    for name, wrong in (("a", np.zeros(3)), ("a", np.zeros((2, 2))), ("y", np.array(1)), ("y", np.zeros((2, 2)))):
        np.savez(tmp_path / "d.npz", **{"a": np.zeros(2), "y": np.array([0, 1]), name: wrong})
        with pytest.raises((ContentError, StudyError), match=r"does not have one cell for each row|one dimension"):
            load(data(source="d.npz"), open_table("d.npz", tmp_path))


def rows_with(order, tmp_path, name, count=60):
    values = np.random.default_rng(0).random((count, 3))
    cells = {"c": values[:, 0], "a": values[:, 1], "b": values[:, 2], "target": (values[:, 0] > 0.5).astype(int)}
    lines = [",".join(order)] + [",".join(str(cells[n][i]) for n in order) for i in range(count)]
    (tmp_path / name).write_text("\n".join(lines) + "\n")


def study_of(**changes):
    document = changed("data", {"source": "d.csv", "classes": [0, 1], "bounds": [0, 1]})
    return parse_study({**document, "runs": {"executor": "inline"}, **changes})


def run(study, tmp_path, folder="out", **options):
    return run_study(study, base_folder=tmp_path, folder=tmp_path / folder, random=keyed_source(1), **options)


@pytest.mark.full
def test_public_validation_rows_may_have_their_columns_in_another_order(tmp_path):
    """Scored in the order of their own file, the runs' scores would be those of other columns."""
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv", count=300)
    learner = {"name": "dp-sgd", "sampling_rate": 0.5, "steps": 60}
    found = []
    for order in (["c", "a", "b", "target"], ["target", "b", "c", "a"]):
        rows_with(order, tmp_path, "public.csv", count=300)
        validation = {"data": "public", "source": "public.csv", "release_score": True}
        found.append(run(study_of(validation=validation, learner=learner), tmp_path, folder=order[0]).release)
    assert found[0] == found[1]
    assert found[0]["score"] > 0.8


def test_public_validation_rows_without_a_column_are_refused_before_anything_is_read(tmp_path, monkeypatch):
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv")
    rows_with(["c", "b", "target"], tmp_path, "public.csv")
    monkeypatch.setattr(dpselect.study.load, "load", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(StudyError, match=r"validation.source 'public.csv': no such column: 'a'"):
        run(study_of(validation={"data": "public", "source": "public.csv"}), tmp_path)


def interrupted(study, tmp_path, monkeypatch, name):
    """A search that ends where `name` is to be written."""
    original = dpselect.study.write.write_atomically

    def stop(path, content):
        if path.name == name:
            raise KeyboardInterrupt
        original(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(dpselect.study.write, "write_atomically", stop)
        with pytest.raises(KeyboardInterrupt):
            run(study, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", ["model.npz", "facts.json", "release.json"])
def test_a_search_that_ends_between_its_files_resumes_to_the_same_model(tmp_path, monkeypatch, name):
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv")
    whole = run(study_of(), tmp_path, folder="whole").release
    interrupted(study_of(), tmp_path, monkeypatch, name)
    assert (tmp_path / "out" / "model.npz").exists() == (name != "model.npz")
    assert run(study_of(), tmp_path, resume=True).release == whole
    assert (tmp_path / "out" / "model.npz").read_bytes() == (tmp_path / "whole" / "model.npz").read_bytes()
    assert list(dpselect.load_model(tmp_path / "out" / "model.npz").columns) == ["c", "a", "b"]


def test_a_source_whose_columns_moved_is_refused_on_resume(tmp_path, monkeypatch):
    """Models of before would be released with the columns of after."""
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv")
    interrupted(study_of(), tmp_path, monkeypatch, "model.npz")
    rows_with(["a", "b", "c", "target"], tmp_path, "d.csv")
    with pytest.raises(StudyError, match="the study has changed"):
        run(study_of(), tmp_path, resume=True)
    rows_with(["target", "c", "a", "b"], tmp_path, "d.csv")
    assert run(study_of(), tmp_path, resume=True).release["found"]


def test_a_space_in_another_order_is_refused_on_resume(tmp_path, monkeypatch):
    """Parameters are drawn one after another: the winner's would be drawn again as others."""
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv")
    law = {"law": "log_uniform", "low": 0.1, "high": 1.0}
    interrupted(study_of(space={"learning_rate": law, "row_norm": law}), tmp_path, monkeypatch, "model.npz")
    with pytest.raises(StudyError, match="the study has changed"):
        run(study_of(space={"row_norm": law, "learning_rate": law}), tmp_path, resume=True)


def test_an_early_stopping_that_no_file_can_hold_is_an_unknown_key(tmp_path):
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv")
    with pytest.raises(StudyError, match=r"learner.early_stopping: unknown key"):
        run(study_of(learner={**STUDY["learner"], "early_stopping": "yes"}), tmp_path)


def test_what_is_written_and_read_keeps_its_order(tmp_path):
    rows_with(["c", "a", "b", "target"], tmp_path, "d.csv")
    law = {"law": "log_uniform", "low": 0.1, "high": 1.0}
    run(study_of(space={"row_norm": law, "learning_rate": law}), tmp_path)
    release = json.loads((tmp_path / "out" / "release.json").read_text())
    assert list(release["parameters"]) == ["row_norm", "learning_rate"]
