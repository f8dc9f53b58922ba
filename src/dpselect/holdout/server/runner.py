"""Run the server until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpselect.errors import ArgumentError, integer, missing_extra
from dpselect.holdout.server.boards import open_boards
from dpselect.holdout.server.limits import KnownAddresses, ServerSettings
from dpselect.holdout.server.submitters import Submitters

if TYPE_CHECKING:
    from uvicorn import Server

__all__ = ["serve"]

_ACCEPTED_AT_ONCE: Final = 16
"""Connections accepted before what has arrived on the others is read: of more, new ones were closed unheard."""
_QUEUE: Final = 4096


def serve(
    paths: Iterable[str | Path],
    *,
    submitters: str | Path,
    listen: str = "127.0.0.1:8080",
    settings: ServerSettings | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve holdouts and gates over HTTP until SIGTERM or SIGINT. Requests that have begun are answered then.

    Args:
        paths: files of holdouts and gates, folders of them, and databases: postgresql://... or postgresql://...#NAME.
        submitters: the file of submitters, made if there is none, or a postgresql:// URL.
        listen: an address and a port. Port 0 takes one that is free.
        settings: limits and the like.
        ready: called with the server's URL once it listens.

    Raises `MissingExtraError` without the extra "server", `StudyError` for a file that cannot be opened, and
    `ArgumentError` for an address that cannot be listened on.
    """
    try:
        from uvicorn import Config, Server
    except ImportError:
        raise missing_extra("server", "serving holdouts and gates") from None
    from dpselect.holdout.server.app import LOG, make_app
    from dpselect.holdout.server.connections import Door, patient

    settings = ServerSettings() if settings is None else settings
    boards, known = open_boards(paths), KnownAddresses()
    with (
        Submitters(submitters) as people,
        _listening(listen, lambda family: Door(family, settings, known)) as (place, url),
        _log(LOG),
    ):
        config = Config(
            make_app(boards, people, settings, known),
            http=patient(settings),
            backlog=_ACCEPTED_AT_ONCE,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies or None,
            timeout_graceful_shutdown=int(settings.stop_seconds) + 1,
        )
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)  # its messages could hold what someone has sent
        if ready is not None:
            ready(url)
        with _stopped_in_peace():
            asyncio.run(_serve(Server(config), place))


async def _serve(server: Server, place: socket.socket) -> None:
    """Serve, with a longer queue of connections in the kernel than are accepted before others have their turn."""
    running = asyncio.ensure_future(server.serve(sockets=[place]))
    while not (server.started or running.done()):
        await asyncio.sleep(0.01)
    if not running.done():
        place.listen(_QUEUE)
    await running


@contextmanager
def _listening(listen: str, made: Callable[[int], socket.socket]) -> Iterator[tuple[socket.socket, str]]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or integer("port", int(port)) > 65535:
        raise ArgumentError(f"listen must be an address and a port, as 127.0.0.1:8080, got {listen!r}")
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    with made(family) as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits for an acknowledgement
        try:
            place.bind((bare, int(port)))
            place.listen(_QUEUE)
        except OSError as error:
            raise ArgumentError(f"listen: {listen} cannot be listened on: {error.strerror}") from None
        yield place, f"http://{host}:{place.getsockname()[1]}"


@contextmanager
def _log(log: logging.Logger) -> Iterator[None]:
    """One line a request on standard error: the time, the route and the status, but no name, query or address."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)


@contextmanager
def _stopped_in_peace() -> Iterator[None]:
    """A signal that has stopped the server, which repeats it afterwards, does not end the process too."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
