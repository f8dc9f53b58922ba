"""The file: its metadata, the types of labels, and a process that cannot import dpselect."""

import json
import subprocess
import sys

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.study.columns.column import Column
from dpselect.study.target import Target
from tests.study.to_onnx.exported_cases import PLAIN, made

ELSEWHERE = """
import json, sys
sys.modules["dpselect"] = None
import numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
given = json.loads(sys.stdin.read())
facts = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
inputs = {}
for column in facts:
    inputs.setdefault(column["input"], []).append(given[column["name"]])
types = {"numbers": numpy.float64, "categories": object}
tables = {name: numpy.array(columns, dtype=types[name]).T for name, columns in inputs.items()}
label, probabilities = session.run(["label", "probabilities"], tables)
print(json.dumps([label.tolist(), probabilities.shape]))
"""
SMALL = {"age": Column(bounds=(0, 100), missing="indicator"), "town": Column(categories=("a", "b"))}
CELLS = {"age": np.array([30.0, np.nan, 500.0]), "town": np.array(["a", "z", ""], dtype=object)}


@pytest.fixture(autouse=True)
def _needed():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")


def test_the_metadata_name_each_column_and_its_place():
    import onnx

    found = onnx.load_from_string(made("ridge", rows=50).content)
    facts = {each.key: json.loads(each.value) for each in found.metadata_props}
    assert facts["classes"] == ["no", "yes", "maybe"]
    assert [each["name"] for each in facts["columns"]] == list(PLAIN)
    assert [(each["input"], each["place"]) for each in facts["columns"][:3]] == [
        ("numbers", 0),
        ("categories", 0),
        ("numbers", 1),
    ]
    assert "noise" not in facts


@pytest.mark.parametrize("classes", [("no", "yes"), (3, 1, 2), (0.5, 1.5), (True, False)])
def test_labels_keep_their_type(classes):
    model = made("ridge", SMALL, target=Target(classes), rows=50)
    found, expected = model.run(CELLS)["label"], model.model.predict(CELLS)
    assert found.tolist() == expected.tolist()
    assert [type(each) for each in found.tolist()] == [type(each) for each in expected.tolist()]


@pytest.mark.parametrize("classes", [(1, "a"), (2**70, 1)])
def test_classes_of_several_types_are_refused(classes):
    with pytest.raises(ArgumentError, match="the classes must be of one type"):
        made("ridge", SMALL, target=Target(classes), rows=50)


def test_half_a_character_is_refused():
    """A file of JSON can hold it. Unicode's surrogates come in pairs."""
    columns = {**SMALL, "town": Column(categories=("a", "\ud800"))}
    with pytest.raises(ArgumentError, match="half a character"):
        made("ridge", columns, rows=50)


def test_equal_models_give_equal_files():
    assert made("ridge", SMALL, rows=50).content == made("ridge", SMALL, rows=50).content


@pytest.mark.full
@pytest.mark.parametrize("kind", ["dp-sgd", "boosted-trees"])
def test_it_predicts_where_dpselect_cannot_be_imported(kind, tmp_path):
    model = made(kind, SMALL, rows=200, **({"steps": 5} if kind == "dp-sgd" else {"n_estimators": 5}))
    (tmp_path / "model.onnx").write_bytes(model.content)
    given = json.dumps({name: cells.tolist() for name, cells in CELLS.items()})
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "model.onnx")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [model.model.predict(CELLS).tolist(), [3, 3]]
