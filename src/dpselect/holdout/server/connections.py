"""Connections on which nothing is asked: how long one may wait, and how many."""

from __future__ import annotations

import asyncio

from dpselect.errors import missing_extra

try:
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise missing_extra("server", "serving holdouts and gates") from None

__all__ = ["patient"]


def patient(seconds: float, most: int) -> type[asyncio.Protocol]:
    """The protocol of a server on which no connection waits for longer to ask something, and at most so many wait.

    uvicorn itself ends only connections that have asked something before. Where one too many waits, the one that has
    waited longest is closed: who opens connections and sends nothing, or half a head byte by byte, takes them from
    themselves. A request whose head has come is left alone; its body has a time of its own.
    """
    waiting: dict[Patient, asyncio.TimerHandle] = {}  # the longest first

    class Patient(H11Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)  # type: ignore[arg-type]
            self._note()

        def connection_lost(self, exc: Exception | None) -> None:
            self._leave()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            self._note()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._note()

        def _note(self) -> None:
            if self.transport.is_closing() or not (self.cycle is None or self.cycle.response_complete):
                self._leave()
            elif self not in waiting:
                waiting[self] = self.loop.call_later(seconds, self._end)
                if len(waiting) > most:
                    next(iter(waiting))._end()

        def _leave(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

        def _end(self) -> None:
            self._leave()
            self.transport.abort()

    return Patient
