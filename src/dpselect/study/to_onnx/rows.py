"""Rows of features as learners and maps take them: `dpselect.learners` in operators that round alike.

Each function adds to a graph what its model in the docstring computes. All sums and products of matrices are exact
there (`fixed_point`), and each other operator rounds one number correctly, so the results are equal to the last bit.
Sines, cosines, logarithms and tanh are the exceptions: their last bit is the machine's, in NumPy too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpselect.learners.encoding import TableEncoding
from dpselect.learners.fixed_point import STEP
from dpselect.learners.waves import STRETCH
from dpselect.numerics.search import Array
from dpselect.study.to_onnx.graph import Graph, Value

__all__ = ["Fields", "clipped", "encoded", "first_set", "log", "log1p", "truncated", "unit_rows", "waves"]

_SHRUNK: Final = 1.0 - 2.0**-40


@dataclass(frozen=True)
class Fields:
    """The parts of encoded rows (`learners.encoding.Encoded`), None for a part without columns."""

    numbers: Value | None
    indicators: Value | None
    count: int
    groups: tuple[int, ...]

    @property
    def parts(self) -> list[Value]:
        """The parts that there are."""
        return [each for each in (self.numbers, self.indicators) if each is not None]


def clipped(graph: Graph, value: Value, low: Array | float, high: Array | float) -> Value:
    """`np.clip`."""
    return graph.add("Min", graph.add("Max", value, np.asarray(low, float)), np.asarray(high, float))


def truncated(graph: Graph, value: Value) -> Value:
    """`learners.fixed_point.truncate`, of numbers of magnitude below 2**46."""
    whole = graph.cast(graph.add("Mul", value, 1.0 / STEP), "int64")
    return graph.add("Mul", graph.cast(whole, "float64"), STEP)


def log(graph: Graph, values: Value) -> Value:
    """The natural logarithm."""
    return graph.add("Log", values)


def log1p(graph: Graph, values: Value) -> Value:
    """log(1 + x) as Kahan computes it: x log(u) / (u - 1) with u = 1 + x, or x where u is 1."""
    more = graph.add("Add", values, 1.0)
    tiny = graph.add("Equal", more, 1.0)
    divisor = graph.add("Where", tiny, 1.0, graph.add("Sub", more, 1.0))
    found = graph.add("Mul", graph.add("Log", more), graph.add("Div", values, divisor))
    return graph.add("Where", tiny, values, found)


def first_set(graph: Graph, flags: Sequence[Value]) -> Value:
    """The place of the first flag that is set in each row, or their number where none is, shape (rows, 1)."""
    numbers = graph.cast(graph.beside(flags), "float64")
    always = graph.add("Add", graph.add("Mul", graph.columns(numbers, [0]), 0.0), 1.0)
    return graph.add("ArgMax", graph.beside([numbers, always]), axis=1, keepdims=1)


def unit_rows(graph: Graph, rows: Value, row_norm: float, *, intercept: float) -> Value:
    """`learners.rows.unit_rows`, of finite numbers."""
    largest = graph.add("ReduceMax", graph.add("Abs", rows), axes=[1], keepdims=1)
    divisor = graph.add("Where", graph.add("Greater", largest, 0.0), largest, 1.0)
    shape = truncated(graph, graph.add("Div", rows, divisor))
    squares = graph.add("ReduceSum", graph.add("Mul", shape, shape), np.array([1]), keepdims=1)
    longest = graph.add("Div", 1.0, graph.add("Max", graph.add("Sqrt", squares), 1.0))
    scale = graph.add("Mul", graph.add("Min", graph.add("Div", largest, float(row_norm)), longest), _SHRUNK)
    found = truncated(graph, graph.add("Mul", shape, scale))
    if not intercept:
        return found
    constant = math.trunc(float(intercept) / STEP) * STEP
    return graph.beside([found, graph.add("Add", graph.add("Mul", divisor, 0.0), constant)])


def encoded(graph: Graph, rows: Value, width: int, encoding: TableEncoding, scaled: Any = None) -> Fields:
    """`TableEncoding.encoded`, of rows without a missing cell. `scaled` takes the place of `_scaled`."""
    numbers, flags = encoding._places(width)
    values = indicators = None
    if numbers:
        low, high = encoding._limits(len(numbers))
        inside = clipped(graph, graph.columns(rows, numbers), low, high)
        values = (scaled or _scaled)(graph, inside, low, high)
    if flags:
        indicators = clipped(graph, graph.columns(rows, flags), 0.0, 1.0)
    return Fields(values, indicators, len(numbers), tuple(len(group) for group in encoding.indicators))


def _scaled(graph: Graph, values: Value, low: Array, high: Array) -> Value:
    middle, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    return clipped(graph, graph.add("Div", graph.add("Sub", values, middle), half), -1.0, 1.0)


def waves(graph: Graph, row: Fields, number: int) -> Value:
    """`learners.waves.cosines`."""
    weight = 1.0 / math.sqrt(math.fsum(1.0 / (k * k) for k in range(1, number + 1)))
    parts = []
    if row.numbers is not None:
        angle = graph.reshaped(graph.add("Mul", row.numbers, math.pi / 2.0), -1, row.count, 1)
        each = []
        for k in range(1, number + 1):
            wave = graph.add("Sin" if k % 2 else "Cos", graph.add("Mul", angle, float(k)))
            each.append(graph.add("Mul", wave, weight / k))
        stacked = each[0] if len(each) == 1 else graph.add("Concat", *each, axis=2)
        parts.append(graph.reshaped(stacked, -1, row.count * number))
    if row.indicators is not None:
        parts.append(row.indicators)
    columns = row.count + 2 * len(row.groups)
    return unit_rows(graph, graph.add("Mul", graph.beside(parts), STRETCH / math.sqrt(columns)), 1.0, intercept=0.0)
