"""Connections whose peer makes the server wait: how long one may, how many may, and how many there are at all."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from dpselect.errors import missing_extra
from dpselect.holdout.server.limits import KnownAddresses, ServerSettings, TooOften, network_of

try:
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise missing_extra("server", "serving holdouts and gates") from None

__all__ = ["Door", "descriptors", "patient"]

_ACCEPTED: Final = 64
"""Descriptors that connections leave free, for files and for connections that are accepted before one is closed."""
_READ: Final = 16 << 10
"""Bytes read of one connection before the next has its turn. The 256 KiB of asyncio take a second in tiny chunks."""
_PIPELINED: Final = 0.5
"""Seconds between an answer and the next one on a connection whose peer does not wait for answers."""
_UNSENT: Final = 64 << 20
"""Bytes of answers that all connections together may leave unread."""
_REFUSED_AT_ONCE: Final = 256
"""Connections that are closed unheard before others have their turn."""


def descriptors() -> int:
    """How many connections this process has descriptors for."""
    if sys.platform == "win32":
        return 1 << 20
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return 1 << 20
    return max(most - _ACCEPTED, most // 2)


class _Framed(h11.Connection):
    """A request whose length is stated in two ways is refused: a proxy could read another request out of it."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding exclude each other")
        return event


class Door(socket.socket):
    """A listening socket that closes what comes too often from one address, or all, before anything is made for it.

    So many requests a minute of an address are answered, and as many more are refused as too many. Connections beyond
    both could get no answer. A flood from very many addresses leaves the server time for those that are known. Those of
    a trusted proxy are for others.
    """

    def __init__(self, family: int, settings: ServerSettings, known: KnownAddresses | None = None) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._by_address = TooOften(2 * settings.address_rate)
        self._unknown = TooOften(60.0 * settings.new_connections, at_once=settings.new_connections)
        self._known = KnownAddresses() if known is None else known
        self._is_proxy = _in_any(settings.trusted_proxies)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is heard. Raises `BlockingIOError` if there is none now."""
        for _ in range(_REFUSED_AT_ONCE):
            one, client = super().accept()
            if self._is_proxy(client) or self._is_heard(client[0]):
                return one, client
            one.close()
        raise BlockingIOError

    def _is_heard(self, address: str) -> bool:
        if self._by_address.hit(network_of(address)):
            return False
        return address in self._known or not self._unknown.hit("")


def _in_any(addresses: str) -> Callable[[Any], bool]:
    """Whether a peer is at one of these addresses or networks, or at any with "*"."""
    words = [word.strip() for word in addresses.split(",")]
    networks = []
    for word in words:
        with suppress(ValueError):
            networks.append(ipaddress.ip_network(word, strict=False))

    def found(client: Any) -> bool:
        if not networks:
            return "*" in words
        with suppress(ValueError, TypeError):
            place = ipaddress.ip_address(client[0])
            return "*" in words or any(place in network for network in networks)
        return "*" in words

    return found


class Connections:
    """All open connections, and those that wait for their peer. The first of them has waited longest."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._most = min(settings.connections, descriptors())
        self._is_proxy = _in_any(settings.trusted_proxies)
        self._of: dict[Patient, str] = {}
        self._addresses: Counter[str] = Counter()
        self._waiting: dict[Patient, tuple[asyncio.TimerHandle, int]] = {}
        self._unsent = 0

    def open(self, one: Patient) -> None:
        """Count a connection. If it is one too many, close the one that waits longest, or else this one."""
        address = network_of(one.client[0]) if one.client else ""
        self._of[one] = address
        self._addresses[address] += 1
        if self._addresses[address] > self._settings.address_connections and not self._is_proxy(one.client):
            self._close_longest(one, address)
        elif len(self._of) > self._most:
            self._close_longest(one, None)

    def lost(self, one: Patient) -> None:
        self.goes_on(one)
        address = self._of.pop(one, None)
        if address is not None:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]

    def waits(self, one: Patient, seconds: float) -> None:
        """End this connection after so many seconds, or when many others wait too."""
        self.goes_on(one)
        unsent = one.transport.get_write_buffer_size()
        self._waiting[one] = one.loop.call_later(seconds, self._end, one), unsent
        self._unsent += unsent
        while len(self._waiting) > self._settings.idle_connections or self._unsent > _UNSENT:
            self._end(next(iter(self._waiting)))

    def goes_on(self, one: Patient) -> None:
        timer, unsent = self._waiting.pop(one, (None, 0))
        self._unsent -= unsent
        if timer is not None:
            timer.cancel()

    def is_waiting(self, one: Patient) -> bool:
        return one in self._waiting

    def _close_longest(self, one: Patient, address: str | None) -> None:
        found = (other for other in self._waiting if address is None or self._of.get(other) == address)
        self._end(next(found, one))

    def _end(self, one: Patient) -> None:
        self.lost(one)
        one.transport.abort()


class Patient(H11Protocol):
    """A connection that does not wait for its peer longer than it may."""

    shared: Connections
    settings: ServerSettings

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = _Framed(h11.SERVER)
        self._answered = False
        self._next: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.transport.set_write_buffer_limits(high=0)  # so that `pause_writing` says that the peer does not read
        setattr(transport, "max_size", _READ)  # noqa: B010 - of asyncio's own, not of its interface
        self.shared.open(self)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        self.shared.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._answered:  # else the rest of a body that no one wants, which is not even parsed
            super().data_received(data)

    def handle_events(self) -> None:
        if self._next is None:
            super().handle_events()
            self._note()

    def _go_on(self) -> None:
        self._next = None
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self.handle_events()

    def on_response_complete(self) -> None:
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            # answered before its body has come: the peer gets time to read the answer, and no further request
            self._answered = True
            self._unset_keepalive_if_required()
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            if self.conn.trailing_data[0]:  # a request that was sent before the answer lets others go first
                self._next = self.loop.call_later(_PIPELINED, self._go_on)
            super().on_response_complete()
            if self._next is not None:
                self.flow.pause_reading()
        self._note()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.shared.waits(self, self.settings.write_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.shared.goes_on(self)
        self._note()

    def _note(self) -> None:
        if self.flow.write_paused:
            return  # its time runs
        if self.transport.is_closing() or not (self.cycle is None or self.cycle.response_complete):
            self.shared.goes_on(self)
        elif not self.shared.is_waiting(self):
            self.shared.waits(self, self.settings.idle_seconds)


def patient(settings: ServerSettings) -> type[asyncio.Protocol]:
    """The protocol of a server that waits for no peer longer than the settings say.

    uvicorn itself ends only connections that have asked something before. Here a connection without a whole head of a
    request, or whose answer is not read, is closed after its time, and earlier if many others wait. Clients that open
    connections and send or read nothing take them from themselves. A request whose head has come is left alone. Its
    body and its turn have times of their own.
    """

    class Served(Patient):
        pass

    Served.shared, Served.settings = Connections(settings), settings
    return Served
