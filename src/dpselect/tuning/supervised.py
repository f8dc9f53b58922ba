"""A trial with a limit in seconds or bytes: it runs in a child process that can be killed.

A plain subprocess, so that the workers of a cluster may have one too. It gets the job and the keys through a pipe, and
serves one trial after another until it is killed or its pipe ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from typing import IO, Any, Final

import cloudpickle  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from dpselect.tuning.limits import Limits
from dpselect.tuning.machine import Candidate
from dpselect.tuning.trial import Job, attempt

__all__ = ["ChildDiedError", "perform_supervised", "serve", "stop_children"]

_LENGTH: Final = struct.Struct(">Q")
_START: Final = "import sys, pickle; sys.path[:] = {path!r}; from dpselect.tuning.supervised import serve; serve()"
_GRACE: Final = 10.0
"""Seconds after its limit at which a child that nobody kills, because the worker has died, ends itself."""


class ChildDiedError(BaseException):
    """The child process died by itself: the attempt is lost. Not an `Exception`: the trial has not failed."""


class _Child:
    def __init__(self, job: Job) -> None:
        self.job = job
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._send(cloudpickle.dumps(job))
        self._receive(None)  # loaded: what follows is the trial's own time

    def perform(self, index: int, key: bytes, limits: Limits) -> Candidate | None:
        self._send(pickle.dumps((index, key)))
        candidate: Candidate | None = pickle.loads(self._receive(limits.seconds))
        return candidate

    def stop(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()

    def _send(self, message: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(_LENGTH.pack(len(message)) + message)
            pipe.flush()
        except OSError:
            raise ChildDiedError from None

    def _receive(self, seconds: float | None) -> bytearray:
        """A message, or `TimeoutError` when there is no time left for it."""
        pipe = self._process.stdout
        assert pipe is not None
        end = None if seconds is None else time.monotonic() + seconds
        received = bytearray()
        while len(received) < _LENGTH.size or len(received) < _LENGTH.size + _LENGTH.unpack_from(received)[0]:
            left = None if end is None else end - time.monotonic()
            if left is not None and (left <= 0 or not select.select([pipe], [], [], left)[0]):
                raise TimeoutError
            part = os.read(pipe.fileno(), 1 << 20)
            if not part:
                raise ChildDiedError
            received += part
        return received[_LENGTH.size :]


_here: Final = threading.local()
_children: Final[list[_Child]] = []


def perform_supervised(job: Job, index: int, key: bytes) -> Candidate | None:
    """Run one trial in this thread's child. None is a failed run, one that met its limit included.

    Raises `ChildDiedError` when the attempt is lost.
    """
    assert job.limits is not None
    child: _Child | None = getattr(_here, "child", None)
    try:
        if child is None or child.job is not job:
            _stop(child)
            child = _here.child = _Child(job)
            _children.append(child)
        return child.perform(index, key, job.limits)
    except TimeoutError:
        _stop(child)
        return None
    except BaseException:
        _stop(child)
        raise


def stop_children() -> None:
    """End the children of every thread, and with them the copies of the job that they hold."""
    for child in list(_children):
        _stop(child)


def _stop(child: _Child | None) -> None:
    if child is not None and child in _children:
        _children.remove(child)
        child.stop()
        if getattr(_here, "child", None) is child:
            _here.child = None


def serve() -> None:
    """The child's side: answer every trial with its candidate, until the pipe ends."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b", buffering=0) as null:
        for descriptor in (0, 1, 2):  # what the trial prints must not get among the answers
            os.dup2(null.fileno(), descriptor)
    job: Job = pickle.loads(_read(questions) or b"")
    limits = job.limits or Limits()
    with threadpool_limits(1):
        if limits.memory_bytes is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
        _write(answers, b"loaded")
        while (message := _read(questions)) is not None:
            index, key = pickle.loads(message)
            if limits.seconds is not None:
                signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE)
            answer = pickle.dumps(attempt(job, index, key))
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            _write(answers, answer)


def _read(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    return pipe.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else None


def _write(pipe: IO[Any], message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)) + message)
    pipe.flush()
