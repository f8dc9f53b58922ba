"""Trials on Ray: actors that serve one search, for all of its calls, and a cluster that answers nothing given up."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from dpselect.errors import StudyError, missing_extra
from dpselect.tuning.joblib_clusters import Cluster, ClusterOptions, hushed, started, within
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.remote_trial import Parcel
from dpselect.tuning.worker_check import ExecutorLostError

__all__ = ["ray_cluster"]

_FOLDER_BYTES: Final = 38
"""Ray puts sockets some 64 bytes below its folder, and the path of a socket has at most 107 (103 on macOS)."""


@contextmanager
def ray_cluster(options: ClusterOptions, _: Parcel) -> Iterator[Cluster]:
    """The Ray that is named, the caller's, or a new one. Its actors and a new Ray end with the search."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise missing_extra("ray", "an executor on Ray") from None
    register_ray()
    with hushed("ray", quiet=options.quiet), contextlib.ExitStack() as undo:
        cluster, silent = None, False
        if _left_alone.is_set():
            _disconnect(ray, float(options.patience))
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
            cluster = _Ray(ray, options)
        except ExecutorLostError:
            silent = True
            raise
        with cluster.watched():
            try:
                yield cluster
            finally:
                cluster.end_pool()


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


class _Lost:
    """In place of the result of a task whose cluster was given up."""


class _Ray(Cluster):
    def __init__(self, ray: Any, options: ClusterOptions) -> None:
        self._ray = ray
        self._patience = float(options.patience)
        self._pool: Any = None
        self._pending: WeakSet[Any] = WeakSet()
        self._given_up: Future[None] = Future()
        wanted = {"num_cpus": 1.0, **options.resources}
        try:
            has = within(self._patience, ray.cluster_resources)
        except TimeoutError:
            raise ExecutorLostError(_silent(self._patience)) from None
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
        return {"backend": _ray_backend(self), "n_jobs": max(2, self.workers)}

    def alive(self) -> bool:
        if self.lost:
            return False
        try:
            return bool(self._ray.is_initialized() and within(5.0, self._ray.cluster_resources).get("CPU", 0) > 0)
        except Exception:
            return False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Meanwhile a cluster that has answered nothing for so long is given up, and with it all tasks."""
        done = threading.Event()

        def asked() -> None:
            self._ray.cluster_resources()  # of the head
            self._ray.put(0)  # in the store of this node, which its raylet keeps

        def watch() -> None:
            while not done.wait(self._patience / 4):
                answer = started(asked)  # an error is an answer too
                if not wait([answer], timeout=self._patience).done and not done.is_set():
                    self._give_up()
                    return

        threading.Thread(target=watch, name="dpselect-ray", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _give_up(self) -> None:
        self.lost = _silent(self._patience)
        self._given_up.set_result(None)
        for callback in list(self._pending):
            callback(_Lost())

    def unless_lost(self, task: Callable[[], Any]) -> Any:
        """Return the result of a task or raise its error. Raises `ConnectionError` once the cluster is given up."""
        answer = started(task)
        wait([answer, self._given_up], return_when=FIRST_COMPLETED)
        if not answer.done():
            raise ConnectionError
        return answer.result()

    def pool(self) -> Any:
        """The actors, started with the first call: what they import takes them seconds."""
        if self._pool is None:
            from joblib.pool import MemmappingPool, PicklingPool
            from ray.util.multiprocessing.pool import Pool

            PicklingPool.__bases__ = (Pool,)  # as Ray's own does
            self._pool = self.unless_lost(lambda: MemmappingPool(self.workers, ray_remote_args=self._arguments))
        return self._pool

    def end_pool(self) -> None:
        """Kill the actors.

        Ray would ask them to stop, which those that may be restarted answer with error messages.
        """
        pool, self._pool = self._pool, None
        if pool is None:
            return
        actors, pool._actor_pool = pool._actor_pool, []
        for actor, _ in () if self.lost else actors:
            with contextlib.suppress(Exception):
                self.unless_lost(partial(self._ray.kill, actor))
        with contextlib.suppress(Exception):
            pool.terminate()

    def submitted(self, callback: Any, submit: Callable[[], Any]) -> Any:
        """Submit a task, whose callback is called when the cluster is given up too."""
        if callback is not None:
            self._pending.add(callback)
        return self.unless_lost(submit)


def _ray_backend(cluster: _Ray) -> Any:
    from ray.util.joblib.ray_backend import RayBackend

    class PinnedRayBackend(RayBackend):  # type: ignore[misc]
        """Ray's backend with actors that stay. It gives results in the order of arrival, but does not declare that."""

        supports_return_generator = True

        def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
            self._pool, self.parallel = cluster.pool(), parallel
            return n_jobs

        def submit(self, func: Any, callback: Any = None) -> Any:
            return cluster.submitted(callback, lambda: super(PinnedRayBackend, self).submit(func, callback))

        def retrieve_result_callback(self, result: Any) -> Any:
            if isinstance(result, _Lost):
                raise ConnectionError
            return super().retrieve_result_callback(result)

        def terminate(self) -> None:
            self._pool = None
            self.reset_batch_stats()

        def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002, FBT
            cluster.end_pool()  # with what still runs in it
            self.terminate()

    return PinnedRayBackend()
