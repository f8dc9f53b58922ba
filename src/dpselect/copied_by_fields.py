"""Frozen dataclasses that keep what they work out: copies and pickles carry the fields alone, which tell equal ones."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from dataclasses import fields
from types import FunctionType
from typing import Any, Final

__all__ = ["CopiedByFields", "content", "remembered"]

_MODULES: Final = {
    "dpselect",
    "dp_accounting",
    "numpy",
    "attr",
    "builtins",
    "copyreg",
    "decimal",
    "fractions",
    "functools",
}
_KEPT: Final = 4096


class CopiedByFields:
    """The base of a dataclass whose cached properties can be computed again from its fields."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class _Content(pickle.Pickler):
    """The bytes of what is made of numbers and of this library's own classes, whose code does not change."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, FunctionType)) and obj.__module__.partition(".")[0] not in _MODULES:
            raise pickle.PicklingError
        return NotImplemented


def content(asked: Any) -> bytes | None:
    """What tells public values apart; None where someone's own code is part of one, which no bytes stand for."""
    buffer = io.BytesIO()
    try:
        _Content(buffer, protocol=5).dump(asked)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return buffer.getvalue()


class remembered:
    """A function of public values whose answers, small ones, are kept by what its arguments are made of.

    Arguments without a `content` are answered again each time.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._known: dict[bytes, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """The function's answer."""
        asked = content(arguments)
        if asked is None:
            return self._function(*arguments)
        key = hashlib.sha256(asked).digest()
        found = self._known.get(key)
        if found is None:
            found = self._function(*arguments)
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = found
        return found

    def cache_clear(self) -> None:
        """Forget all answers."""
        self._known.clear()
