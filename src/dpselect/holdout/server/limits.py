"""How often somebody may ask the server, and how much one body may hold."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Final

__all__ = ["TooLargeError", "TooOften", "read_body"]

_MOST_KEYS: Final = 10_000


class TooLargeError(Exception):
    """A body is larger than is taken."""


class TooOften:
    """So many requests a minute for each key, of which a whole minute's may come at once.

    >>> clock = iter([0.0, 0.0, 0.0, 30.0]).__next__
    >>> limit = TooOften(2, clock)
    >>> [limit.hit("Ada") for _ in range(4)]
    [False, False, True, False]
    """

    def __init__(self, a_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = a_minute, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def hit(self, key: str) -> bool:
        """Count a request, and say whether it is one too many."""
        now = self._clock()
        level, at = self._levels.pop(key, (0.0, now))
        level = max(level - (now - at) * self._most / 60.0, 0.0)
        refused = level + 1.0 > self._most
        self._levels[key] = (level if refused else level + 1.0, now)
        if len(self._levels) > _MOST_KEYS:
            self._levels.popitem(last=False)
        return refused


async def read_body(chunks: AsyncIterator[bytes], most: int) -> bytes:
    """All of it. Raises `TooLargeError` as soon as it is too much."""
    parts, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooLargeError
        parts.append(chunk)
    return b"".join(parts)
