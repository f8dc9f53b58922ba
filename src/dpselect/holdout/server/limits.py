"""What the operator of a server decides, and how often somebody may ask."""

from __future__ import annotations

import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dpselect.errors import ArgumentError, integer, number

__all__ = ["AtOnce", "ServerSettings", "TooOften", "network_of"]

_MOST_KEYS: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Limits of a server, and what stands before it.

    Args:
        max_bytes: of the body of a submission.
        rate: requests a minute of one submitter.
        address_rate: requests a minute from one address.
        waiting: submissions that may wait for one holdout or gate.
        at_once: submissions of one submitter that may be under way.
        body_seconds: how long a body may take to arrive.
        idle_seconds: how long a connection may be open without a request.
        idle_connections: how many may be; of one more, the one that has waited longest is closed.
        stop_seconds: how long requests may go on once the server was asked to stop.
        root_path: the path below which a proxy shows the server.
        trusted_proxies: addresses whose forwarded headers are believed, by commas.

    >>> ServerSettings(rate=6).rate
    6.0
    """

    max_bytes: int = 16 << 20
    rate: float = 60.0
    address_rate: float = 600.0
    waiting: int = 64
    at_once: int = 8
    body_seconds: float = 30.0
    idle_seconds: float = 10.0
    idle_connections: int = 256
    stop_seconds: float = 30.0
    root_path: str = ""
    trusted_proxies: str = ""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "waiting", "at_once", "idle_connections"):
            object.__setattr__(self, name, integer(name, getattr(self, name), at_least=1))
        for name in ("rate", "address_rate"):
            object.__setattr__(self, name, number(name, getattr(self, name), at_least=1.0))
        for name in ("body_seconds", "idle_seconds", "stop_seconds"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0.0))
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise ArgumentError(f"root_path must begin with a slash and not end with one, got {self.root_path!r}")


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

    def hit(self, key: str, a_minute: float | None = None) -> bool:
        """Count a request, and say whether it is one too many; `a_minute` for this key in place of that for all."""
        now, most = self._clock(), self._most if a_minute is None else a_minute
        level, at = self._levels.pop(key, (0.0, now))
        level = max(level - (now - at) * most / 60.0, 0.0)
        refused = level + 1.0 > most
        self._levels[key] = (level if refused else level + 1.0, now)
        if len(self._levels) > _MOST_KEYS:
            self._levels.popitem(last=False)
        return refused


class AtOnce:
    """So many at once of each key.

    >>> places = AtOnce(1)
    >>> with places.of("Ada") as first, places.of("Ada") as second, places.of("Bo") as third:
    ...     print(first, second, third)
    True False True
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    @contextmanager
    def of(self, key: str) -> Iterator[bool]:
        """Whether there is a place; taken until the end."""
        if self._taken[key] >= self._most:
            yield False
            return
        self._taken[key] += 1
        try:
            yield True
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]


def network_of(address: str) -> str:
    """Whose address it is: of the sixth version one customer has 2**64 of them.

    >>> network_of("10.0.0.1"), network_of("2001:db8:1:2:3::4")
    ('10.0.0.1', '2001:db8:1:2::/64')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
