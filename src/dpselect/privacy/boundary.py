"""The boundary of a private run: only its result may be released.

The code of a user runs many times inside of one private mechanism, and the mechanism releases at most one result. What
the other runs print, warn, log or raise, and what they do to an object that an earlier run returned, is covered by no
guarantee. Every mechanism that runs such code does so through `run_confined`.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any, Final, TextIO, TypeVar

from dpselect.randomness.process import this_process

__all__ = ["SharedPatch", "run_confined", "silence"]

_Result = TypeVar("_Result")
_Default = TypeVar("_Default")


def run_confined(function: Callable[[], _Result], default: _Default, *, quiet: bool = True) -> _Result | _Default:
    """Return `function()`, or `default` if it raised anything but `KeyboardInterrupt`.

    Whether and how a run failed is part of its private output, so the exception goes no further, with its traceback;
    `SystemExit` and `asyncio.CancelledError` are no exceptions to that. Ctrl-C is the operator's. With `quiet` the run
    is silenced as by `silence`. A result that the run may still change is for the caller to copy inside of `function`.
    A child process that the run forked and did not end is ended here: it would continue the mechanism with its parent's
    keys.

    >>> run_confined(lambda: 1 / 0, None) is None
    True
    """
    if quiet:
        with silence():
            return run_confined(function, default, quiet=False)
    process = this_process()  # copies: ends a child that a run forked and did not end
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return default
    finally:
        if this_process() is not process:  # copies: ends a child that a run forked and did not end
            os._exit(1)


class SharedPatch:
    """What a process shares among its threads: changed by the first that asks, restored by the last that is done.

    `change(...)` makes the change, and returns a function that takes it back.
    """

    def __init__(self, change: Callable[..., Callable[[], object]]) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._change = change

    def begin(self, *how: Any) -> None:
        """One more thread needs the change."""
        with self._lock:
            if self._users == 0:
                self._restore = self._change(*how)
            self._users += 1

    def end(self, *_: object) -> None:
        """One thread less does."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._restore()

    __enter__, __exit__ = begin, end


@cache
def _null_device() -> tuple[int, os.stat_result]:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    return descriptor, os.fstat(descriptor)


def _null() -> TextIO:
    """The null device as a file, because some programs ask their output for its descriptor, which stays open.

    Unless someone has closed it, and another file may have its number.
    """
    descriptor, opened = _null_device()
    try:
        kept = os.path.samestat(os.fstat(descriptor), opened)
    except OSError:
        kept = False
    if not kept:
        _null_device.cache_clear()
        descriptor, _ = _null_device()
    # without a buffer, which `open` takes as long to make as all the rest
    return io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), "utf-8", "replace", write_through=True)


def _discard_output() -> Callable[[], None]:
    null, stdout, stderr, disabled = _null(), sys.stdout, sys.stderr, logging.root.manager.disable
    unwarned = warnings.catch_warnings(action="ignore")
    unwarned.__enter__()
    sys.stdout = sys.stderr = null
    logging.disable(sys.maxsize)

    def show_output() -> None:
        sys.stdout, sys.stderr = stdout, stderr
        logging.disable(disabled)
        unwarned.__exit__(None, None, None)
        with suppress(OSError, ValueError):  # a run may have closed or taken away what is below
            null.close()

    return show_output


_silence: Final = SharedPatch(_discard_output)


def silence(*, descriptors: bool = False) -> AbstractContextManager[None]:
    """Discard what is printed, warned and logged in this block, by every thread of the process.

    `descriptors` discards also what compiled code and child processes write to the descriptors of standard output and
    error: for a process that has nothing else to say.
    """
    return _silence_of_descriptors() if descriptors else _silence


@contextmanager
def _silence_of_descriptors() -> Iterator[None]:
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        for descriptor in kept:
            os.dup2(null, descriptor)
        os.close(null)
        with _silence:
            yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)
