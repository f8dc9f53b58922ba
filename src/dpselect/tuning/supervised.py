"""Trials where they belong: one with a limit in seconds or bytes runs in a child process that can be killed.

A plain subprocess, so that the workers of a cluster may have one too. It gets the job and the keys through a pipe. It
serves one trial after another until it is killed or its pipe ends, in the middle of a trial too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from typing import Final

import cloudpickle  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from dpselect.tuning.limits import Limits
from dpselect.tuning.machine import Candidate
from dpselect.tuning.orphans import end_with_pipe
from dpselect.tuning.trial import Job, attempt
from dpselect.tuning.worker_check import UnequalWorkerError, expected_of, packed, unpacked

__all__ = ["ChildDiedError", "check_child", "perform", "serve", "stop_children"]

_START: Final = "import sys, pickle; sys.path[:] = {path!r}; from dpselect.tuning.supervised import serve; serve()"
_LOADED: Final = b"loaded"
_GRACE: Final = 10.0
"""Seconds after its limit at which a child ends itself whose worker has died and left the pipe to another process."""


class ChildDiedError(BaseException):
    """The child process died by itself: the attempt is lost. Not an `Exception`: the trial has not failed."""


class _Child:
    """A process that runs trials, started and with the job loaded, for the thread that made it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.busy = False
        self._owner = threading.get_ident()
        shipped = _by_value(job)
        questions, self._questions = Pipe(duplex=False)
        self._answers, answers = Pipe(duplex=False)
        with questions, answers:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path)],
                stdin=questions.fileno(),
                stdout=answers.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            self._send(shipped)
            said = self._receive(None)  # what follows is the trial's own time
            if said != _LOADED:
                raise UnequalWorkerError(said.decode())
        except BaseException:
            self.stop()
            raise

    def perform(self, index: int, key: bytes, limits: Limits) -> Candidate | None:
        self.busy = True
        try:
            self._send(pickle.dumps((index, key)))
            candidate: Candidate | None = pickle.loads(self._receive(limits.seconds))
            return candidate
        finally:
            self.busy = False

    def stop(self) -> None:
        """Kill it and what it has started. Another thread leaves the pipes to the one that reads from them."""
        if self._process.returncode is None:  # else its number may be another's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)  # its own group: see start_new_session
            self._process.kill()
            self._process.wait()
        if threading.get_ident() == self._owner:
            self._questions.close()
            self._answers.close()

    def _send(self, message: bytes) -> None:
        try:
            self._questions.send_bytes(message)
        except OSError:
            raise ChildDiedError from None

    def _receive(self, seconds: float | None) -> bytes:
        """A message, or `TimeoutError` when none comes in time."""
        if not self._answers.poll(seconds):
            raise TimeoutError
        try:
            return self._answers.recv_bytes()
        except (EOFError, OSError):
            raise ChildDiedError from None


def _by_value(job: Job) -> bytes:
    """The job, with what a worker process imported of the script that was started: the child does not know it."""
    script = sys.modules.get("__mp_main__")
    if script is not None:
        cloudpickle.register_pickle_by_value(script)
    # on this machine, so that files need no second look
    return packed(expected_of(replace(job, reads=())), cloudpickle.dumps(job))


class _Here(threading.local):
    """The child of each thread."""

    child: _Child | None = None


_here: Final = _Here()
_children: Final[set[_Child]] = set()


def check_child(job: Job) -> None:
    """Start this thread's child, if the job's limits need one, so that the first trial finds it running.

    Raises `ChildDiedError` if a child cannot load the job, `UnequalWorkerError` if it runs other code than this, and
    anything that pickling raises.
    """
    if job.limits is not None and job.limits.supervised:
        _child_here(job)


def perform(job: Job, index: int, key: bytes) -> Candidate | None:
    """Run one trial, in this thread's child if it has a limit in seconds or bytes. None is a failed run.

    See `attempt` for the runs that fail. A run that meets its limit fails too. Raises `ChildDiedError` when the child
    died by itself and the attempt is lost.
    """
    if job.limits is None or not job.limits.supervised:
        return attempt(job, index, key)
    child = _child_here(job)
    try:
        return child.perform(index, key, job.limits)
    except TimeoutError:
        _stop(child)
        return None
    except BaseException:
        _stop(child)
        raise


def stop_children(job: Job | None = None) -> None:
    """End the children of every thread, and with them the copies of the job that they hold.

    With a job, only the children that hold it and those that are idle end. The trials of other searches continue.
    """
    for child in list(_children):
        if job is None or child.job is job or not child.busy:
            _stop(child)


def _child_here(job: Job) -> _Child:
    child = _here.child
    if child is None or child.job is not job or child not in _children:
        if child is not None:
            _stop(child)
        child = _here.child = _Child(job)
        _children.add(child)
    return child


def _stop(child: _Child) -> None:
    _children.discard(child)
    child.stop()
    if _here.child is child:
        _here.child = None


def serve() -> None:
    """The child's side: answer every trial with its candidate, until the pipe ends."""
    questions, answers = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    end_with_pipe(questions.fileno())
    with open(os.devnull, "r+b", buffering=0) as null:
        for descriptor in (0, 1, 2):  # what the trial prints must not get among the answers
            os.dup2(null.fileno(), descriptor)
    try:
        job = unpacked(questions.recv_bytes())
    except UnequalWorkerError as error:
        answers.send_bytes(str(error).encode())
        return
    limits = job.limits or Limits()
    with threadpool_limits(1), contextlib.suppress(EOFError, BrokenPipeError):
        if limits.memory_bytes is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
        answers.send_bytes(_LOADED)
        while True:
            index, key = pickle.loads(questions.recv_bytes())
            if limits.seconds is not None:
                signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE)
            answer = pickle.dumps(attempt(job, index, key))
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            answers.send_bytes(answer)
