"""Trials as tasks of a cluster that has futures: short ones in groups, and each death counted for whom it may concern.

A task that dies with its worker is not run again by the cluster. The tuner decides that, so that a trial that kills its
workers has four attempts in all. A trial that was under way when a worker died runs again with no other such trial, and
its fourth attempt with no other trial at all. So a trial that does no harm is not blamed for one that does.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Final

from dpselect.errors import StudyError
from dpselect.tuning.executors import Attempt
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.remote_trial import Answer, Trial
from dpselect.tuning.worker_check import ExecutorLostError, Unequal, UnequalWorkerError

__all__ = ["GREETING_SECONDS", "UNLOADABLE", "TaskCluster", "TaskSession", "WorkerDiedError"]

UNLOADABLE: Final = (
    "a worker is no process of its own, or could not load the objective; install dpselect and what the objective "
    "imports on every worker, and try quiet=False on public data to see why"
)

_TASK_SECONDS: Final = 0.05
"""What a group of short trials takes about, so that the round trip of its task is a small part."""

_PROBE_SECONDS: Final = 0.5
"""Trials that take longer are sent one by one, before the first has come back."""

GREETING_SECONDS: Final = 60.0
"""How long the first answer of a worker may take at least: it may have to start, and import what it needs."""

_TURN: Final = 0.25
"""Seconds after which a session that waits looks whether its cluster still is there."""


class WorkerDiedError(Exception):
    """The worker died while it ran these trials."""


class TaskCluster(ABC):
    """A running cluster. `home`: its workers are threads of this process. `lost`: why it takes no more tasks."""

    home = False
    lost = ""
    patience: float

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many trials run at once, about."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many tasks are under way at most."""

    @abstractmethod
    def greetings(self) -> list[Unequal | None]:
        """The answer of each worker that answers in time, see `greet`."""

    @abstractmethod
    def submit(self, trials: tuple[Trial, ...]) -> Future[Answer | Unequal | None]:
        """Run trials, at most once. The future raises `WorkerDiedError`, or anything else if they have not begun."""

    @abstractmethod
    def check(self) -> None:
        """Raise `ExecutorLostError` if nothing has answered for `patience` seconds, or there has been no worker."""

    @abstractmethod
    def alive(self) -> bool:
        """Whether it still answers."""

    @abstractmethod
    def abandon(self) -> None:
        """Cancel what is under way."""


class TaskSession:
    """A running executor."""

    def __init__(self, cluster: TaskCluster) -> None:
        self._cluster = cluster
        self._done: SimpleQueue[Future[Answer | Unequal | None]] = SimpleQueue()
        self._under_way: dict[Future[Answer | Unequal | None], tuple[Trial, ...]] = {}
        self._losses: Counter[int] = Counter()
        self._alone: deque[Trial] = deque()
        self._size = 0  # of a group, 0 before it is known
        self._troubled: float | None = None

    def check_loaded(self) -> None:
        """Ask each worker whether it can load the job and is equal to the tuner."""
        for answer in self._cluster.greetings() or [None]:
            if not isinstance(answer, Unequal):
                raise StudyError(UNLOADABLE)
            if answer:
                raise UnequalWorkerError(answer)

    def run(self, trials: deque[tuple[int, bytes]]) -> Iterator[Attempt]:
        """Run the trials, and those that are appended meanwhile."""
        begun = time.monotonic()
        try:
            while trials or self._alone or self._under_way:
                if not self._size and time.monotonic() - begun > _PROBE_SECONDS:
                    self._size = 1
                self._send(trials)
                try:
                    done = self._done.get(timeout=_TURN)
                except Empty:
                    self._check()
                else:
                    yield from self._attempts(done)
        finally:
            if self._under_way:
                self._under_way.clear()
                self._done = SimpleQueue()
                self._cluster.abandon()

    def _send(self, trials: deque[tuple[int, bytes]]) -> None:
        if self._last_attempt():
            return
        workers = self._cluster.workers
        room = self._cluster.room if self._size else min(self._cluster.room, 2 * workers)
        self._send_alone(room)
        while len(self._under_way) < room:
            size = max(1, min(self._size, len(trials) // (2 * workers)))
            group: list[Trial] = []
            while trials and len(group) < size:
                trial = Trial(*trials.popleft())
                (self._alone if self._losses[trial.index] else group).append(trial)
            if not group:
                break
            self._submit(tuple(group))
        self._send_alone(room)

    def _send_alone(self, room: int) -> None:
        """Send a trial that was lost before, if there is room and none is under way."""
        if not self._alone or len(self._under_way) >= room or self._lost_under_way(1):
            return
        if self._losses[self._alone[0].index] < REPLAYS:
            self._submit((self._alone.popleft(),))

    def _lost_under_way(self, times: int) -> bool:
        """Whether a trial that was lost so often is under way."""
        return any(self._losses[trial.index] >= times for group in self._under_way.values() for trial in group)

    def _last_attempt(self) -> bool:
        """Whether a trial has its last attempt now, or waits for it until nothing is under way."""
        waiting = bool(self._alone) and self._losses[self._alone[0].index] >= REPLAYS
        if waiting and not self._under_way:
            self._submit((self._alone.popleft(),))
        return waiting or self._lost_under_way(REPLAYS)

    def _submit(self, group: tuple[Trial, ...]) -> None:
        future = self._cluster.submit(group)
        self._under_way[future] = group
        future.add_done_callback(self._done.put)

    def _attempts(self, done: Future[Answer | Unequal | None]) -> Iterator[Attempt]:
        group = self._under_way.pop(done)
        try:
            answer = done.result()
        except WorkerDiedError:
            self._losses.update(trial.index for trial in group)
            yield from [Attempt(trial.index, lost=True) for trial in group]
            return
        except BaseException as error:  # of the cluster: they have not begun, and Dask's CancelledError is one
            self._not_begun(group, error)
            return
        self._troubled = None
        if isinstance(answer, Unequal):
            raise UnequalWorkerError(answer)
        if answer is None:
            raise ExecutorLostError(UNLOADABLE)
        fits = _TASK_SECONDS * len(group) / max(answer.seconds, 1e-6)
        self._size = max(1, min(int(fits), 2 * max(self._size, 1)))
        yield from answer.attempts

    def _not_begun(self, group: tuple[Trial, ...], error: BaseException) -> None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        now = time.monotonic()
        self._troubled = now if self._troubled is None else self._troubled
        if self._cluster.lost or not self._cluster.alive():
            raise ExecutorLostError(self._cluster.lost or "the cluster is gone: resume the search when there is one")
        if now - self._troubled > self._cluster.patience:
            raise ExecutorLostError(
                f"the cluster has run no task for {self._cluster.patience:g} s (patience=, {type(error).__name__}). "
                "Resume the search there when it does, or with another executor"
            )
        time.sleep(_TURN)
        self._submit(group)

    def _check(self) -> None:
        if self._cluster.lost:
            raise ExecutorLostError(self._cluster.lost)
        self._cluster.check()
