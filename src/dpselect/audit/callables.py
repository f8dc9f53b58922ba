"""Any function of a data set as a subject: one call, one draw."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.audit.dissection import Raised
from dpselect.audit.outputs import Exact, as_object_array
from dpselect.audit.subject import Subject
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee, Release
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.randomness.process import this_process

__all__ = ["collected", "function_subject"]


def function_subject(
    function: Callable[..., Any], *, data: Any, neighbour: Any, claim: Guarantee, name: str | None = None
) -> Subject:
    """Return a subject that calls `function(data)` or `function(neighbour)` for each draw.

    An output is a number, a text, a row of numbers, or any object, which then counts by its `repr`. The value of a
    `Release` counts. A call that raises has the type of the exception as its output: whether a mechanism fails is part
    of its output.

    Args:
        function: the mechanism. If it has an argument `random`, it is given a `RandomSource`. You must ensure that it
            does not change its data or keep anything from call to call. Data that differ after some draws are refused.
        data: the argument for the data.
        neighbour: the argument for its neighbour. You must ensure that the two are neighbours under the adjacency of
            `claim`.
        claim: the guarantee that is claimed.
        name: what the subject is called in a report, by default the function's name.

    Raises:
        ArgumentError: if the function cannot be called with the data alone, or, when drawing, changes its data.
        PromiseError: (an `ArgumentError` and a `TypeError`) if `claim` is not a `Guarantee`.

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
        # copies: looks whether the audited function forked
        options, process = ({"random": random} if takes_random else {}), this_process()
        drawn = collected([_call(function, given, options, process) for _ in range(count)])
        if not _same(given, before[int(on_neighbour)]):
            raise ArgumentError(f"{label}: the function changes the data that it is given. Let it copy them first")
        return drawn

    return Subject(name=label, draw=draw, claim=claim)


def collected(outputs: Sequence[Any]) -> NDArray[Any]:
    """Outputs of single calls as one array: of floats, else of objects whose types count (`Exact`).

    NumPy would make one kind of anything that it is given: integers beside a fraction become floats, and rows are no
    rows beside a failure. How an output is read may depend on no other (`dpselect.audit.outputs`), so that only floats,
    which NumPy leaves as they are, become an array of their own kind.
    """
    if set(map(type, outputs)) == {float}:
        return np.array(outputs)
    return as_object_array([output if type(output) is float else Exact(output) for output in outputs])


def _call(function: Callable[..., Any], given: Any, options: dict[str, RandomSource], process: object) -> Any:
    try:
        output = function(given, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Raised(type(error).__name__)
    finally:
        # copies: looks whether the audited function forked
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
    except (TypeError, ValueError):  # a table, say, that does not compare: you must ensure this
        return True
