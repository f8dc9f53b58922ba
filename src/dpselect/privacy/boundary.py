"""The boundary of a private run: what it returns may be released, and nothing else of it leaves.

The code of a user runs many times inside of one private mechanism, and the mechanism releases at most one result. What
the other runs print, warn, log or raise, and what they do to an object that an earlier run returned, is covered by no
guarantee. Every mechanism that runs such code does so through `result_of`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TextIO, TypeVar

__all__ = ["Surroundings", "result_of", "silence"]

_Result = TypeVar("_Result")
_Otherwise = TypeVar("_Otherwise")


def result_of(run: Callable[[], _Result], otherwise: _Otherwise, *, quiet: bool = True) -> _Result | _Otherwise:
    """What `run()` returns, or `otherwise` if it raised anything but `KeyboardInterrupt`.

    Whether and how a run failed is part of its private output, so the exception goes no further, with its traceback;
    `SystemExit` and `asyncio.CancelledError` are no exceptions to that. Ctrl-C is the operator's. With `quiet` the run
    is silenced as by `silence`. A result that the run may still change is for the caller to copy inside of `run`.

    >>> result_of(lambda: 1 / 0, None) is None
    True
    """
    if quiet:
        with silence():
            return result_of(run, otherwise, quiet=False)
    try:
        return run()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return otherwise


class Surroundings:
    """What a process shares among its threads: changed by the first that asks, restored by the last that is done.

    `change(undo, ...)` makes the change, and leaves on the stack `undo` what takes it back.
    """

    def __init__(self, change: Callable[..., None]) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._undo = ExitStack()
        self._change = change

    def begin(self, *how: Any) -> None:
        """One more thread needs the change."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._change(self._undo, *how)

    def end(self) -> None:
        """One thread less does."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo.close()


def _discard_output(undo: ExitStack) -> None:
    # a file, because some programs ask their output for its descriptor
    null = open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed by undo)
    undo.callback(_show_output, null, sys.stdout, sys.stderr, logging.root.manager.disable)
    undo.enter_context(warnings.catch_warnings(action="ignore"))
    sys.stdout = sys.stderr = null
    logging.disable(sys.maxsize)


def _show_output(null: TextIO, stdout: TextIO, stderr: TextIO, disabled: int) -> None:
    sys.stdout, sys.stderr = stdout, stderr
    logging.disable(disabled)
    null.close()


_silence: Final = Surroundings(_discard_output)


@contextmanager
def silence(*, descriptors: bool = False) -> Iterator[None]:
    """Discard what is printed, warned and logged in this block, by every thread of the process.

    `descriptors` discards also what compiled code and child processes write to the descriptors of standard output and
    error: for a process that has nothing else to say.
    """
    _silence.begin()
    try:
        with _no_descriptors() if descriptors else contextlib.nullcontext():
            yield
    finally:
        _silence.end()


@contextmanager
def _no_descriptors() -> Iterator[None]:
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        for descriptor in kept:
            os.dup2(null, descriptor)
        os.close(null)
        yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)
