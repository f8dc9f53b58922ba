"""The backends of joblib: how to reach each, tell that it is gone, ask it for resources, and leave it."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, SupportsFloat
from weakref import WeakSet

import joblib
from joblib.executor import get_memmapping_executor

from dpselect.errors import ArgumentError, StudyError, integer, missing_extra, number
from dpselect.tuning.remote_trial import Manners, Parcel, forget
from dpselect.tuning.worker_check import ExecutorLostError

_DASK_TASKS: Final = 32
"""Tasks that the scheduler has at least, because its round trips take longer than short trials."""

__all__ = [
    "Cluster",
    "ClusterOptions",
    "dask_cluster",
    "hushed",
    "loky_cluster",
    "registered_cluster",
    "started",
    "within",
]


@dataclass(frozen=True)
class ClusterOptions:
    """The fields of `JoblibExecutor` that a cluster is opened with. See there."""

    backend: str = "loky"
    workers: int | None = None
    address: str | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    quiet: bool = True
    patience: SupportsFloat = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "patience", number("patience", self.patience, above=0.0, at_most=threading.TIMEOUT_MAX)
        )
        if not isinstance(self.backend, str):
            raise TypeError(f"backend must be the name of a backend of joblib, got {type(self.backend).__name__}")
        if self.backend in ("threading", "sequential", "multiprocessing"):
            raise ArgumentError(
                f"backend {self.backend!r} runs trials in this process or hangs when a worker dies; use 'loky'"
            )
        if self.workers is not None:
            # The tasks of a single worker joblib runs in the calling process; ProcessExecutor(workers=1) does not.
            integer("workers", self.workers, at_least=2)
        if self.address is not None and self.backend not in ("dask", "ray"):
            raise ArgumentError("address goes with backend 'dask' or 'ray'")
        if self.resources and self.backend not in ("dask", "ray"):
            raise ArgumentError("resources go with backend 'dask' or 'ray'")
        wanted = {
            str(name): number(f"resources[{name!r}]", much, at_least=0.0) for name, much in self.resources.items()
        }
        object.__setattr__(self, "resources", wanted)


class Cluster:
    """A place that runs tasks, for the time of one session: processes of joblib's own, or someone else's backend.

    `own`: whether its processes serve this session only. `home`: whether its workers are threads of this process.
    `lost`: why it takes no more tasks, where that is known.
    """

    home = False
    lost = ""

    def __init__(self, workers: int, *, own: bool, **settings: Any) -> None:
        self.own = own
        self._workers = workers
        self._settings = settings

    @property
    def workers(self) -> int:
        """About how many tasks run at once."""
        return self._workers

    def backend(self) -> Mapping[str, Any]:
        """The arguments of `joblib.Parallel` for one call, `n_jobs` included."""
        return {"n_jobs": self._workers, **self._settings}

    def alive(self) -> bool:
        """Whether it still takes tasks."""
        return True

    def everywhere(self, task: Callable[[Parcel, Manners], Any], manners: Manners) -> list[Any] | None:  # noqa: ARG002
        """The result of a task on each worker, None if the workers are not known."""
        return None


@contextmanager
def loky_cluster(options: ClusterOptions, _: Parcel) -> Iterator[Cluster]:
    """Processes of this machine, which end with the search."""
    workers = max(2, joblib.cpu_count()) if options.workers is None else options.workers
    try:
        # no copies of the data in files of a temporary folder; one dead worker ends all, so few trials are with them
        yield Cluster(workers, own=True, backend="loky", max_nbytes=None, pre_dispatch="n_jobs")
    finally:
        # Otherwise they would keep the job, and the data in it, for minutes.
        get_memmapping_executor(workers).terminate(kill_workers=True)


@contextmanager
def registered_cluster(options: ClusterOptions, _: Parcel) -> Iterator[Cluster]:
    """Anything that is registered with joblib by this name."""
    yield Cluster(options.workers or max(2, joblib.cpu_count()), own=False, backend=options.backend)


@contextmanager
def dask_cluster(options: ClusterOptions, parcel: Parcel) -> Iterator[Cluster]:
    """The Dask cluster at an address, or that of the caller's client."""
    try:
        from distributed import Client, get_client
    except ImportError:
        raise missing_extra("dask", "an executor on Dask") from None
    with hushed("distributed", "distributed.client", quiet=options.quiet):
        try:
            if options.address is None:
                client = get_client()
            else:  # which may wait without end where a scheduler takes connections and says nothing
                client = within(float(options.patience), lambda: Client(options.address, set_as_default=False))
        except (OSError, ValueError):  # a timeout is an OSError
            where = "address= or a Dask client" if options.address is None else options.address
            raise StudyError(f"no Dask scheduler: {where} was not found, or does not answer") from None
        cluster = None
        try:
            cluster = _Dask(client, options, parcel)
            cluster.check_resources()
            with cluster.watched():
                yield cluster
        finally:
            if cluster is not None and not cluster.lost and client.status == "running":  # else it would wait for it
                with contextlib.suppress(Exception):
                    # not client.run, which has no timeout: a worker may have died just now
                    client.sync(client._run, forget, parcel.name, callback_timeout=10.0)
            if options.address is not None:
                with contextlib.suppress(Exception):
                    client.close(timeout=2)


def started(task: Callable[[], Any]) -> Future[Any]:
    """A task in a thread of its own, which is left to itself where no one waits for it any more."""
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(task())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, name="dpselect-cluster", daemon=True).start()
    return found


def within(seconds: float, task: Callable[[], Any]) -> Any:
    """Return the result of a task or raise its error. Raises `TimeoutError` if it takes longer."""
    return started(task).result(timeout=seconds)


