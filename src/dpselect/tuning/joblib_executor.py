"""Trials through joblib: processes of this machine (loky), or a backend that is registered with joblib.

Dask and Ray have sessions of their own: see `dask_cluster` and `ray_cluster`.

joblib ends a whole call with the first worker that dies, and does not say whose trial it was. So the trials that had
not come back are run again in ever smaller groups, each trial with its own key. This ends when the trial that kills its
worker is alone: only that one counts as lost.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import joblib

from dpselect.errors import ArgumentError, StudyError
from dpselect.tuning.dask_cluster import dask_cluster
from dpselect.tuning.executors import Attempt, RunningExecutor
from dpselect.tuning.joblib_clusters import Cluster, ClusterOptions, loky_cluster, registered_cluster
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.ray_cluster import ray_cluster
from dpselect.tuning.remote_trial import Manners, Parcel, Trial, greet, run_trial
from dpselect.tuning.task_session import UNLOADABLE, TaskSession
from dpselect.tuning.trial import Job
from dpselect.tuning.worker_check import ExecutorLostError, Unequal, UnequalWorkerError, expected_of, packed

__all__ = ["JoblibExecutor"]


@dataclass(frozen=True)
class JoblibExecutor(ClusterOptions):
    """An executor that runs trials on Dask, on Ray, or through a backend of joblib.

    The objective may be a lambda or defined in a notebook. It travels once to each worker on Dask and Ray, but with
    every trial on loky: let it hold a path rather than large data there.

    A worker that dies loses its trial, which is run again with its own key, up to 3 times. If the whole cluster is
    gone, `tune` raises `ExecutorLostError` and leaves a store to resume.

    Anyone who can look into the cluster sees the data, the keys and the number of runs: see THREATS.md.

    Args:
        backend: "loky" (processes of this machine), "dask", "ray", or the name of another backend.
        workers: how many trials run at once, if as many fit: 2 or more, or 1 or more on "dask" and "ray". None: all
            workers of the cluster.
        address: the address of a running scheduler, for "dask" and "ray" only. Without it Dask takes your client, and
            Ray takes what you have started, or a new local cluster.
        resources: what one trial needs, for "dask" and "ray" only. Dask takes the names that its workers were started
            with. Ray takes `num_cpus`, `num_gpus`, `memory` and custom names.
        quiet: point the standard output and error of the workers at the null device.
        patience: how many seconds a search waits for a Dask scheduler or a Ray cluster that does not answer, for a
            Dask worker when there is none, and for a node of Ray with room. Then `tune` raises `ExecutorLostError`, or
            `StudyError` if it has not begun.
        threads: the number of threads of the numerical libraries in each worker. None: no limit.

    Raises:
        ArgumentError: for numbers out of range, or for `address` or `resources` with another backend. Also for
            "threading", "sequential" and "multiprocessing", which run trials in this process or hang when a worker
            dies.
        TypeError: if `backend` is not a string.

    >>> JoblibExecutor(workers=2).backend
    'loky'
    """

    threads: int | None = 1

    @contextmanager
    def session(self, job: Job) -> Iterator[RunningExecutor]:
        """Reach the cluster and see that it can load the job.

        Raises `ArgumentError` if objective or space cannot be pickled. Raises `StudyError` if there is no cluster, no
        worker with the resources, or a worker that cannot load the job. Raises `MissingExtraError` without the
        packages.
        """
        expected = expected_of(job)
        try:
            parcel = Parcel(packed(expected, cloudpickle.dumps(job)))
        except Exception as error:
            raise ArgumentError(f"objective must be picklable for workers ({type(error).__name__})") from None
        reached = {"dask": dask_cluster, "ray": ray_cluster}.get(self.backend)
        if reached is not None:
            with reached(self, parcel, self.threads) as tasks:
                running = TaskSession(tasks)
                running.check_loaded()
                yield running
            return
        with (loky_cluster if self.backend == "loky" else registered_cluster)(self) as cluster:
            session = _JoblibSession(cluster, parcel, Manners(self.quiet, self.threads, cluster.own))
            session.check_loaded()
            yield session


class _JoblibSession:
    def __init__(self, cluster: Cluster, parcel: Parcel, manners: Manners) -> None:
        self._cluster = cluster
        self._parcel = parcel
        self._manners = manners

    def check_loaded(self) -> None:
        """Ask about as many times as there are workers."""
        for attempt in range(REPLAYS + 1):
            try:
                greetings = (joblib.delayed(greet)(self._parcel, self._manners) for _ in range(self._cluster.workers))
                found = list(self._parallel()(greetings))
                break
            except Exception as error:  # a worker may die at any time
                if attempt == REPLAYS:
                    raise StudyError(f"the cluster does not run tasks ({type(error).__name__})") from None
        for answer in found or [None]:
            if not isinstance(answer, Unequal):
                raise StudyError(UNLOADABLE)
            if answer:
                raise UnequalWorkerError(answer)

    def run(self, trials: deque[tuple[int, bytes]]) -> Iterator[Attempt]:
        groups: list[deque[tuple[int, bytes]]] = []
        unstarted = 0
        while groups or trials:
            group = groups.pop() if groups else trials
            away: dict[int, bytes] = {}
            try:
                yield from self._run(group, away)
            except _BrokenError:
                unstarted = 0 if away else unstarted + 1
                if unstarted > REPLAYS:
                    raise ExecutorLostError("the workers are gone: resume the search when there are some") from None
                if group is not trials:
                    groups.append(group)
                suspects = sorted(away.items())
                if len(suspects) == 1:
                    yield Attempt(suspects[0][0], lost=True)
                elif suspects:
                    middle = len(suspects) // 2  # searches: halves of the runs that may have ended a worker
                    groups += [deque(suspects[middle:]), deque(suspects[:middle])]

    def _run(self, group: deque[tuple[int, bytes]], away: dict[int, bytes]) -> Iterator[Attempt]:
        """Run a group. Those that have not come back are in `away`."""

        def tasks() -> Iterator[Any]:
            while group:
                index, key = group.popleft()
                away[index] = key
                yield joblib.delayed(run_trial)(self._parcel, Trial(index, key), self._manners)

        try:
            results = self._parallel()(tasks())
        except (Exception, asyncio.CancelledError):
            raise _BrokenError from None
        with _closing(results):
            while True:
                try:
                    outcome = next(results)
                except StopIteration:
                    return
                except (Exception, asyncio.CancelledError):
                    raise _BrokenError from None
                if isinstance(outcome, Unequal):
                    raise UnequalWorkerError(outcome)
                if outcome is None:
                    raise ExecutorLostError(UNLOADABLE)
                del away[outcome.index]
                yield outcome

    def _parallel(self) -> joblib.Parallel:
        settings = self._cluster.backend()
        return joblib.Parallel(return_as="generator_unordered", batch_size=1, verbose=0, **settings)


@contextmanager
def _closing(results: Any) -> Iterator[None]:
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib tells how many tasks it cancels
            results.close()


class _BrokenError(Exception):
    """joblib gave up the call: a worker died, or the cluster did."""
