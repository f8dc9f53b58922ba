"""What code of the caller raises inside of a public function: nothing that depends on data leaves undocumented.

Every public parameter that takes a function, by its annotation or by the call in its documentation, stands in one list
of `tests/project/callback_kinds.py`; a new one that does not fails here.
"""

from __future__ import annotations

import asyncio
import collections.abc
import dataclasses
import inspect
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpselect.randomness import keyed_source
from tests.project.callback_kinds import CONFINED, ELSEWHERE, PASSES, PUBLIC, ROOMS_OF_FUNCTIONS
from tests.project.test_public_contract import DEAR, NAMES, TRIED, makes_nothing, valid

SECRET = "a cell of someone"
KINDS = [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
ALL_KINDS = [RuntimeError, StopIteration, RecursionError, MemoryError, *KINDS]


def takes_code(hint: Any) -> bool:
    """Whether a function, or something that holds functions, is meant."""
    if hint is collections.abc.Callable or typing.get_origin(hint) is collections.abc.Callable:
        return True
    if inspect.isclass(hint) and getattr(hint, "_is_protocol", False):
        return "__call__" in vars(hint)
    return any(map(takes_code, typing.get_args(hint)))


def holds_code(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(holds_code, value))
    if isinstance(value, dict):
        return any(map(holds_code, value.values()))
    return callable(value) and not inspect.isclass(value)


def parameters_with_code() -> Iterator[str]:
    for name, one in NAMES.items():
        if makes_nothing(one.value) or name.startswith(ROOMS_OF_FUNCTIONS):
            continue
        if typing.is_typeddict(one.value):
            continue
        made = one.value.__init__ if inspect.isclass(one.value) else one.value
        try:
            hints = typing.get_type_hints(made)
        except NameError:  # a type that is imported for type checkers only
            hints = {}
        given = valid(name).fresh()[1] if name in TRIED and name not in DEAR else {}  # type: ignore[union-attr]
        for parameter in inspect.signature(one.value).parameters.values():
            written = "Callable[" in str(parameter.annotation)
            if written or takes_code(hints.get(parameter.name)) or holds_code(given.get(parameter.name)):
                yield f"{name}:{parameter.name}"


@pytest.mark.full
def test_every_parameter_that_takes_code_stands_in_one_list() -> None:
    lists = [CONFINED, PASSES, PUBLIC, set(ELSEWHERE)]
    listed = set().union(*lists)
    missing = sorted(set(parameters_with_code()) - listed)
    assert not missing, "put it into one list of tests/project/callback_kinds.py"
    assert sum(map(len, lists)) == len(listed)
    gone = [
        one
        for one in listed
        for name, _, parameter in [one.rpartition(":")]
        if name not in NAMES or parameter not in inspect.signature(NAMES[name].value).parameters
    ]
    assert not gone


def with_code(value: Any, code: Callable[..., Any]) -> Any:
    """The argument with this code in place of its own."""
    if isinstance(value, tuple) and value and callable(value[-1]):  # (distance, answer)
        return (*value[:-1], code)
    if isinstance(value, tuple):  # (candidate, threshold)
        return (code, *value[1:])
    if isinstance(value, list):
        return [with_code(one, code) for one in value]
    return dataclasses.replace(value, run=code) if hasattr(value, "run") else code


def called(where: str, kind: type[BaseException], **changed: Any) -> list[BaseException]:
    """Call it with code that fails, until it was called: what it raised. Raises what gets out."""
    name, _, parameter = where.rpartition(":")
    made, raised = valid(name), []  # type: ignore[var-annotated]
    assert made is not None

    def failing(*_: Any, **__: Any) -> Any:
        print(SECRET)
        warnings.warn(SECRET, stacklevel=1)
        raised.append(kind(SECRET))
        raise raised[-1]

    for attempt in range(50):  # some of them may draw no run
        given = made.fresh()[1].get(parameter)
        run = made.call(**{parameter: with_code(given, failing), **changed})
        if name.endswith(".prepared"):
            run(keyed_source("odd code").spawn(str(attempt)))
        if raised:
            break
    return raised


def each(names: set[str]) -> Any:
    return pytest.mark.parametrize(
        "where",
        [
            pytest.param(one, marks=[pytest.mark.slow] if one.rpartition(":")[0] in DEAR else [])
            for one in sorted(names)
        ],
    )


@each(CONFINED)
def test_nothing_leaves_a_private_run(where: str, capfd: Any) -> None:
    for kind in KINDS[1:3] if where.rpartition(":")[0] in DEAR else ALL_KINDS:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if kind is KeyboardInterrupt:  # the operator's
                with pytest.raises(KeyboardInterrupt):
                    called(where, kind)
            else:
                assert called(where, kind)
        printed = capfd.readouterr()
        assert SECRET not in printed.out + printed.err
        assert not [one for one in told if SECRET in str(one.message)]


class Purse:
    """A spender that shows what became of a reservation."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def reserve(self, guarantee: Any, *, label: str, identifier: str) -> None:
        self.done.append("reserved")

    def settle(self, identifier: str, *, cell: Any = None) -> None:
        self.done.append("settled")


MORE = {"ordered.interior_points.maximize_quasi_concave:score": {"lower": 0, "upper": 9}}


@each(PASSES)
def test_what_passes_through_is_documented_and_paid_for(where: str) -> None:
    name = where.rpartition(":")[0]
    said = " ".join((inspect.getdoc(NAMES[name].value) or "").split())
    assert "passes through and may tell of the data" in said or "the exception passes through" in said
    for kind in KINDS:
        purse, taken = Purse(), inspect.signature(NAMES[name].value).parameters
        spender = {"spender": purse} if "spender" in taken else {}
        with warnings.catch_warnings(action="ignore"), pytest.raises(kind) as caught:
            called(where, kind, **MORE.get(where, {}), **spender)
        assert str(caught.value) == SECRET
        assert purse.done == ["reserved"] * len(spender)


@each(PUBLIC - {"accounting.plan:base", "learners.EarlyStopping.guarantee:steps"})
def test_what_sees_nothing_private_may_say_what_it_likes(where: str) -> None:
    for kind in KINDS:
        with warnings.catch_warnings(action="ignore"), pytest.raises(kind, match=SECRET):
            called(where, kind)
