"""Trials on Ray: tasks in the worker processes that Ray keeps, and a cluster that answers nothing given up."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from dpselect.errors import StudyError, missing_extra
from dpselect.tuning.joblib_clusters import ClusterOptions, hushed, started, within
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.remote_trial import Answer, Manners, Parcel, Trial, greet, kept_for, run_trials
from dpselect.tuning.task_session import GREETING_SECONDS, TaskCluster, WorkerDiedError
from dpselect.tuning.worker_check import ExecutorLostError, Unequal

__all__ = ["ray_cluster"]

_KEPT_SECONDS: Final = 60.0
"""How long a worker process of Ray keeps the job after its last trial, for Ray keeps the process."""

_FOLDER_BYTES: Final = 38
"""Ray puts sockets some 64 bytes below its folder, and the path of a socket has at most 107 (103 on macOS)."""


@contextmanager
def ray_cluster(options: ClusterOptions, parcel: Parcel, threads: int | None) -> Iterator[TaskCluster]:
    """The Ray that is named, the caller's, or a new one, which ends with the search."""
    try:
        import ray
    except ImportError:
        raise missing_extra("ray", "an executor on Ray") from None
    with hushed("ray", quiet=options.quiet), contextlib.ExitStack() as undo:
        cluster, silent = None, False
        if _left_alone.is_set():
            _disconnect(ray, float(options.patience))
        ours = not ray.is_initialized() and options.address is None
        if not ray.is_initialized():
            settings = {
                "log_to_driver": not options.quiet,
                "logging_level": logging.ERROR if options.quiet else logging.INFO,
                "configure_logging": not options.quiet,
            }
            undo.callback(lambda: _leave(ray, lost=silent or (cluster is not None and bool(cluster.lost))))
            try:
                if options.address is not None:  # of a cluster that may take connections and say nothing
                    within(float(options.patience), lambda: ray.init(address=options.address, **settings))
                else:
                    folder = undo.enter_context(_folder())
                    place = {"address": "local", "num_cpus": options.workers, "include_dashboard": False}
                    with _kept_sigterm():
                        ray.init(**place, _temp_dir=folder, **settings)
            except Exception as error:  # Ray raises that itself when its processes start too slowly
                silent = isinstance(error, TimeoutError)
                raise StudyError(f"no Ray cluster: {options.address or 'a local one'} could not be reached") from None
        try:
            cluster = _Ray(ray, options, parcel, threads)
            cluster.wait_for_room(new=ours)
        except ExecutorLostError:
            silent = True
            raise
        with cluster.watched():
            try:
                yield cluster
            finally:
                cluster.abandon()


_left_alone: Final = threading.Event()
"""Whether this process is still connected to a Ray that was given up."""


def _leave(ray: Any, *, lost: bool) -> None:
    """Disconnect, but not from a cluster that answers nothing. Ray would wait for it without end.

    It would wait when this process ends, too. Processes that Ray has started here end then anyway.
    """
    if lost:
        atexit.unregister(ray.shutdown)
        _left_alone.set()
    else:
        ray.shutdown()


def _disconnect(ray: Any, patience: float) -> None:
    """Leave what an earlier search has given up. Raises `ExecutorLostError` where it still answers nothing."""
    try:
        within(patience, ray.shutdown)
    except TimeoutError:
        raise ExecutorLostError(_silent(patience)) from None
    atexit.register(ray.shutdown, True)  # as Ray's own does
    _left_alone.clear()


def _silent(patience: float) -> str:
    return (
        f"the Ray cluster has not answered for {patience:g} s (patience=): see whether it runs, and resume the search "
        "there or with another executor"
    )


@contextmanager
def _kept_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM, because Ray sets one that exits with status 15."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _folder() -> Iterator[str]:
    """A place for the folder of a Ray of our own, gone in the end.

    Ray's logs, which it would leave in a folder for all to read, count tasks, and so tell the number of runs. It lets
    everybody into the folder that it is given, so that one is inside of another.
    """
    outer = tempfile.mkdtemp(prefix="ray-")
    if len(os.fsencode(outer)) > _FOLDER_BYTES and os.path.isdir("/tmp"):
        os.rmdir(outer)
        outer = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        yield os.path.join(outer, "r")
    finally:
        shutil.rmtree(outer, ignore_errors=True)


