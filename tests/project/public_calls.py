"""A valid call of every public function, class and method, taken from the examples in their docstrings.

The first example that calls a name gives its arguments; the examples before it are run first. What has no such example
has one in `tests/project/public_samples.py`, so that a new public name with an example is tried without more ado.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from unittest import mock

ROOMS = (
    "accounting",
    "adaptive",
    "audit",
    "holdout",
    "integrations.optuna",
    "integrations.sklearn",
    "learners",
    "ledger",
    "mechanisms",
    "ordered",
    "ordered.interior_points",
    "ordered.slices",
    "preprocessing",
    "privacy",
    "randomness",
    "repetitions",
    "report",
    "selection",
    "study",
    "tuning",
)


@dataclass(frozen=True)
class Public:
    """A public callable, as "room.name" or "room.Class.method"."""

    name: str
    value: Any = field(repr=False, compare=False)
    docs: tuple[str, ...] = field(repr=False, compare=False)
    owners: tuple[Any, ...] = field(repr=False, compare=False)

    @property
    def short(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    @property
    def is_method(self) -> bool:
        room = max((room for room in ROOMS if self.name.startswith(f"{room}.")), key=len)
        return "." in self.name.removeprefix(f"{room}.")


def public() -> Iterator[Public]:
    """All that stand in `__all__` of a room, and the public methods of the classes among them."""
    for room in ROOMS:
        try:
            module = importlib.import_module(f"dpselect.{room}")
        except ImportError:  # an extra that is not installed
            continue
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or getattr(value, "__module__", "typing") in ("typing", "collections.abc"):
                continue
            whole = inspect.getdoc(value) or ""
            yield Public(f"{room}.{name}", value, (whole,), (value,))
            if inspect.isclass(value):
                yield from _methods(f"{room}.{name}", value, whole)


def _shown(value: type) -> bool:
    """Whether a room shows this class itself, with its methods."""
    rooms = (importlib.import_module(".".join(value.__module__.split(".")[:end])) for end in (2, 3))
    return any(hasattr(room, "__path__") and value.__name__ in getattr(room, "__all__", ()) for room in rooms)


def _methods(name: str, value: type, whole: str) -> Iterator[Public]:
    members = {}
    for owner in reversed(value.__mro__):
        if owner is value or (owner.__module__.startswith("dpselect.") and not _shown(owner)):
            members.update(vars(owner))
    for short, member in members.items():
        if short.startswith("_") or isinstance(member, property) or inspect.isclass(member):
            continue
        if callable(getattr(value, short)):
            own = inspect.getdoc(getattr(value, short)) or ""
            yield Public(f"{name}.{short}", getattr(value, short), (own, whole), (value,))


class ValidCall:
    """How to call something: `fresh` gives the callable and its arguments by name, newly made."""

    def __init__(self, fresh: Callable[[], tuple[Callable[..., Any], dict[str, Any]]]) -> None:
        self.fresh = fresh

    @cached_property
    def signature(self) -> inspect.Signature:
        """Of the callable; a method's without `self`."""
        return inspect.signature(self.fresh()[0])

    def call(self, **changed: Any) -> Any:
        """Call it with some arguments changed."""
        function, arguments = self.fresh()
        arguments.update(changed)
        return apply(function, self.signature, arguments)


def apply(function: Callable[..., Any], signature: inspect.Signature, arguments: dict[str, Any]) -> Any:
    """Call with arguments by name, regardless of their kinds."""
    bound = inspect.BoundArguments(signature, {})  # type: ignore[arg-type]
    for name, parameter in signature.parameters.items():
        if name in arguments:
            bound.arguments[name] = arguments[name]
        elif parameter.kind is parameter.VAR_POSITIONAL:
            bound.arguments[name] = ()
        elif parameter.kind is parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: arguments[key] for key in arguments.keys() - signature.parameters.keys()}
    for name, parameter in signature.parameters.items():
        if (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            and name not in bound.arguments
            and parameter.default is not parameter.empty
        ):
            bound.arguments[name] = parameter.default
    return function(*bound.args, **bound.kwargs)


def from_examples(public: Public) -> ValidCall | None:
    """The first call of it in its docstrings' examples."""
    for text in public.docs:
        setup: list[str] = []
        for example in doctest.DocTestParser().get_examples(text):
            call = _call_of(public, example.source)
            if call is not None:
                return _valid(public, tuple(setup), call)
            setup.append(example.source)
    return None


def from_calls(public: Public) -> ValidCall | None:
    """The first call of an instance of this class in the class's examples: how a mechanism is run on data."""
    examples = doctest.DocTestParser().get_examples(public.docs[0])

    def fresh() -> tuple[Callable[..., Any], dict[str, Any]]:
        taken: list[tuple[Callable[..., Any], dict[str, Any]]] = []
        space, run = dict(_everything()), public.value.__call__

        def spy(self: Any, *args: Any, **options: Any) -> Any:
            taken.append((run.__get__(self), {"data": args, **options}))
            return run(self, *args, **options)

        with mock.patch.object(public.value, "__call__", spy), contextlib.redirect_stdout(io.StringIO()):
            for example in examples:
                exec(compile(example.source, "<example>", "single"), space)
                if taken:
                    break
        return taken[0]

    try:
        fresh()
    except IndexError:
        return None
    return ValidCall(fresh)


def from_source(source: str, public: Public) -> ValidCall:
    """From a sample: lines of Python, the last of which calls it."""
    *setup, last = source.strip().splitlines()
    call = _call_of(public, last)
    assert call is not None, public.name
    return _valid(public, ("\n".join(setup),), call)


def _call_of(public: Public, source: str) -> ast.Call | None:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id == public.short and not public.is_method:
                return node
            if isinstance(function, ast.Attribute) and function.attr == public.short and public.is_method:
                return node
    return None


def _valid(public: Public, setup: tuple[str, ...], call: ast.Call) -> ValidCall:
    target = compile(ast.Expression(call.func), "<example>", "eval")
    arguments = compile(
        ast.fix_missing_locations(
            ast.Expression(ast.Call(ast.Name("__take__", ast.Load()), [*call.args], call.keywords))
        ),
        "<example>",
        "eval",
    )

    def prepare() -> dict[str, Any]:
        space = dict(_everything())  # everything public is at hand, and of two of one name the one of this room
        space.update({one.__name__: one for one in public.owners})
        with contextlib.redirect_stdout(io.StringIO()):
            for part in setup:
                exec(part, space)
        return space

    def take(*args: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, options

    def fresh() -> tuple[Callable[..., Any], dict[str, Any]]:
        space = prepare()
        space["__take__"] = take
        function = eval(target, space)
        args, options = eval(arguments, space)
        bound = inspect.signature(function).bind(*args, **options)
        given = dict(bound.arguments)
        for name, parameter in bound.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given.update(given.pop(name, {}))
        return function, given

    return ValidCall(fresh)


_SPACE: dict[str, Any] = {}


def _everything() -> dict[str, Any]:
    if not _SPACE:
        import math
        from fractions import Fraction
        from pathlib import Path

        import numpy as np

        _SPACE.update(np=np, math=math, Path=Path, Fraction=Fraction)
        for room in ROOMS:
            with contextlib.suppress(ImportError):
                module = importlib.import_module(f"dpselect.{room}")
                for name in module.__all__:
                    _SPACE.setdefault(name, getattr(module, name))
    return _SPACE
