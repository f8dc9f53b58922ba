"""The private learners in operators: from features to scores of classes, or to the answers of a regression."""

from __future__ import annotations

import copy
import math
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.learners.boosted_trees import WAVES, BoostedTreesClassification, BoostedTreesRegression
from dpselect.learners.clipped_gradients import MOST_ACTIVATION, HiddenLayerNetwork
from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.learners.dp_sgd_regressor import DPSGDRegression
from dpselect.learners.fixed_point import round_weights
from dpselect.learners.least_squares import LeastSquares
from dpselect.learners.naive_bayes import NaiveBayes
from dpselect.learners.output_perturbation import OutputPerturbation
from dpselect.learners.random_trees import unpack_trees
from dpselect.learners.ridge import RidgeClassification, RidgeRegression
from dpselect.numerics.search import Array
from dpselect.study.learners.mapped import MappedLearner
from dpselect.study.to_onnx.graph import Graph, Tensor, Value
from dpselect.study.to_onnx.maps import map_writer
from dpselect.study.to_onnx.rows import Fields, clipped, encoded, first_set, truncated, unit_rows, waves

__all__ = ["answers", "refuse_other_learners"]

_CLASSIFIERS: Final = (DPSGDClassification, NaiveBayes, OutputPerturbation, RidgeClassification)
_REGRESSORS: Final = (DPSGDRegression, RidgeRegression, LeastSquares)
_TREES: Final = (BoostedTreesClassification, BoostedTreesRegression)


def refuse_other_learners(estimator: Any) -> None:
    """Raise `ArgumentError` for a learner or a map without operators, and for weights that are not finite."""
    learner = estimator
    if isinstance(estimator, MappedLearner):
        map_writer(estimator.rows_map)
        learner = estimator.learner
    if type(learner) not in (*_CLASSIFIERS, *_REGRESSORS, *_TREES):
        raise ArgumentError(
            f"--to: the learner {type(learner).__name__} has no ONNX operators. Export to a .joblib file"
        )
    if not all(np.isfinite(each).all() for each in learner.weights_):
        raise ArgumentError("MODEL: has a weight that is not finite, so its predictions mean nothing")


def answers(graph: Graph, features: Value, width: int, estimator: Any) -> Value:
    """The scores of classes, shape (rows, classes), or the answers of a regression, shape (rows, 1).

    `features` has `width` columns without a missing cell, and `estimator` is one that is not refused.
    """
    if isinstance(estimator, MappedLearner):
        own = graph.add("Mul", graph.add("Sub", features, estimator.units.zeros), estimator.units.sizes)
        images = map_writer(estimator.rows_map)(graph, own, width)
        width = estimator.rows_map.fit(np.zeros((0, width)))._n_features_out
        return answers(graph, images, width, estimator.learner)
    if isinstance(estimator, _TREES):
        scores = _trees(graph, features, width, estimator)
        return _in_units(graph, scores, estimator) if isinstance(estimator, BoostedTreesRegression) else scores
    return _linear(graph, features, estimator)


def _linear(graph: Graph, features: Value, learner: Any) -> Value:
    """`_scores` of a classifier, or `predict` of a regression, of rows in the unit ball."""
    rows = unit_rows(graph, features, learner._row_norm, intercept=learner._intercept)
    if isinstance(learner, NaiveBayes):
        rows = graph.add("Relu", rows)
    found = _products(graph, rows, learner.weights_[0])
    if isinstance(learner, _REGRESSORS):
        return _in_units(graph, found, learner)
    if isinstance(learner, OutputPerturbation) and len(learner.classes_) == 2:
        return graph.beside([graph.add("Mul", found, 0.0), found])
    if isinstance(learner, DPSGDClassification) and isinstance(learner._scorer, HiddenLayerNetwork):
        return _output_layer(graph, found, learner._scorer, learner.weights_)
    return found


