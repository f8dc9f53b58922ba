"""Things by name: laws of the number of runs, base mechanisms, bounds.

A thing is in one file, which registers it. The file is found by its room: it is enough that it is there. A file
from anywhere else registers its own in the same way, as soon as it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from dpselect.cures import meant_value
from dpselect.errors import ArgumentError

__all__ = ["Registry"]

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Things of one kind by name, in the order of their names.

    A look-up imports the room's file of that name, and all its files if the thing is not there.

    >>> shapes = Registry[int]("shape", room="dpselect.errors")
    >>> shapes.register("square")(4), shapes["square"], list(shapes)
    (4, 4, ['square'])
    """

    def __init__(self, kind: str, *, room: str, elsewhere: Mapping[str, str] | None = None) -> None:
        """`kind` is the noun of messages, `room` the full name of the folder whose files register such things.

        `elsewhere` are modules of other packages that register some things, by the names of these.
        """
        self._kind, self._room, self._found = kind, room, False
        self._elsewhere = dict(elsewhere or {})
        self._things: dict[str, Thing] = {}
        self._facts: dict[str, Mapping[str, Any]] = {}

    def register(self, name: str, **facts: Any) -> Callable[[Thing], Thing]:
        """Return a decorator that gives a thing this name, and facts about it.

        Args:
            name: the name, public.
            facts: anything that `facts(name)` is to answer.

        Returns:
            The decorator. It returns the thing unchanged, and raises `ArgumentError` when something else has the name.
        """

        def add(thing: Thing) -> Thing:
            before = self._things.setdefault(name, thing)
            if _place(before) != _place(thing):
                raise ArgumentError(f"{self._kind} {name!r} exists already: {_place(before)}")
            self._things[name], self._facts[name] = thing, facts
            return thing

        return add

    def __getitem__(self, name: str) -> Thing:
        """The thing of this name. Raises `ArgumentError`, which lists the names."""
        if name not in self:
            near = meant_value(name, self._things)
            meant = f"; did you mean {near!r}?" if near else ""
            raise ArgumentError(f"unknown {self._kind} {name!r}; one of {', '.join(sorted(self._things))}{meant}")
        return self._things[name]

    def facts(self, name: str) -> Mapping[str, Any]:
        """The facts given when this name was registered, or none for a name that nothing has."""
        return self._facts[name] if name in self else {}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all()))

    def __contains__(self, name: object) -> bool:
        if name not in self._things and not self._found and isinstance(name, str):
            self._import_file(name)
        return name in self._things or name in self._all()

    def _import_file(self, name: str) -> None:
        """Import the file of a thing's own name, if there is one: mostly it holds the thing, and no other is needed."""
        if name in self._elsewhere:
            import_module(self._elsewhere[name])
            return
        room, name = import_module(self._room), name.replace("-", "_")
        if any(file.name == name for file in iter_modules(vars(room).get("__path__", ()))):
            import_module(f"{self._room}.{name}")

    def _all(self) -> Mapping[str, Thing]:
        """The things, in no order that means anything."""
        if not self._found:
            room = import_module(self._room)
            for file in iter_modules(vars(room).get("__path__", ())):
                import_module(f"{self._room}.{file.name}")
            for module in self._elsewhere.values():
                import_module(module)
            self._found = True
        return self._things


def _place(thing: object) -> str:
    """The name of a thing's definition: a module that is imported again replaces its own."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', repr(thing))}"
