"""A graph of ONNX operators under construction, as plain values. Only `to_bytes` needs the package onnx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import missing_extra

__all__ = ["Graph", "Tensor"]

Value = str
"""The name of a tensor in a graph."""
_OPSET: Final = 17
_ML_OPSET: Final = 3
_IR: Final = 8
"""Of 2022: ONNX Runtime 1.12 and later read these versions."""
_TYPES: Final = {"int64": np.int64, "float64": np.float64, "uint8": np.uint8, "bool": np.bool_}
_NEUTRAL: Final = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}
"""ONNX Runtime leaves these operators out if their second number is about this one, as 1 - 2**-40 is about 1."""


@dataclass(frozen=True)
class Tensor:
    """An input or an output: its type ("float64", "int64", "bool" or "string"), its shape, and what it holds."""

    name: str
    kind: str
    shape: tuple[int | str, ...]
    about: str = ""


@dataclass
class Graph:
    """Operators in the order of their use. The methods add one and return the name of its result."""

    names: count[int] = field(default_factory=count)
    nodes: list[tuple[str, tuple[Value, ...], Value, Mapping[str, Any], str]] = field(default_factory=list)
    constants: dict[Value, NDArray[Any]] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def inner(self) -> Graph:
        """An empty graph for the body of a loop. Its names differ from all names here, which it may use."""
        return Graph(self.names)

    def constant(self, value: Any) -> Value:
        """A constant array: float64, int64, uint8, Boolean, or of texts."""
        name = f"constant_{next(self.names)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, operator: str, *inputs: Value | float | NDArray[Any], into: Value = "", **attributes: Any) -> Value:
        """Add an operator. Numbers and arrays among the inputs become constants. `into` names its result."""
        domain = attributes.pop("domain", "")
        if operator in _NEUTRAL and not isinstance(inputs[1], str) and _nearly(inputs[1], _NEUTRAL[operator]):
            return self._kept(operator, inputs[0], np.asarray(inputs[1], dtype=np.float64))
        result = into or f"{operator.lower()}_{next(self.names)}"
        given = tuple(each if isinstance(each, str) else self.constant(each) for each in inputs)
        self.nodes.append((operator, given, result, attributes, domain))
        return result

    def _kept(self, operator: str, value: Any, number: NDArray[Any]) -> Value:
        """The same result, to the bit, by operators that are kept (`_NEUTRAL`)."""
        if operator in ("Add", "Sub"):
            return self.add("Sum", value, number if operator == "Add" else -number)
        halved = self.add(operator, value, number / 2 if operator == "Mul" else number * 2)
        return self.add("Mul", halved, 2.0)

    def cast(self, value: Value, kind: str) -> Value:
        """The tensor as "float64", "int64" or "bool"."""
        return self.add("Cast", value, to=np.dtype(_TYPES[kind]))

    def columns(self, value: Value, places: Sequence[int]) -> Value:
        """These columns of a table, in this order."""
        return self.add("Gather", value, np.array(places, dtype=np.int64), axis=1)

    def beside(self, parts: Sequence[Value]) -> Value:
        """Tables side by side."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def reshaped(self, value: Value, *shape: int) -> Value:
        """The tensor in another shape; -1 for the number of rows."""
        return self.add("Reshape", value, np.array(shape, dtype=np.int64))

    def to_bytes(self, about: str, facts: Mapping[str, str]) -> bytes:
        """The file of the graph. `about` describes the model, and `facts` become its metadata.

        Raises `MissingExtraError` if the package onnx is not installed.
        """
        try:
            import onnx
        except ImportError:
            raise missing_extra("onnx", "writing an ONNX file") from None
        helper = onnx.helper
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        model = helper.make_model(_graph_proto(self, "model"), opset_imports=opsets, ir_version=_IR)
        model.producer_name, model.doc_string = "dpselect", about
        helper.set_model_props(model, dict(facts))
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))


def _nearly(number: Any, neutral: float) -> bool:
    """Whether a single number is near the neutral one, and not equal to it."""
    found = np.asarray(number, dtype=np.float64)
    return found.size == 1 and 0.0 < abs(float(found.item()) - neutral) < 0.1


def _graph_proto(graph: Graph, name: str) -> Any:
    import onnx

    constants = [onnx.numpy_helper.from_array(_stored(each), key) for key, each in graph.constants.items()]
    inputs, outputs = ([_tensor_proto(each) for each in group] for group in (graph.inputs, graph.outputs))
    nodes = [
        onnx.helper.make_node(
            operator, given, [into], name=into, domain=domain, **{key: _attribute(each) for key, each in more.items()}
        )
        for operator, given, into, more, domain in graph.nodes
    ]
    return onnx.helper.make_graph(nodes, name, inputs, outputs, initializer=constants)


def _stored(value: NDArray[Any]) -> NDArray[Any]:
    return value.astype(object) if value.dtype.kind == "U" else value


def _attribute(value: Any) -> Any:
    import onnx

    if isinstance(value, Graph):
        return _graph_proto(value, "body")
    return onnx.helper.np_dtype_to_tensor_dtype(value) if isinstance(value, np.dtype) else value


def _tensor_proto(tensor: Tensor) -> Any:
    import onnx

    kind = onnx.TensorProto.STRING
    if tensor.kind != "string":
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(_TYPES[tensor.kind]))
    return onnx.helper.make_tensor_value_info(tensor.name, kind, tensor.shape, doc_string=tensor.about)
