"""A sign of life from long loops: how many steps of a public number are done, for a person who watches.

Only a loop with a public number of steps tells of itself. The number of such loops must be public too, because the
training of a secret number of runs would tell that number: a search calls no watcher. Another thread or process has
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["Watch", "each_step", "unwatched", "watched"]

Watch = Callable[[str, int, int], None]
"""Called with the name of a loop, the number of steps that are done, and that of all."""

_WATCH: Final[ContextVar[Watch | None]] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Call `watch` at each step of the loops inside.

    >>> with watched(lambda name, done, count: print(f"{name}: {done} of {count}")):
    ...     squares = [step**2 for step in each_step("squares", 2)]
    squares: 0 of 2
    squares: 1 of 2
    """
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def unwatched() -> Iterator[None]:
    """Call no watcher at the steps of the loops inside, whose number is secret.

    >>> with watched(print), unwatched():
    ...     squares = [step**2 for step in each_step("squares", 2)]
    """
    token = _WATCH.set(None)
    try:
        yield
    finally:
        _WATCH.reset(token)


def each_step(name: str, count: int, done: int = 0) -> Iterator[int]:
    """The numbers from `done` to `count` - 1. Both must be public."""
    watch = _WATCH.get()
    for step in range(done, count):
        if watch is not None:
            watch(name, step, count)
        yield step