class _Ray(TaskCluster):
    def __init__(self, ray: Any, options: ClusterOptions, parcel: Parcel, threads: int | None) -> None:
        self._ray = ray
        self._options = options
        self._parcel = parcel
        self._manners = Manners(options.quiet, threads, own=False)
        self.patience = float(options.patience)
        self._pending: dict[Future[Any], Any] = {}
        self._given_up: Future[None] = Future()
        self._sent: _Stored | None = None
        self._wanted = {"num_cpus": 1.0, **options.resources}
        self._fits = 0
        self._checked = self._roomy = time.monotonic()
        builtin = {name: much for name, much in self._wanted.items() if name in ("num_cpus", "num_gpus", "memory")}
        others = {name: much for name, much in self._wanted.items() if name not in builtin}
        self._task = ray.remote(_run).options(**builtin, resources=others, max_retries=0, name="trial")
        self._greeting = ray.remote(_greet).options(**builtin, resources=others, max_retries=REPLAYS, name="greeting")
        self._probe = ray.remote(_nothing).options(**builtin, resources=others, max_retries=0, name="probe")
        self._count()

    @property
    def workers(self) -> int:
        return min(self._options.workers or self._fits, max(self._fits, 1))

    @property
    def room(self) -> int:
        return self._options.workers or 2 * max(self._fits, 1)

    def _count(self) -> int:
        """How many trials fit into the nodes that run."""
        try:
            nodes = within(self.patience, self._ray.nodes)
        except TimeoutError:
            self._give_up()
            raise ExecutorLostError(self.lost) from None
        named = {"num_cpus": "CPU", "num_gpus": "GPU"}
        needed = {named.get(name, name): much for name, much in self._wanted.items() if much > 0}
        self._fits = sum(
            min((int(node["Resources"].get(name, 0) / much) for name, much in needed.items()), default=1)
            for node in nodes
            if node["Alive"]
        )
        return self._fits

    def wait_for_room(self, *, new: bool) -> None:
        """Wait until a node has room for a trial. A Ray of our own gets no further nodes."""
        if self._fits:
            return
        asked = None if new else self.unless_lost(self._probe.remote)
        end = time.monotonic() + (0.0 if new else self.patience)
        while not self._count():
            if time.monotonic() >= end:
                if asked is not None:
                    with contextlib.suppress(Exception):
                        within(self.patience, partial(self._ray.cancel, asked))
                waited = "" if new else f" and none has come for {self.patience:g} s (patience=)"
                raise StudyError(
                    f"no node of the Ray cluster has room for a trial with resources {self._wanted}{waited}: "
                    "start one, or ask for less in resources="
                )
            time.sleep(min(0.5, self.patience / 10))

    def _data(self) -> _Stored:
        if self._sent is None:
            self._sent = _Stored(self._parcel.name, self.unless_lost(lambda: self._ray.put(self._parcel)))
        return self._sent

    def greetings(self) -> list[Unequal | None]:
        try:
            parcel = self._data()
            answers = [
                self.unless_lost(partial(self._greeting.remote, parcel, self._manners)) for _ in range(self.workers)
            ]
        except ConnectionError:
            raise ExecutorLostError(self.lost) from None
        found, seconds = [], max(self.patience, GREETING_SECONDS)
        end = time.monotonic() + seconds
        for answer in answers:
            try:
                found.append(self.unless_lost(partial(self._got, answer, max(0.1, end - time.monotonic()))))
            except self._ray.exceptions.GetTimeoutError:  # it proves itself before its first trial
                break
            except ConnectionError:
                raise ExecutorLostError(self.lost) from None
            except Exception as error:
                raise StudyError(f"the cluster does not run tasks ({type(error).__name__})") from None
        if not found:
            raise StudyError(
                f"no worker of the Ray cluster has answered within {seconds:g} s: all are busy. Wait until one is "
                "free, or ask with a longer patience="
            )
        return found

    def _got(self, answer: Any, seconds: float) -> Any:
        return self._ray.get(answer, timeout=seconds)

    def submit(self, trials: tuple[Trial, ...]) -> Future[Answer | Unequal | None]:
        answer: Future[Answer | Unequal | None] = Future()
        try:
            task = self.unless_lost(lambda: self._task.remote(self._data(), trials, self._manners))
            done = task.future()
        except Exception as error:
            answer.set_exception(error)
            return answer
        self._pending[answer] = task
        done.add_done_callback(lambda done: self._settle(done, answer))
        return answer

    def _settle(self, done: Any, answer: Future[Answer | Unequal | None]) -> None:
        """Called in a thread of Ray's."""
        self._pending.pop(answer, None)
        errors = self._ray.exceptions
        not_begun = (errors.TaskCancelledError, errors.TaskUnschedulableError, errors.RayTaskError, ConnectionError)
        with contextlib.suppress(InvalidStateError):
            try:
                answer.set_result(done.result())
            except not_begun as error:
                answer.set_exception(error)
            except errors.RayError:  # of its worker, its node, or the result on its way
                answer.set_exception(WorkerDiedError())
            except BaseException as error:
                answer.set_exception(error)

    def check(self) -> None:
        now = time.monotonic()
        if now - self._checked < min(2.0, self.patience / 4):
            return
        self._checked = now
        if self._count():
            self._roomy = now
        elif now - self._roomy > self.patience:
            raise ExecutorLostError(
                f"no node of the Ray cluster has had room for a trial for {self.patience:g} s (patience=). Resume the "
                "search when there is one, or with another executor"
            )

    def alive(self) -> bool:
        if self.lost:
            return False
        try:
            return bool(self._ray.is_initialized() and within(min(5.0, self.patience), self._ray.cluster_resources))
        except Exception:
            return False

    def abandon(self) -> None:
        """End the workers that still run trials."""
        tasks, self._pending = list(self._pending.values()), {}
        for task in () if self.lost else tasks:
            with contextlib.suppress(Exception):
                self.unless_lost(partial(self._ray.cancel, task, force=True))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Meanwhile a cluster that has answered nothing for so long is given up, and with it all tasks."""
        done = threading.Event()

        def asked() -> None:
            self._ray.cluster_resources()  # of the head
            self._ray.put(0)  # in the store of this node, which its raylet keeps

        def watch() -> None:
            while not done.wait(self.patience / 4):
                answer = started(asked)  # an error is an answer too
                if not wait([answer], timeout=self.patience).done and not done.is_set():
                    self._give_up()
                    return

        threading.Thread(target=watch, name="dpselect-ray", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _give_up(self) -> None:
        self.lost = _silent(self.patience)
        with contextlib.suppress(InvalidStateError):
            self._given_up.set_result(None)

    def unless_lost(self, task: Callable[[], Any]) -> Any:
        """Return the result of a task or raise its error. Raises `ConnectionError` once the cluster is given up."""
        answer = started(task)
        wait([answer, self._given_up], return_when=FIRST_COMPLETED)
        if not answer.done():
            raise ConnectionError
        return answer.result()


class _Stored(Parcel):
    """A parcel in Ray's store, which a process fetches when it loads the job."""

    def __init__(self, name: bytes, sent: Any) -> None:
        super().__init__(b"", name)
        self._sent = sent

    @property
    def content(self) -> bytes | memoryview:
        import ray

        fetched: Parcel = ray.get(self._sent)
        return fetched.content

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:  # copies: data that travel
        return _Stored, (self.name, self._sent)


def _run(parcel: _Stored, trials: tuple[Trial, ...], manners: Manners) -> Any:
    with kept_for(_KEPT_SECONDS, parcel.name):
        return run_trials(parcel, trials, manners)


def _greet(parcel: _Stored, manners: Manners) -> Any:
    with kept_for(_KEPT_SECONDS, parcel.name):
        return greet(parcel, manners)


def _nothing() -> None:
    """For which a cluster that grows starts a node."""
