"""How a command that runs for long is stopped from outside."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["TerminatedError", "status_of", "terminable"]


_SAME = 2.0
"""Seconds."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came. A `KeyboardInterrupt`: it stops in order what Ctrl-C stops in order."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `TerminatedError` in the main thread when SIGTERM comes, as a scheduler or a service manager sends it.

    A second signal right after the first is taken for the same: programs that start others pass Ctrl-C on to those that
    have it already. Any later one cuts the orderly end short, which loses nothing either.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    heeded = -math.inf

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal heeded
        if time.monotonic() - heeded < _SAME:
            return
        heeded = time.monotonic()
        raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def status_of(interruption: KeyboardInterrupt) -> int:
    """The exit status of a program that a signal has stopped: 128 and the signal's number."""
    return 128 + (signal.SIGTERM if isinstance(interruption, TerminatedError) else signal.SIGINT)
