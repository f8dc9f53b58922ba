"""Trials run in this process or in worker processes. The result depends neither on which, nor on scheduling."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Literal, Protocol

from threadpoolctl import ThreadpoolController

from dpselect.errors import ArgumentError, StartingProcessError, StudyError, integer
from dpselect.privacy.boundary import silence
from dpselect.randomness.process_start import HOW_TO_START
from dpselect.tuning.machine import Candidate
from dpselect.tuning.orphans import end_with_parent, leave_interrupts_to_the_tuner
from dpselect.tuning.supervised import ChildDiedError, check_child, perform, stop_children
from dpselect.tuning.trial import Job
from dpselect.tuning.worker_check import ExecutorLostError, Unequal, UnequalWorkerError, expected_of, packed, unpacked

__all__ = ["Attempt", "Executor", "ExecutorLostError", "InlineExecutor", "ProcessExecutor", "RunningExecutor"]

_STARTED: Final = "started"
_READY: Final = "ready"
_NOT_STARTED: Final = (
    "a worker process ended while it was being started. Such a process runs the script from the top, and a search that "
    f"begins there again is refused: {HOW_TO_START}"
)
_UNLOADABLE: Final = (
    "a worker process could not load the objective; import what it needs in a module the worker can reach, and try "
    "ProcessExecutor(quiet=False) on public data to see why"
)


@dataclass(frozen=True, repr=False)
class Attempt:
    """The result of one attempt at a trial: done, with a candidate or with none (a failed run), or lost."""

    index: int
    candidate: Candidate | None = None
    lost: bool = False


class RunningExecutor(Protocol):
    """A running executor."""

    def run(self, trials: deque[tuple[int, bytes]]) -> Iterator[Attempt]:
        """Take (index, key) from the left until none is left and none is under way. The caller may append meanwhile."""
        ...


class Executor(Protocol):
    """Runs the trials of one job."""

    def session(self, job: Job) -> AbstractContextManager[RunningExecutor]:
        """Start, and stop in the end. Raises before anything is drawn if the job cannot run here."""
        ...


@dataclass(frozen=True)
class InlineExecutor:
    """An executor that runs one trial after another in this process.

    If the process dies in a trial, the trial counts as lost when the search is resumed.

    Args:
        quiet: discard what trials print, warn and log, because the number of such lines would tell the number of runs.
            It swaps `sys.stdout` and `sys.stderr` and disables logging while a trial runs. Only `ProcessExecutor`
            discards what compiled code writes to the file descriptors themselves.
        threads: the number of threads of the numerical libraries (None: no limit), so that a trial gives the same value
            as in a worker process.
    """

    quiet: bool = True
    threads: int | None = 1

    @contextmanager
    def session(self, job: Job) -> Iterator[RunningExecutor]:
        """A session in this process.

        Raises, when trials need a process of their own because of their limits, `ArgumentError` if the job cannot be
        pickled and `StudyError` if that process cannot load it.
        """
        with limited_threads(self.threads):
            try:
                try:
                    check_child(job)
                except ChildDiedError:
                    raise StudyError(_UNLOADABLE) from None
                except UnequalWorkerError:
                    raise
                except Exception as error:
                    raise ArgumentError(f"objective must be picklable for limits ({type(error).__name__})") from None
                yield _InlineSession(job, self.quiet)
            finally:
                stop_children()


class _InlineSession:
    def __init__(self, job: Job, quiet: bool) -> None:
        self._job = job
        self._quiet = quiet

    def run(self, trials: deque[tuple[int, bytes]]) -> Iterator[Attempt]:
        while trials:
            index, key = trials.popleft()
            try:
                with silence() if self._quiet else nullcontext():
                    outcome = Attempt(index, perform(self._job, index, key))
            except ChildDiedError:
                outcome = Attempt(index, lost=True)
            yield outcome


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    return ThreadpoolController()


def limited_threads(threads: int | None) -> AbstractContextManager[Any]:
    """Limit the numerical libraries that are loaded. None is no limit.

    Looking for them takes milliseconds, and is of use only when something was imported since.
    """
    return nullcontext() if threads is None else _libraries(len(sys.modules)).limit(limits=threads)


@dataclass(frozen=True)
class ProcessExecutor:
    """An executor that runs trials in worker processes of its own.

    The objective must be picklable. Workers get it, the space and each trial's key through a pipe, never through their
    arguments. A worker that dies loses its trial, which the tuner replays. A new worker replaces it.

    A script that calls `tune` needs the usual `if __name__ == "__main__":` guard. Without it `tune` raises
    `StartingProcessError`, in each worker and here, before anything is drawn or charged (with a `SharedRelease`, after
    that). `JoblibExecutor` needs no guard.

    Args:
        workers: the number of processes, at least 1.
        quiet: point the standard output and error of the workers at the null device.
        threads: the number of threads of the numerical libraries in each worker. None: no limit.
        start_method: how a process starts: "spawn" or "forkserver".

    Raises:
        ArgumentError: for a number of workers below 1 or another `start_method`.
        TypeError: for a number of workers that is not an integer.
    """

    workers: int = 2
    quiet: bool = True
    threads: int | None = 1
    start_method: Literal["spawn", "forkserver"] = "spawn"

    def __post_init__(self) -> None:
        integer("workers", self.workers, at_least=1)
        if self.start_method not in ("spawn", "forkserver"):
            raise ArgumentError(f"start_method must be 'spawn' or 'forkserver', got {self.start_method!r}")

    @contextmanager
    def session(self, job: Job) -> Iterator[RunningExecutor]:
        """Start the workers and wait until each has loaded the job.

        Raises `ArgumentError` if objective or space cannot be pickled. Raises `StudyError` if a worker cannot load them
        or is not equal to this process (see `Execution.reads`, and the page on executors). Raises
        `StartingProcessError` if a worker ends before that: see `dpselect.randomness.process_start`.
        """
        expected = expected_of(job)
        try:
            shipped = packed(expected, pickle.dumps(job))
        except Exception as error:
            raise ArgumentError(f"objective must be picklable for worker processes ({type(error).__name__})") from None
        pool = _Pool(self, shipped)
        try:
            pool.check_loaded()
            yield pool
        finally:
            pool.stop()


@dataclass(eq=False, repr=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    index: int | None = None


class _Pool:
    def __init__(self, executor: ProcessExecutor, shipped: bytes) -> None:
        self._context: Any = multiprocessing.get_context(executor.start_method)
        self._settings = (executor.quiet, executor.threads)
        self._shipped = shipped
        self._workers: list[_Worker] = []
        try:
            for _ in range(executor.workers):
                self._workers.append(self._start())
        except (ConnectionError, EOFError):  # the fork server itself runs the script
            self.stop()
            raise StartingProcessError(_NOT_STARTED) from None
        except BaseException:
            self.stop()
            raise

    def check_loaded(self) -> None:
        for worker in self._workers:
            if self._receive(worker) != _STARTED:
                raise StartingProcessError(_NOT_STARTED)
        for worker in self._workers:
            answer = self._receive(worker)
            if isinstance(answer, Unequal):
                raise UnequalWorkerError(answer)
            if answer != _READY:
                raise StudyError(_UNLOADABLE)

    def run(self, trials: deque[tuple[int, bytes]]) -> Iterator[Attempt]:
        while True:
            for worker in self._workers:
                if trials and worker.index is None:
                    worker.index = trials[0][0]
                    with contextlib.suppress(OSError):  # a dead worker; found below
                        worker.pipe.send(trials[0])
                    trials.popleft()
            busy = [worker for worker in self._workers if worker.index is not None]
            if not busy:
                return
            ready = set(wait([handle for worker in busy for handle in (worker.pipe, worker.process.sentinel)]))
            for worker in busy:
                if worker.pipe in ready or worker.process.sentinel in ready:
                    outcome = self._outcome(worker)
                    if outcome is not None:
                        yield outcome

    def _outcome(self, worker: _Worker) -> Attempt | None:
        message = self._receive(worker)
        if isinstance(message, Unequal):
            raise UnequalWorkerError(message)
        if message in (_STARTED, _READY):
            return None
        index = worker.index
        assert index is not None
        worker.index = None
        if message is not None:
            return Attempt(index, message[0])
        self._replace(worker)
        return Attempt(index, lost=True)

    @staticmethod
    def _receive(worker: _Worker) -> Any:
        try:
            return worker.pipe.recv()
        except (EOFError, OSError):
            return None

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, *self._settings), daemon=True)
        process.start()
        theirs.close()
        with contextlib.suppress(OSError):  # it died at once; found when it is read from
            ours.send_bytes(self._shipped)
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> None:
        self._stop(worker)
        fresh = self._start()  # loads the job while the others work; its first message says so
        worker.process, worker.pipe = fresh.process, fresh.pipe

    def stop(self) -> None:
        for worker in self._workers:
            self._stop(worker)

    @staticmethod
    def _stop(worker: _Worker) -> None:
        worker.pipe.close()
        worker.process.terminate()
        worker.process.join(5.0)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()


def _serve(pipe: Connection, quiet: bool, threads: int | None) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.send(_STARTED)
    leave_interrupts_to_the_tuner()
    end_with_parent()
    if quiet:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
    if threads is not None:
        for library in ("OMP", "OPENBLAS", "MKL"):  # for libraries that the objective loads later
            os.environ[f"{library}_NUM_THREADS"] = str(threads)
    # A broken pipe or its end means that the tuner has died or has no more to do.
    with limited_threads(threads), contextlib.suppress(EOFError, BrokenPipeError):
        try:
            job = unpacked(pipe.recv_bytes())
            check_child(job)
            pipe.send(_READY)
            while True:
                index, key = pipe.recv()
                pipe.send((perform(job, index, key),))
        except UnequalWorkerError as error:
            pipe.send(Unequal(error))
