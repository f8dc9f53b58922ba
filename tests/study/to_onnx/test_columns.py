"""Columns in operators make the features that `predict` makes, of odd cells too."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.study.columns.column import Column
from dpselect.study.columns.scale import SCALES, Scale
from dpselect.study.data import encode_columns
from dpselect.study.to_onnx.columns import REFUSES, input_of, refuse_other_columns, table_features
from dpselect.study.to_onnx.graph import Graph, Tensor
from tests.study.to_onnx.exported_cases import LOGS, PLAIN, run, stored, table, tensors


def features(columns, cells):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    graph = Graph()
    found = table_features(graph, columns)
    graph.outputs.append(Tensor(found, "float64", ("rows", "width")))
    return run(graph.to_bytes("", {}), tensors(columns, cells))[found]


def test_features_are_equal_to_the_bit():
    cells = table(PLAIN, 2000)
    assert np.array_equal(features(PLAIN, cells), encode_columns(stored(PLAIN, cells), PLAIN))


@pytest.mark.parametrize("name", PLAIN)
def test_each_column_alone(name):
    columns = {name: PLAIN[name]}
    cells = table(columns, 300, seed=5)
    assert np.array_equal(features(columns, cells), encode_columns(stored(columns, cells), columns))


def test_logarithms_are_equal_to_the_last_bits_and_at_the_bounds():
    cells = table(LOGS, 2000)
    found, expected = features(LOGS, cells), encode_columns(cells, LOGS)
    assert np.allclose(found, expected, rtol=0, atol=1e-15)
    bounds = np.random.default_rng(6).uniform([0, 1], [1, 99], (30, 2))
    columns = {str(i): Column(bounds=(low, high), scale="log") for i, (low, high) in enumerate(bounds)}
    ends = features(columns, {str(i): pair for i, pair in enumerate(bounds)})
    assert ends.tolist() == [[-1.0] * 30, [1.0] * 30]


@pytest.mark.parametrize("bounds", [(1e-9, 2e-9), (-1e-12, 0.0), (0.0, 1e300), (-1.7e308, 1.7e308)])
def test_bounds_of_any_size(bounds):
    columns = {"x": Column(bounds=bounds, missing=bounds[0])}
    cells = {"x": np.array([*np.linspace(bounds[0] / 2, bounds[1] / 2, 9), *bounds, np.nan])}
    assert np.array_equal(features(columns, cells), encode_columns(cells, columns))


def test_a_missing_number_without_a_declared_meaning_fails_as_in_predict():
    columns = {"x": Column(bounds=(0, 1)), "y": Column(kind="integer", bounds=(0, 1))}
    cells = {"x": np.array([0.5, 0.5]), "y": np.array([1.0, np.nan])}
    with pytest.raises(ContentError, match="missing"):
        encode_columns(cells, columns)
    with pytest.raises(Exception, match=REFUSES):
        features(columns, cells)


@pytest.mark.parametrize(
    ("column", "taken"),
    [
        (Column(bounds=(0, 1)), "numbers"),
        (Column(categories=(1, 2.5, "3", False, "")), "numbers"),
        (Column(categories=("a", 1)), "categories"),
        (Column(categories=(2**60 + 1, 1)), "categories"),  # no float64
    ],
)
def test_categories_that_are_numbers_come_as_numbers(column, taken):
    assert input_of(column) == taken


def test_text_is_refused_by_name():
    with pytest.raises(ArgumentError, match="column 'essay' holds text"):
        refuse_other_columns({"x": Column(bounds=(0, 1)), "essay": Column(kind="text")})


def test_a_scale_of_one_s_own_is_refused(monkeypatch):
    monkeypatch.setitem(SCALES._things, "squares", Scale(lambda values, low, high, size: values[:, None]))
    with pytest.raises(ArgumentError, match="column 'x' has a kind or a scale"):
        refuse_other_columns({"x": Column(bounds=(0, 1), scale="squares")})
