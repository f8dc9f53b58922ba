"""Graphs of operators: what runtimes leave out, the file's bytes, and an environment without the package onnx."""

import sys

import numpy as np
import pytest

from dpselect.errors import MissingExtraError
from dpselect.study.to_onnx.graph import Graph, Tensor
from tests.study.to_onnx.exported_cases import image

ROWS = np.random.default_rng(1).uniform(-1e-9, 1e-9, (50, 1))


@pytest.mark.parametrize(
    ("operator", "number", "expected"),
    [
        ("Mul", 1 - 2**-40, ROWS * (1 - 2**-40)),
        ("Div", 1 + 2**-40, ROWS / (1 + 2**-40)),
        ("Add", 1e-9, ROWS + 1e-9),
        ("Sub", 1e-12, ROWS - 1e-12),
        ("Mul", 1.0, ROWS),
        ("Add", 0.0, ROWS),
    ],
)
def test_operators_that_change_little_are_not_left_out(operator, number, expected):
    """ONNX Runtime takes 1 - 2**-40 for 1: without `_kept` the rows come back as they were."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    found = image(lambda graph, rows: graph.add(operator, rows, number), ROWS)
    assert np.array_equal(found, expected)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"dpselect\[onnx\]"):
        Graph().to_bytes("", {})


def test_equal_graphs_have_equal_bytes_and_keep_their_facts():
    onnx = pytest.importorskip("onnx")

    def content():
        graph = Graph(inputs=[Tensor("rows", "float64", ("count", 2), "two columns")])
        graph.add("Abs", graph.columns("rows", [1, 0]), into="found")
        graph.outputs.append(Tensor("found", "float64", ("count", 2)))
        return graph.to_bytes("a model", {"b": "1", "a": "2"})

    assert content() == content()
    model = onnx.load_from_string(content())
    assert model.doc_string == "a model"
    assert {each.key: each.value for each in model.metadata_props} == {"a": "2", "b": "1"}
    assert model.graph.input[0].doc_string == "two columns"
