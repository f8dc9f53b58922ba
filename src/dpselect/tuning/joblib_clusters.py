"""The backends of joblib: how to reach each, tell that it is gone, ask it for resources, and leave it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, SupportsFloat

import joblib
from joblib.executor import get_memmapping_executor

from dpselect.errors import ArgumentError, integer, number

__all__ = [
    "Cluster",
    "ClusterOptions",
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
            integer("workers", self.workers, at_least=1 if self.backend in ("dask", "ray") else 2)
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

    `own`: whether its processes serve this session only.
    """

    def __init__(self, workers: int, *, own: bool, **settings: Any) -> None:
        self.own = own
        self.workers = workers
        self._settings = settings

    def backend(self) -> Mapping[str, Any]:
        """The arguments of `joblib.Parallel` for one call, `n_jobs` included."""
        return {"n_jobs": self.workers, **self._settings}


@contextmanager
def loky_cluster(options: ClusterOptions) -> Iterator[Cluster]:
    """Processes of this machine, which end with the search."""
    workers = max(2, joblib.cpu_count()) if options.workers is None else options.workers
    try:
        # no copies of the data in files of a temporary folder; one dead worker ends all, so few trials are with them
        yield Cluster(workers, own=True, backend="loky", max_nbytes=None, pre_dispatch="n_jobs")
    finally:
        # Otherwise they would keep the job, and the data in it, for minutes.
        get_memmapping_executor(workers).terminate(kill_workers=True)


@contextmanager
def registered_cluster(options: ClusterOptions) -> Iterator[Cluster]:
    """Anything that is registered with joblib by this name."""
    yield Cluster(options.workers or max(2, joblib.cpu_count()), own=False, backend=options.backend)


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
