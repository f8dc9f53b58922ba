"""What differs between joblib's backends: how to reach them, tell that they are gone, ask for resources, and leave."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, SupportsFloat
from weakref import WeakSet

import joblib
from joblib.executor import get_memmapping_executor

from dpselect.errors import ArgumentError, StudyError, integer, missing_extra, number
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.remote_trial import Manners, Parcel, forget
from dpselect.tuning.worker_check import ExecutorLostError

_DASK_TASKS: Final = 32
"""Tasks that the scheduler has at least, because its round trips take longer than short trials."""

_RAY_FOLDER_BYTES: Final = 38
"""Ray puts sockets some 64 bytes below this folder, and the path of a socket has at most 107 (103 on macOS)."""

__all__ = ["Cluster", "ClusterOptions", "cluster_of"]


@dataclass(frozen=True)
class ClusterOptions:
    """The fields of `JoblibExecutor` that a cluster is opened with; see there."""

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
    """A place that runs tasks, for the time of one session: processes of joblib's own, or somebody else's backend.

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
        """What a task returns on each worker; None where it cannot be said which they are."""
        return None


def cluster_of(options: ClusterOptions, parcel: Parcel) -> AbstractContextManager[Cluster]:
    """The cluster that an executor names, to run a job; left when done, and stopped if it was started here."""
    return {"loky": _loky, "dask": _dask, "ray": _ray}.get(options.backend, _registered)(options, parcel)


@contextmanager
def _loky(options: ClusterOptions, _: Parcel) -> Iterator[Cluster]:
    workers = max(2, joblib.cpu_count()) if options.workers is None else options.workers
    try:
        # no copies of the data in files of a temporary folder; one dead worker ends all, so few trials are with them
        yield Cluster(workers, own=True, backend="loky", max_nbytes=None, pre_dispatch="n_jobs")
    finally:
        # Otherwise they would keep the job, and the data in it, for minutes.
        get_memmapping_executor(workers).terminate(kill_workers=True)


@contextmanager
def _registered(options: ClusterOptions, _: Parcel) -> Iterator[Cluster]:
    yield Cluster(options.workers or max(2, joblib.cpu_count()), own=False, backend=options.backend)


@contextmanager
def _dask(options: ClusterOptions, parcel: Parcel) -> Iterator[Cluster]:
    try:
        from distributed import Client, get_client
    except ImportError:
        raise missing_extra("dask", "an executor on Dask") from None
    with _hushed("distributed", "distributed.client", quiet=options.quiet):
        try:
            if options.address is None:
                client = get_client()
            else:  # which may wait without end where a scheduler takes connections and says nothing
                client = _within(float(options.patience), lambda: Client(options.address, set_as_default=False))
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


def _within(seconds: float, task: Callable[[], Any]) -> Any:
    """What a task returns or raises; `TimeoutError` where it takes longer, and its thread is left to itself."""
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(task())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, name="dpselect-cluster", daemon=True).start()
    return found.result(timeout=seconds)


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
        """A task that asks for what no worker has would wait for ever; a cluster without workers may still get some."""
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
                    if address not in self._known():  # it has left, and nobody else takes its task
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

        Not by `Client.scatter`: that waits without end where a worker dies at that moment, or the scheduler, and what
        was scattered is lost with the last worker that has it.
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
def _ray(options: ClusterOptions, _: Parcel) -> Iterator[Cluster]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise missing_extra("ray", "an executor on Ray") from None
    register_ray()
    with contextlib.ExitStack() as undo:
        undo.enter_context(_hushed("ray", quiet=options.quiet))
        if not ray.is_initialized():
            if options.address is None:
                place = {"address": "local", "num_cpus": options.workers, "include_dashboard": False}
                place["_temp_dir"] = undo.enter_context(_ray_folder())
            else:
                place = {"address": options.address}
            undo.callback(ray.shutdown)
            try:
                with _kept_sigterm():
                    ray.init(
                        **place,
                        log_to_driver=not options.quiet,
                        logging_level=logging.ERROR if options.quiet else logging.INFO,
                        configure_logging=not options.quiet,
                    )
            except (OSError, ValueError, RuntimeError):
                raise StudyError(f"no Ray cluster: {options.address or 'a local one'} could not be reached") from None
        yield _Ray(ray, options)


