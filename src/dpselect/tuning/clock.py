"""The parts of a search that go by the clock: progress that is shown, and the moment of the release."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["ticking", "wait_for_a_multiple"]


def wait_for_a_multiple(seconds: float, *, since: float) -> None:
    """Sleep until an integer multiple of so many seconds after a moment of the monotonic clock."""
    elapsed = time.monotonic() - since
    time.sleep(max(1, math.ceil(elapsed / seconds)) * seconds - elapsed)


@contextmanager
def ticking(progress: Callable[[float], None] | None, interval: float = 1.0) -> Iterator[None]:
    """Call `progress` by the clock, never by the trial: the moments themselves would tell of trials."""
    if progress is None:
        yield
        return
    done = threading.Event()
    start = time.monotonic()

    def tick() -> None:
        while not done.wait(interval):
            progress(time.monotonic() - start)

    thread = threading.Thread(target=tick, name="dpselect-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
