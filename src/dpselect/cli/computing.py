"""A sign of life while a price is computed: what is computed, and for how long already."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from dpselect.cli.terminal import bars

__all__ = ["computing"]

_SECONDS: Final = 1.0
"""Shorter waits show nothing."""


@contextmanager
def computing(what: str) -> Iterator[None]:
    """Show after a second, on standard error if that is a terminal, that this is being computed. Gone in the end.

    Prices are made of public numbers, so the time they take is public too. Print nothing inside the block.
    """
    stream, done = sys.stderr, Event()

    def show() -> None:
        if done.wait(_SECONDS):
            return
        from rich.progress import TimeElapsedColumn  # here, or it would be imported where nothing is shown

        with bars(stream, TimeElapsedColumn()) as bar:
            bar.add_task(f"computing {what}", total=None)
            done.wait()

    watching = Thread(target=show, daemon=True) if stream.isatty() else None
    if watching:
        watching.start()
    try:
        yield
    finally:
        done.set()
        if watching:
            watching.join()
