"""The public names of a package: loaded when they are asked for, and answering calls with wrong arguments.

A call of a public function, class or method with an argument that it does not have raises a `TypeError` that says what
to type. The names of other libraries are known (`foreign_names`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from enum import Enum
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

from lazy_loader import attach_stub

__all__ = ["answer_attributes", "answered", "attach_public", "options_of"]

Made = TypeVar("Made", bound=Callable[..., Any])
_Kind = TypeVar("_Kind")

_PACKAGE: Final = "dpselect"
_ANSWERED: Final = "_dpselect_answered"
_OPTIONS: Final = "_dpselect_options"

_RENAMED: Final = {"dpselect.tuning.Preparation": "SharedRelease"}
"""Public names with other names until 0.2: the old ones still load, with a warning, until the version after next."""


def attach_public(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """As `lazy_loader.attach_stub`, for a package whose names users call: each is `answered` when it is loaded.

    So is what comes along: a budget is made by a ledger, and no one need ask for its class. A name that is public no
    more comes from its module, with a `DeprecationWarning`.
    """
    load, listed, names = attach_stub(package, file)
    exported, inside = set(names), f"{package}."
    seen: set[str] = set()

    def loaded(name: str) -> Any:
        if name not in exported and (present := _RENAMED.get(inside + name)):
            text = f"{inside}{name} has another name, and this one will go: type {inside}{present}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return loaded(present)
        if name not in exported and (former := _module_of(package, Path(file).parent, name)):
            text = f"{package}.{name} is not public any more: import it from {former}, or do without it"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return getattr(import_module(former), name)
        value = answered(load(name))
        setattr(sys.modules[package], name, value)
        for place, module in list(sys.modules.items()):
            if place.startswith(inside) and place not in seen and not _is_loading(module):
                seen.add(place)
                for public in vars(module).keys() & exported:
                    if getattr(vars(module)[public], "__module__", None) == place:
                        answered(vars(module)[public])
        return value

    return loaded, listed, names


def _module_of(package: str, folder: Path, name: str) -> str | None:
    """Return the module in `folder` whose `__all__` has `name`, or its package if `name` is public there.

    Until 0.2 such a name may have been public in `package`.
    """
    if name.startswith("_") or package == _PACKAGE or any(path.stem == name for path in folder.iterdir()):
        return None  # a private name, one that the root never had, or a module, which the import system loads
    for path in sorted(folder.rglob("*.py"), key=lambda path: len(path.parts)):
        if f'"{name}"' in path.read_text(encoding="utf-8").partition("__all__ = [")[2].partition("]")[0]:
            stub = path.parent / "__init__.pyi"
            again = path.parent != folder and stub.exists() and f" as {name}" in stub.read_text(encoding="utf-8")
            where = path.parent if again else path.with_suffix("")
            return ".".join((package, *where.relative_to(folder).parts))
    return None


def options_of(*others: Callable[..., Any]) -> Callable[[Made], Made]:
    """Marks a function whose `**options` are the arguments of these callables."""

    def marked(function: Made) -> Made:
        setattr(function, _OPTIONS, others)
        return function

    return marked


def answered(thing: Any) -> Any:
    """The same thing, which says of an argument that it does not have what to type instead.

    A function is replaced in its module too, so that it stays the one that its name stands for (pickles look there). A
    class stays the same object: constructors and public methods are replaced where they are defined.
    """
    if isinstance(thing, type):
        if not issubclass(thing, (BaseException, Enum)) and not getattr(thing, "_is_protocol", False):
            for owner in thing.__mro__:
                if owner.__module__.partition(".")[0] == _PACKAGE:
                    for name, member in list(vars(owner).items()):
                        if name == "__init__" or not name.startswith("_"):
                            _answer_in_class(owner, name, member)
        answer_attributes(thing)
    elif isinstance(thing, FunctionType) and not hasattr(thing, _ANSWERED):
        name = thing.__name__
        made = _answering(thing, lambda _: name)
        module = vars(sys.modules[thing.__module__])
        if module.get(name) is thing:
            module[name] = made
        return made
    return thing


def answer_attributes(kind: type[_Kind]) -> type[_Kind]:
    """Let objects of a class say what to type for an attribute that they lack, unless they say so themselves.

    Public classes do. A class that is no public name, but whose objects are returned, has this as its decorator.
    """
    if kind.__module__.partition(".")[0] != _PACKAGE or issubclass(kind, (BaseException, Enum)):
        return kind
    if getattr(kind, "_is_protocol", False) or any("__getattr__" in vars(owner) for owner in kind.__mro__):
        return kind

    def absent(self: Any, name: str) -> Any:
        try:
            return object.__getattribute__(self, name)  # raises again what a property raised
        except AttributeError as error:
            if name.startswith("_") or not str(error).endswith(f"object has no attribute {name!r}"):
                raise
            from dpselect.foreign_names import attribute_advice  # loads what few need

            advice = attribute_advice(type(self), name)
            if advice is None:
                raise
        raise AttributeError(advice, name=name, obj=self)

    kind.__getattr__ = absent  # type: ignore[attr-defined]
    return kind


def _is_loading(module: ModuleType) -> bool:
    return getattr(module.__spec__, "_initializing", False)


def _answer_in_class(owner: type, name: str, member: Any) -> None:
    bound = isinstance(member, (classmethod, staticmethod))
    function = member.__func__ if bound else member
    if not isinstance(function, FunctionType) or hasattr(function, _ANSWERED):
        return

    def named(args: tuple[Any, ...]) -> str:
        first = args[0] if args and not isinstance(member, staticmethod) else owner
        kind = first if isinstance(first, type) else type(first)
        return kind.__name__ if name == "__init__" else f"{kind.__name__}.{name}"

    made = _answering(function, named)
    setattr(owner, name, type(member)(made) if bound else made)


def _answering(call: Callable[..., Any], named: Callable[[tuple[Any, ...]], str]) -> Any:
    checked = hasattr(call, _OPTIONS)  # what is behind `**options` is called by another name

    @wraps(call)
    def answering(*args: Any, **given: Any) -> Any:
        said = _wrong(call, named(args), None, given) if checked else None
        if said is None:
            try:
                return call(*args, **given)
            except TypeError:
                said = _wrong(call, named(args), args, given)
                if said is None:
                    raise
        raise TypeError(said)

    setattr(answering, _ANSWERED, True)
    return answering


def _wrong(call: Any, name: str, args: tuple[Any, ...] | None, given: dict[str, Any]) -> str | None:
    from dpselect.foreign_names import misuse, unknown  # loads what few need

    return unknown(call, name, given) if args is None else misuse(call, name, args, given)
