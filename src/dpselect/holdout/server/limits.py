"""The settings of a server's operator, and how often someone may ask."""

from __future__ import annotations

import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dpselect.errors import ArgumentError, integer, number

__all__ = ["AtOnce", "KnownAddresses", "ServerSettings", "Share", "TooOften", "network_of"]

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
        memory: bytes of bodies that have arrived and are not decoded yet, of all submitters. One has a quarter of it.
        body_seconds: how long a body may take to arrive.
        turn_seconds: how long a submission may wait for its turn. After it, it is refused and not charged.
        idle_seconds: how long a connection may be open without a request.
        write_seconds: how long a peer may take to read an answer.
        idle_connections: how many may wait for their peer, which sends or reads nothing; of one more, the one that has
            waited longest is closed.
        address_connections: how many may be open from one address, other than a trusted proxy's.
        connections: how many may be open, and no more than the process has descriptors for.
        new_connections: how many are heard in a second of all addresses from which no valid token has come, other than
            a trusted proxy's. The rest are closed unheard.
        stop_seconds: how long requests may continue once the server was asked to stop.
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
    memory: int = 128 << 20
    body_seconds: float = 30.0
    turn_seconds: float = 100.0
    idle_seconds: float = 10.0
    write_seconds: float = 30.0
    idle_connections: int = 256
    address_connections: int = 64
    connections: int = 1024
    new_connections: int = 1000
    stop_seconds: float = 30.0
    root_path: str = ""
    trusted_proxies: str = ""

    def __post_init__(self) -> None:
        given, counts = vars(self), ("idle_connections", "address_connections", "connections", "new_connections")
        for name in ("max_bytes", "waiting", "at_once", "memory", *counts):
            object.__setattr__(self, name, integer(name, given[name], at_least=1))
        for name in ("rate", "address_rate"):
            object.__setattr__(self, name, number(name, given[name], at_least=1.0))
        for name in ("body_seconds", "turn_seconds", "idle_seconds", "write_seconds", "stop_seconds"):
            object.__setattr__(self, name, number(name, given[name], above=0.0))
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise ArgumentError(f"root_path must begin with a slash and not end with one, got {self.root_path!r}")


class TooOften:
    """So many requests a minute for each key. A whole minute's may come at once, or only `at_once`.

    >>> clock = iter([0.0, 0.0, 0.0, 30.0]).__next__
    >>> limit = TooOften(2, clock)
    >>> [limit.hit("Ada") for _ in range(4)]
    [False, False, True, False]
    """

    def __init__(
        self, a_minute: float, clock: Callable[[], float] = time.monotonic, *, at_once: float | None = None
    ) -> None:
        self._most, self._clock, self._at_once = a_minute, clock, at_once
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def hit(self, key: str, a_minute: float | None = None) -> bool:
        """Count a request: whether it is one too many. `a_minute` replaces the limit for all keys."""
        now, most = self._clock(), self._most if a_minute is None else a_minute
        level, at = self._levels.pop(key, (0.0, now))
        level = max(level - (now - at) * most / 60.0, 0.0)
        refused = level + 1.0 > (most if self._at_once is None else self._at_once)
        self._levels[key] = (level if refused else level + 1.0, now)
        if len(self._levels) > _MOST_KEYS:
            self._levels.popitem(last=False)
        return refused


class KnownAddresses:
    """The addresses from which a valid token has come, 10,000 of them at most.

    >>> known = KnownAddresses()
    >>> known.add("10.0.0.1")
    >>> "10.0.0.1" in known, "10.0.0.2" in known
    (True, False)
    """

    def __init__(self) -> None:
        self._networks: OrderedDict[str, None] = OrderedDict()

    def add(self, address: str) -> None:
        """Note that a valid token has come from it now."""
        network = network_of(address)
        self._networks[network] = None
        self._networks.move_to_end(network)
        if len(self._networks) > _MOST_KEYS:
            self._networks.popitem(last=False)

    def __contains__(self, address: str) -> bool:
        return network_of(address) in self._networks


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
        """Whether there is a place. It is taken until the end."""
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


class Share:
    """Bytes that are held for each key and for all of them together.

    >>> share = Share(4, 6)
    >>> with share.of("Ada") as ada, share.of("Bo") as bo:
    ...     print(ada(3), ada(2), bo(3), bo(1))
    True False True False
    """

    def __init__(self, most_of_one: int, most: int) -> None:
        self._most_of_one, self._left = most_of_one, most
        self._held: Counter[str] = Counter()

    @contextmanager
    def of(self, key: str) -> Iterator[Callable[[int], bool]]:
        """A function that takes so many bytes more, where there are so many. They are given back at the end."""
        taken = 0

        def take(size: int) -> bool:
            nonlocal taken
            if size > self._left or self._held[key] + size > self._most_of_one:
                return False
            taken += size
            self._left -= size
            self._held[key] += size
            return True

        try:
            yield take
        finally:
            self._left += taken
            self._held[key] -= taken
            if not self._held[key]:
                del self._held[key]


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
