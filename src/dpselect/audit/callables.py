"""Any function of a data set as a subject: one call, one draw."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.audit.subject import Subject
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee, Release
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.randomness.process import this_process

__all__ = ["collected", "function_subject"]


@dataclass(frozen=True)
class Raised:
    """An output: the call ended in an exception of this type. The message is not looked at."""

    type_name: str

    def __repr__(self) -> str:
        return f"raised {self.type_name}"

    __str__ = __repr__


def function_subject(
    function: Callable[..., Any], *, data: Any, neighbour: Any, claim: Guarantee, name: str | None = None
) -> Subject:
    """A subject that calls `function(data)` or `function(neighbour)` for each draw.

    An output is a number, a text, a row of numbers, or any object, which then counts by its `repr`; of a `Release` its
    value counts. A call that raises has the type of the exception as its output: whether a mechanism fails is part of
    what it tells. If the function has an argument `random`, it is given a `RandomSource`.

    The function must not change its data or keep anything from call to call (the caller must ensure it; data that
    differ after some draws are refused). Raises `ArgumentError` where the function cannot be called with the data
    alone.

    >>> from dpselect.privacy import pure_dp
    >>> counted = function_subject(len, data=[1, 1], neighbour=[1], claim=pure_dp(epsilon=1), name="exact count")
    >>> from dpselect.audit import audit
    >>> audit(counted, draws=1000).violated
    True
    """
    claim = promise("claim", claim)
    label = name or str(getattr(function, "__qualname__", type(function).__name__))
    takes_random = _takes_random(function, data, label)
    before = copy.deepcopy((data, neighbour))

    def draw(on_neighbour: bool, count: int, random: RandomSource) -> NDArray[Any]:
        given = neighbour if on_neighbour else data
        options, process = ({"random": random} if takes_random else {}), this_process()
        drawn = collected([_call(function, given, options, process) for _ in range(count)])
        if not _same(given, before[int(on_neighbour)]):
            raise ArgumentError(f"{label}: the function changes the data that it is given; let it copy them first")
        return drawn

    return Subject(name=label, draw=draw, claim=claim)


def collected(outputs: Sequence[Any]) -> NDArray[Any]:
    """Outputs of single calls as one array, of objects where they are not all alike.

    NumPy would make one kind of whatever it is given: whole numbers beside a fraction become floats, and rows are no
    rows beside a failure. How an output is read may depend on no other (`dpselect.audit.outputs`), so that the kinds
    below are those that NumPy leaves as they are.
    """
    kinds = set(map(type, outputs))
    array: NDArray[Any]
    whole = kinds <= {bool, int}  # together they may still be too large for NumPy's integers
    one_scalar = len(kinds) == 1 and all(issubclass(kind, np.generic) for kind in kinds)
    if whole or one_scalar or kinds in ({float}, {str}):
        array = np.array(outputs)
        if array.dtype.kind in ("biu" if whole else "biufU"):
            return array
    if kinds == {np.ndarray} and len({(row.dtype, row.shape) for row in outputs}) == 1:
        array = np.array([np.ravel(row) for row in outputs])
        if array.shape[1] and array.dtype.kind in "biufc":
            return array
    array = np.empty(len(outputs), dtype=object)
    array[:] = [tuple(output) if isinstance(output, list) else output for output in outputs]
    return array


def _call(function: Callable[..., Any], given: Any, options: dict[str, RandomSource], process: object) -> Any:
    try:
        output = function(given, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Raised(type(error).__name__)
    finally:
        if this_process() is not process:  # a child that the function forked: it would continue the audit
            os._exit(1)
    return output.value if isinstance(output, Release) else output


def _takes_random(function: Callable[..., Any], data: Any, label: str) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some of C's have none
        return False
    takes_random = "random" in signature.parameters
    try:
        signature.bind(data, **({"random": None} if takes_random else {}))
    except TypeError as error:
        raise ArgumentError(f"{label} cannot be called with the data alone: {error}") from None
    return takes_random


def _same(one: Any, other: Any) -> bool:
    try:
        if isinstance(one, np.ndarray):
            return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
        return bool(one == other) or repr(one) == repr(other)  # NaN is not equal to itself
    except (TypeError, ValueError):  # a table, say, that does not compare: the caller must ensure it
        return True
