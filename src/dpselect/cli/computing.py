"""A sign of life while a price or an answer is computed: what is computed, and for how long already."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from dpselect.cli.terminal import bars, plain
from dpselect.steps import watched

__all__ = ["computing"]

_SECONDS: Final = 1.0
"""Shorter waits show nothing."""
_REFRESH: Final = 0.1
"""Seconds from one look at the steps to the next."""


@contextmanager
def computing(what: str) -> Iterator[None]:
    """Show after a second, on standard error if that is a terminal, that this is being computed. Gone in the end.

    Loops that tell their steps (`dpselect.steps`) show how many are done. Prices are made of public numbers, so the
    time they take is public too. The time of a pass over rows is for the operator. Print nothing inside the block.
    """
    stream, done, words = sys.stderr, Event(), [plain(f"computing {what}")]
    if not stream.isatty():
        yield
        return

    def show() -> None:
        if done.wait(_SECONDS):
            return
        from rich.progress import TimeElapsedColumn  # here, or it would be imported where nothing is shown

        with bars(stream, TimeElapsedColumn()) as bar:
            task = bar.add_task(words[-1], total=None)
            while not done.wait(_REFRESH):
                bar.update(task, description=words[-1])

    def step(name: str, made: int, count: int) -> None:
        words[-1] = plain(f"computing {what}: {made} of {count} {name}")

    watching = Thread(target=show, daemon=True)
    watching.start()
    try:
        with watched(step):
            yield
    finally:
        done.set()
        watching.join()
