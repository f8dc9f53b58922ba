"""Values that keep what they compute: copies of them carry the fields alone, and equal arguments get a kept answer."""

from __future__ import annotations

import hashlib
import io
import pickle
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from types import FunctionType
from typing import Any, Final, TypeVar

from dpselect.capabilities import field_values

__all__ = ["CopiedByFields", "cache_key", "counted", "kept_while_alive", "memoized"]

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
_MOST_KEPT: Final = 4096

Value = TypeVar("Value")


class CopiedByFields:
    """The base of a dataclass whose cached properties can be computed again from its fields."""

    def __getstate__(self) -> dict[str, Any]:
        return field_values(self)  # type: ignore[arg-type]


class _KeyPickler(pickle.Pickler):
    """Takes numbers and instances of this library's own classes, whose code does not change."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, FunctionType)) and obj.__module__.partition(".")[0] not in _MODULES:
            raise pickle.PicklingError
        return NotImplemented


def cache_key(public: Any) -> bytes | None:
    """Bytes that tell public values apart, or None if code of others is part of one."""
    buffer = io.BytesIO()
    try:
        _KeyPickler(buffer, protocol=5).dump(public)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return buffer.getvalue()


def kept_while_alive(function: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """A function of one immutable object that keeps its answer as long as the object lives.

    Objects are distinguished by identity. Those that cannot be referenced weakly are answered again each time.
    """
    kept: dict[int, tuple[weakref.ref[Any], Value]] = {}

    @wraps(function)
    def answer(value: Any) -> Value:
        place = id(value)
        found = kept.get(place)
        if found is not None and found[0]() is value:
            return found[1]
        result = function(value)
        with suppress(TypeError):
            kept[place] = weakref.ref(value, lambda _: kept.pop(place, None)), result
        return result

    return answer


@kept_while_alive
def _own_key(value: Any) -> bytes | None:
    return cache_key(value)


def counted(values: Iterable[tuple[Value, int]]) -> tuple[tuple[Value, int], ...]:
    """Each of some public values once, in order, with the sum of its counts.

    Values are the same if their `cache_key` is. Those without one are distinguished by identity.
    """
    found: dict[bytes | int, tuple[Value, int]] = {}
    for value, count in values:
        key = _own_key(value) or id(value)
        found[key] = (value, count + (found[key][1] if key in found else 0))
    return tuple(found.values())


class memoized:
    """A function of public values that keeps its answers, which must be small.

    Arguments without a `cache_key` are answered again each time.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._answers: dict[bytes, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """The function's answer."""
        key = cache_key(arguments)
        if key is None:
            return self._function(*arguments)
        digest = hashlib.sha256(key).digest()
        found = self._answers.get(digest)
        if found is None:
            found = self._function(*arguments)
            while len(self._answers) >= _MOST_KEPT:
                self._answers.pop(next(iter(self._answers)), None)
            self._answers[digest] = found
        return found

    def cache_clear(self) -> None:
        """Forget all answers."""
        self._answers.clear()