def _products(graph: Graph, rows: Value, weights: Array) -> Value:
    """`learners.fixed_point.exact_products`."""
    return graph.add("MatMul", rows, round_weights(weights, math.sqrt(len(weights)) + 1.0))


def _output_layer(graph: Graph, reached: Value, network: HiddenLayerNetwork, weights: tuple[Array, ...]) -> Value:
    """The scores of a network with one hidden layer."""
    tanh = network.activation == "tanh"
    active = truncated(graph, graph.add("Tanh", reached) if tanh else clipped(graph, reached, 0.0, MOST_ACTIVATION))
    ones = graph.add("Add", graph.add("Mul", graph.columns(active, [0]), 0.0), 1.0)
    return graph.add("MatMul", graph.beside([active, ones]), network._output_weights(weights))


def _in_units(graph: Graph, place: Value, learner: Any) -> Value:
    """`Regressor._in_units`: answers between the bounds of the label."""
    low, high = learner._bounds
    scaled = graph.add("Mul", clipped(graph, place, -1.0, 1.0), high / 2.0 - low / 2.0)
    return clipped(graph, graph.add("Add", scaled, low / 2.0 + high / 2.0), low, high)


def _trees(graph: Graph, features: Value, width: int, learner: Any) -> Value:
    """The scores of the linear start and of all trees, added in the order of training: sums in another order round."""
    row = encoded(graph, features, width, learner._encoding)
    codes = _codes(graph, row, learner._codes.bins)
    *linear, columns, sides, values = learner.weights_
    if linear:
        start = copy.copy(learner._linear)
        start.weights_ = tuple(linear)
        scores = _linear(graph, waves(graph, row, WAVES), start)
    else:
        zeros = graph.add("Mul", graph.columns(features, [0]), 0.0)
        scores = graph.add("Add", zeros, np.zeros((1, values.shape[2])))
    trees = unpack_trees(columns, sides, learner._codes)
    depth, codes_wide = trees[0].sides.shape
    level = 2 ** np.arange(depth - 1, -1, -1)
    tables = np.stack([(tree.sides * level[:, None]).ravel() for tree in trees]).astype(np.uint8)
    asked = np.stack([tree.columns for tree in trees]).astype(np.int64)

    body = graph.inner()
    for tensor in (
        Tensor("scores_before", "float64", ("rows", values.shape[2])),
        Tensor("asked", "int64", (depth,)),
        Tensor("sides", "uint8", (depth * codes_wide,)),
        Tensor("values", "float64", values.shape[1:]),
    ):
        body.inputs.append(tensor)
    here = body.add("Gather", codes, "asked", axis=1)
    places = body.add("Add", here, np.arange(depth, dtype=np.int64) * codes_wide)
    turns = body.cast(body.add("Gather", "sides", places), "int64")
    leaves = body.add("ReduceSum", turns, np.array([1]), keepdims=0)
    body.add("Add", "scores_before", body.add("Gather", "values", leaves, axis=0), into="scores_after")
    body.outputs.append(Tensor("scores_after", "float64", ("rows", values.shape[2])))
    given = (scores, asked, tables, values)
    return graph.add("Scan", *given, body=body, num_scan_inputs=3)


def _codes(graph: Graph, row: Fields, bins: int) -> Value:
    """`CodedColumns.codes` of rows without a missing number, shape (rows, columns)."""
    parts = []
    if row.numbers is not None:
        scaled = graph.add("Mul", graph.add("Add", row.numbers, 1.0), bins / 2.0)
        parts.append(graph.cast(graph.add("Min", graph.add("Floor", scaled), bins - 1.0), "int64"))
    start = 0
    for size in row.groups:
        assert row.indicators is not None
        flags = graph.columns(row.indicators, range(start, start + size))
        parts.append(first_set(graph, [graph.add("GreaterOrEqual", flags, 0.5)]))
        start += size
    return graph.beside(parts)
