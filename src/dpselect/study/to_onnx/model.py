"""A released model as an ONNX file."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.study.model import ReleasedModel, labels_of
from dpselect.study.to_onnx.columns import CATEGORIES, NUMBERS, input_of, refuse_other_columns, table_features
from dpselect.study.to_onnx.graph import Graph, Tensor
from dpselect.study.to_onnx.learners import answers, refuse_other_learners

__all__ = ["onnx_bytes"]

_ABOUT: Final = (
    "A model released under differential privacy. Give each column in the order of the metadata `columns`: numbers as "
    "float64 (NaN is missing; dates are seconds since 1970 in UTC, durations are seconds, booleans are 1 and 0), other "
    'categories as texts ("" is missing).'
)
_KINDS: Final = {"b": "bool", "i": "int64", "f": "float64", "U": "string"}


def onnx_bytes(model: ReleasedModel) -> bytes:
    """The file: inputs `numbers` and `categories`, outputs `label` and `probabilities`, or `prediction`.

    Raises `ArgumentError` for a model that has no operators, which names the column, the map or the learner, and
    `MissingExtraError` if the package onnx is not installed. Equal models give equal bytes.
    """
    refuse_other_columns(model.columns)
    refuse_other_learners(model.estimator)
    labels = _labels(model)
    graph = Graph()
    features = table_features(graph, model.columns)
    width = sum(column.width for column in model.columns.values())
    found = answers(graph, features, width, model.estimator)
    if labels is None:
        graph.add("Reshape", found, np.array([-1]), into="prediction")
        graph.outputs.append(Tensor("prediction", "float64", ("rows",), "the number of each row"))
    else:
        best = graph.add("ArgMax", found, axis=1, keepdims=0)
        graph.add("Gather", labels, best, into="label")
        graph.add("Softmax", found, axis=1, into="probabilities")
        graph.outputs += [
            Tensor("label", _KINDS[labels.dtype.kind], ("rows",), "the class of each row"),
            Tensor("probabilities", "float64", ("rows", len(labels)), "in the order of the metadata `classes`"),
        ]
    try:
        return graph.to_bytes(_ABOUT, _facts(model))
    except UnicodeEncodeError:
        raise ArgumentError("MODEL: a category or a class has half a character, which ONNX cannot hold") from None


def _labels(model: ReleasedModel) -> Any:
    """The classes as an array of one type, None for a regression."""
    if not model.classes:
        return None
    found = labels_of(model.classes)
    if found.dtype.kind not in _KINDS:
        raise ArgumentError(
            "--to: the classes must be of one type (texts, or integers of 64 bits, or float64, or booleans) in ONNX. "
            "Export to a .joblib file"
        )
    return found


def _facts(model: ReleasedModel) -> dict[str, str]:
    """The metadata: public facts, as JSON."""
    places = {NUMBERS: 0, CATEGORIES: 0}
    columns = []
    for name, column in model.columns.items():
        taken = input_of(column)
        facts = column.model_dump(mode="json", exclude_none=True)
        columns.append({"name": name, "input": taken, "place": places[taken], **facts})
        places[taken] += 1
    label = {"classes": list(model.classes)} if model.classes else {"label_bounds": model.label_bounds}
    return {"columns": json.dumps(columns), **{name: json.dumps(each) for name, each in label.items()}}