@contextmanager
def _kept_sigterm() -> Iterator[None]:
    """Ray sets a handler that leaves with status 15; what SIGTERM means is for the program to say."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _ray_folder() -> Iterator[str]:
    """A place for the folder of a Ray of our own, gone in the end.

    Ray's logs, which it would leave in a folder for all to read, count tasks, and so tell the number of runs. It lets
    everybody into the folder that it is given, so that one is inside of another.
    """
    outer = tempfile.mkdtemp(prefix="ray-")
    if len(os.fsencode(outer)) > _RAY_FOLDER_BYTES and os.path.isdir("/tmp"):
        os.rmdir(outer)
        outer = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        yield os.path.join(outer, "r")
    finally:
        shutil.rmtree(outer, ignore_errors=True)


class _Ray(Cluster):
    def __init__(self, ray: Any, options: ClusterOptions) -> None:
        self._ray = ray
        wanted = {"num_cpus": 1.0, **options.resources}
        has = ray.cluster_resources()
        named = {"num_cpus": "CPU", "num_gpus": "GPU"}
        room = min(int(has.get(named.get(name, name), 0) / much) for name, much in wanted.items() if much > 0)
        workers = min(room, int(has.get("CPU", 0))) if options.workers is None else options.workers
        if workers < 1 or workers > room or workers > has.get("CPU", 0):
            # Ray would wait for ever for the actors that it cannot place.
            raise StudyError(f"the Ray cluster has no room for {max(workers, 1)} workers with resources {wanted}")
        builtin = {name: much for name, much in wanted.items() if name in ("num_cpus", "num_gpus", "memory")}
        others = {name: much for name, much in wanted.items() if name not in builtin}
        # A worker that dies is started again, and its task is run again with the same key.
        self._arguments = {**builtin, "resources": others, "max_restarts": -1, "max_task_retries": REPLAYS}
        super().__init__(workers, own=True)  # every search has actors, which are processes, of its own

    def backend(self) -> Mapping[str, Any]:
        # Of one job `Parallel` thinks that it may as well run in the calling process: two are at a single actor then.
        return {"backend": _ray_backend(self._ray, self._arguments, self.workers), "n_jobs": max(2, self.workers)}

    def alive(self) -> bool:
        try:
            return bool(self._ray.is_initialized() and self._ray.cluster_resources().get("CPU", 0) > 0)
        except Exception:
            return False


def _ray_backend(ray: Any, arguments: dict[str, Any], actors: int) -> Any:
    from joblib.pool import MemmappingPool, PicklingPool
    from ray.util.joblib.ray_backend import RayBackend
    from ray.util.multiprocessing.pool import Pool

    class PinnedRayBackend(RayBackend):  # type: ignore[misc]
        """Ray's, which gives results in the order that they come in, but does not say so."""

        supports_return_generator = True

        def configure(self, n_jobs: int = 1, parallel: Any = None, **settings: Any) -> int:
            if actors > 1:
                return int(super().configure(n_jobs, parallel, **settings))
            PicklingPool.__bases__ = (Pool,)  # as Ray's own does
            self._pool = MemmappingPool(actors, ray_remote_args=arguments)
            self.parallel = parallel
            return n_jobs

        def terminate(self) -> None:
            # Ray would ask its actors to stop, which those that may be restarted answer with error messages.
            pool: Any = getattr(self, "_pool", None)
            if hasattr(pool, "_actor_pool"):
                for actor, _ in pool._actor_pool:
                    with contextlib.suppress(Exception):
                        ray.kill(actor)
                pool._actor_pool = []
            super().terminate()

    return PinnedRayBackend(ray_remote_args=arguments)


@contextmanager
def _hushed(*loggers: str, quiet: bool) -> Iterator[None]:
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
