"""The public maps of rows in operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array
from dpselect.preprocessing import MAPS
from dpselect.study.to_onnx.graph import Graph, Value
from dpselect.study.to_onnx.rows import clipped, encoded, log1p, truncated, unit_rows, waves

__all__ = ["map_writer"]

_DIRECTION: Final = 2.0**-1000
_LARGEST: Final = float(np.finfo(np.float64).max)


def map_writer(made: Any) -> Callable[[Graph, Value, int], Value]:
    """The function that adds this map of rows to a graph. Raises `ArgumentError` for a map without operators."""
    found = next((name for name in _WRITERS if type(made) is MAPS[name]), None)
    if found is None:
        raise ArgumentError(
            f"--to: the map {type(made).__name__} has no ONNX operators. Export to a .joblib file, or train with "
            f"another map: {', '.join(_WRITERS)}"
        )
    return lambda graph, rows, width: _WRITERS[found](graph, rows, width, made)


def _centered(graph: Graph, rows: Value, width: int, made: Any) -> Value:
    return _within(graph, graph.beside(encoded(graph, rows, width, made).parts), made, width)


def _logarithms(graph: Graph, rows: Value, width: int, made: Any) -> Value:
    return _within(graph, graph.beside(encoded(graph, rows, width, made, _by_logarithm).parts), made, width)


def _by_logarithm(graph: Graph, values: Value, low: Array, high: Array) -> Value:
    with np.errstate(over="ignore"):
        longest = np.minimum(high - low, _LARGEST)
    above = graph.add("Min", graph.add("Sub", values, low), longest)
    share = graph.add("Div", log1p(graph, above), np.log1p(longest))
    # the upper bound becomes 1 exactly, which another logarithm may miss
    share = graph.add("Where", graph.add("GreaterOrEqual", above, longest), 1.0, share)
    return clipped(graph, graph.add("Sub", graph.add("Mul", share, 2.0), 1.0), -1.0, 1.0)


def _within(graph: Graph, parts: Value, made: Any, width: int) -> Value:
    """All divided by the root of the number of columns."""
    numbers, _ = made._places(width)
    root = math.sqrt(len(numbers) + len(made.indicators))
    return unit_rows(graph, graph.add("Div", parts, root), 1.0, intercept=0.0)


def _direction(graph: Graph, rows: Value, width: int, made: Any) -> Value:
    return unit_rows(graph, graph.beside(encoded(graph, rows, width, made).parts), _DIRECTION, intercept=0.0)


def _standardized(graph: Graph, rows: Value, width: int, made: Any) -> Value:  # noqa: ARG001
    values = clipped(graph, rows, -_LARGEST, _LARGEST)
    largest = graph.add("ReduceMax", graph.add("Abs", values), axes=[1], keepdims=1)
    divisor = graph.add("Where", graph.add("Greater", largest, 0.0), largest, 1.0)
    shape = truncated(graph, graph.add("Div", values, divisor))
    mean = graph.add("Div", graph.add("ReduceSum", shape, np.array([1]), keepdims=1), float(width))
    return unit_rows(graph, graph.add("Sub", shape, mean), _DIRECTION, intercept=0.0)


def _bins(graph: Graph, rows: Value, width: int, made: Any) -> Value:
    row, bins, parts = encoded(graph, rows, width, made), int(made.bins), []
    if row.numbers is not None:
        scaled = graph.add("Mul", graph.add("Add", row.numbers, 1.0), bins / 2.0)
        place = graph.add("Min", graph.add("Floor", scaled), bins - 1.0)
        here = graph.add("Equal", graph.reshaped(place, -1, row.count, 1), np.arange(bins, dtype=np.float64))
        parts.append(graph.reshaped(graph.cast(here, "float64"), -1, row.count * bins))
    parts += [] if row.indicators is None else [row.indicators]
    return _within(graph, graph.beside(parts), made, width)


def _cosines(graph: Graph, rows: Value, width: int, made: Any) -> Value:
    return waves(graph, encoded(graph, rows, width, made), int(made.waves))


def _joint(graph: Graph, rows: Value, width: int, made: Any) -> Value:
    row = encoded(graph, rows, width, made)
    straight = unit_rows(graph, graph.beside(row.parts), _DIRECTION, intercept=0.0)
    both = graph.beside([straight, waves(graph, row, int(made.waves))])
    return unit_rows(graph, graph.add("Div", both, math.sqrt(2.0)), 1.0, intercept=0.0)


_WRITERS: Final[dict[str, Callable[[Graph, Value, int, Any], Value]]] = {
    "centered": _centered,
    "log": _logarithms,
    "direction": _direction,
    "standardized": _standardized,
    "bins": _bins,
    "cos4": _cosines,
    "joint": _joint,
}