class _Dask(Cluster):
    def __init__(self, client: Any, options: ClusterOptions, parcel: Parcel) -> None:
        super().__init__(options.workers or 0, own=False)
        self._client = client
        self._options = options
        self._parcel = parcel
        self._patience = float(options.patience)
        self._submit: dict[str, Any] = {"resources": dict(options.resources)} if options.resources else {}
        self._pending: WeakSet[Future[Any]] = WeakSet()
        self.home = any(name.startswith("inproc://") for name in self._able())

    @property
    def workers(self) -> int:
        return self._workers or max(2, sum(worker["nthreads"] for worker in self._known().values()))

    def _known(self) -> dict[str, Any]:
        """The workers by their addresses."""
        try:
            found = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=self._patience)
        except Exception:  # it has timed out, or the connection has ended
            raise ExecutorLostError(self._silent) from None
        return dict(found["workers"])

    @property
    def _silent(self) -> str:
        return (
            f"the Dask scheduler has not answered for {self._patience:g} s (patience=): see whether it runs, and "
            "resume the search there or with another executor"
        )

    def _able(self) -> list[str]:
        """Addresses of the workers with what one trial needs."""
        wanted = self._options.resources.items()
        return [
            address
            for address, worker in self._known().items()
            if all(worker["resources"].get(name, 0) >= much for name, much in wanted)
        ]

    def check_resources(self) -> None:
        """Refuse resources that no worker has, for which tasks would wait forever. A cluster may have no worker yet."""
        if not self._known():
            with contextlib.suppress(Exception):  # a task, for which clusters that adapt start a worker
                self._client.submit(_as_it_is, self._parcel.name, **self._submit).result(timeout=self._patience)
        if not self._able():
            found = "no Dask worker has the resources that a trial asks for"
            raise StudyError(found if self._known() else f"no Dask worker within {self._patience:g} s (patience=)")

    def everywhere(self, task: Callable[[Parcel, Manners], Any], manners: Manners) -> list[Any]:
        sent, found = self._sent(self._submit), []
        asked = {
            address: self._client.submit(
                task, sent, manners, workers=[address], key=secrets.token_hex(16), **self._submit
            )
            for address in self._able()
        }
        for address, answer in asked.items():
            while True:
                try:
                    found.append(answer.result(timeout=min(1.0, self._patience)))
                    break
                except TimeoutError:
                    if self.lost:
                        raise ExecutorLostError(self.lost) from None
                    if address not in self._known():  # it has left, and no one else takes its task
                        break
        return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Meanwhile a scheduler that has answered nothing for so long is given up, and with it all tasks."""
        if self.home:  # a part of this process, which trials may keep busy
            yield
            return
        done = threading.Event()

        def watch() -> None:
            answered = time.monotonic()
            while not done.wait(self._patience / 4):
                with contextlib.suppress(Exception):
                    self._client.sync(self._client.scheduler.identity, n_workers=0, callback_timeout=self._patience / 2)
                    answered = time.monotonic()
                if time.monotonic() - answered >= self._patience and not done.is_set():
                    self.lost = self._silent
                    for task in list(self._pending):
                        with contextlib.suppress(InvalidStateError):
                            task.set_exception(ConnectionError())

        thread = threading.Thread(target=watch, name="dpselect-scheduler", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()

    def backend(self) -> Mapping[str, Any]:
        submit = self._submit
        backend = _dask_backend(self._client, submit, self._workers or self.workers, self._pending)
        # What joblib does with scatter=[parcel], but for what `_sent` is about. The parcel is found by its identity, so
        # it must be this object in every task.
        backend._scatter = [self._parcel]
        backend.data_futures = {id(self._parcel): self._sent(submit)}
        return {"backend": backend, "n_jobs": -1, "pre_dispatch": max(_DASK_TASKS, 2 * backend.room)}

    def _sent(self, submit: Mapping[str, Any]) -> Any:
        """The parcel as the result of a task, which Dask makes again when the worker that holds it dies.

        `Client.scatter` is not used. It waits without end if a worker or the scheduler dies at that moment, and the
        scattered parcel is lost with the last worker that has it.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a large task, meant for graphs that hold data many times
            return self._client.submit(_as_it_is, self._parcel, key=f"job-{secrets.token_hex(16)}", **submit)

    def alive(self) -> bool:
        if self.lost:
            return False
        try:
            self._client.sync(self._client.scheduler.identity, callback_timeout=5.0)
        except Exception:
            return False
        return str(self._client.status) == "running"


def _as_it_is(argument: Any) -> Any:
    return argument


def _dask_backend(client: Any, submit: dict[str, Any], workers: int, pending: WeakSet[Future[Any]]) -> Any:
    from joblib._dask import DaskDistributedBackend

    class DaskBackend(DaskDistributedBackend):  # type: ignore[misc]
        """joblib's, which does not tell `Parallel` of a task whose worker died: it would wait for ever."""

        room = workers

        def effective_n_jobs(self, n_jobs: int) -> int:  # noqa: ARG002
            return workers  # 2 or more: of one job `Parallel` thinks that it may as well run in the calling process

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            pending.add(future)
            future.add_done_callback(lambda done: callback(done) if done.exception() else None)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, Future):
                raise out.exception() or RuntimeError
            return super().retrieve_result_callback(out)

    return DaskBackend(client=client, **submit)


@contextmanager
def hushed(*loggers: str, quiet: bool) -> Iterator[None]:
    """Schedulers warn of each worker that dies and each task that they run again."""
    found = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in found]
    if quiet:
        for logger in found:
            logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(found, levels, strict=True):
            logger.setLevel(level)
