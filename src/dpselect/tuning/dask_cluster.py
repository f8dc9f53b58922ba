"""Trials on Dask: tasks of the caller's scheduler, each begun once, and a scheduler that answers nothing given up."""

from __future__ import annotations

import contextlib
import secrets
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from dpselect.errors import StudyError, missing_extra
from dpselect.tuning.joblib_clusters import ClusterOptions, hushed, within
from dpselect.tuning.remote_trial import Answer, Manners, Parcel, Trial, forget, greet, run_trials
from dpselect.tuning.task_session import GREETING_SECONDS, TaskCluster, WorkerDiedError
from dpselect.tuning.worker_check import ExecutorLostError, Unequal

__all__ = ["dask_cluster"]

_TASKS: Final = 32
"""Tasks that the scheduler has at least, so that a cluster that adapts sees that there is work."""

_DIED: Final = "died"


@contextmanager
def dask_cluster(options: ClusterOptions, parcel: Parcel, threads: int | None) -> Iterator[TaskCluster]:
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
            cluster = _Dask(client, options, parcel, threads)
            cluster.wait_for_workers()
            yield cluster
        finally:
            if cluster is not None and not cluster.lost and client.status == "running":  # else it would wait for it
                cluster.abandon()
                with contextlib.suppress(Exception):
                    # not client.run, which has no timeout: a worker may have died just now
                    client.sync(client._run, forget, parcel.name, callback_timeout=10.0)
            if options.address is not None:
                with contextlib.suppress(Exception):
                    client.close(timeout=2)


class _Dask(TaskCluster):
    def __init__(self, client: Any, options: ClusterOptions, parcel: Parcel, threads: int | None) -> None:
        self._client = client
        self._options = options
        self._parcel = parcel
        self.patience = float(options.patience)
        self._submit: dict[str, Any] = {"resources": dict(options.resources)} if options.resources else {}
        self._pending: set[Any] = set()
        self._sent: Any = None
        self._answered = self._peopled = self._checked = time.monotonic()
        self._threads = 0
        self.home = any(name.startswith("inproc://") for name in self._able())
        self._manners = Manners(options.quiet, threads, own=False, home=self.home)

    @property
    def workers(self) -> int:
        return self._options.workers or max(1, self._threads)

    @property
    def room(self) -> int:
        return self._options.workers or max(_TASKS, 2 * self._threads)

    def _known(self, seconds: float) -> dict[str, Any]:
        """The workers by their addresses. Raises `TimeoutError`, or any error of a connection that has ended."""
        found = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=seconds)
        self._answered = time.monotonic()
        return dict(found["workers"])

    def _any(self) -> dict[str, Any]:
        """The workers. Raises `ExecutorLostError` if the scheduler does not answer."""
        try:
            return self._known(self.patience)
        except Exception:
            raise ExecutorLostError(self._silent) from None

    def _able(self) -> dict[str, Any]:
        """The workers with what one trial needs."""
        return self._with_resources(self._any())

    def _with_resources(self, known: Mapping[str, Any]) -> dict[str, Any]:
        wanted = self._options.resources.items()
        able = {
            address: worker
            for address, worker in known.items()
            if all(worker["resources"].get(name, 0) >= much for name, much in wanted)
        }
        self._threads = sum(worker["nthreads"] for worker in able.values())
        return able

    @property
    def _silent(self) -> str:
        return (
            f"the Dask scheduler has not answered for {self.patience:g} s (patience=): see whether it runs, and "
            "resume the search there or with another executor"
        )

    def wait_for_workers(self) -> None:
        """Send a task if there are none, for which clusters that adapt start one. Refuse resources that none has."""
        if not self._able() and not self._any():
            with contextlib.suppress(Exception):
                name = f"first-{secrets.token_hex(16)}"
                task = self._client.submit(_as_it_is, self._parcel.name, key=name, **self._submit)
                task.result(timeout=self.patience)
        if not self._able():
            found = "no Dask worker has the resources that a trial asks for"
            raise StudyError(found if self._any() else f"no Dask worker within {self.patience:g} s (patience=)")

    def _data(self) -> Any:
        """The parcel as the result of a task, which Dask makes again when the worker that holds it dies.

        `Client.scatter` is not used. It waits without end if a worker or the scheduler dies at that moment, and the
        scattered parcel is lost with the last worker that has it.
        """
        if self._sent is None or self._sent.status in ("cancelled", "lost", "error"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a large task, meant for graphs that hold data many times
                name = f"job-{secrets.token_hex(16)}"
                self._sent = self._client.submit(_as_it_is, self._parcel, key=name, **self._submit)
        return self._sent

    def greetings(self) -> list[Unequal | None]:
        asked = {
            address: self._client.submit(
                greet,
                self._data(),
                self._manners,
                workers=[address],
                key=f"greeting-{secrets.token_hex(16)}",
                **self._submit,
            )
            for address in self._able()
        }
        found, seconds = [], max(self.patience, GREETING_SECONDS)
        end = time.monotonic() + seconds
        for address, answer in asked.items():
            while True:
                try:
                    found.append(answer.result(timeout=min(1.0, self.patience)))
                    break
                except TimeoutError:
                    # One that has left takes no task. One that is busy proves itself before its first trial.
                    if address not in self._able() or time.monotonic() > end:
                        break
                except Exception as error:
                    if address in self._able():
                        raise StudyError(f"the cluster does not run tasks ({type(error).__name__})") from None
                    break
        if not found:
            raise StudyError(
                f"no Dask worker has answered within {seconds:g} s: all are busy or have left. Wait until one "
                "is free, or ask with a longer patience="
            )
        return found

    def submit(self, trials: tuple[Trial, ...]) -> Future[Answer | Unequal | None]:
        mark = secrets.token_hex(16)
        task = self._client.submit(
            _run_once, self._data(), trials, self._manners, mark, key=f"trial-{mark}", **self._submit
        )
        answer: Future[Answer | Unequal | None] = Future()
        self._pending.add(task)
        task.add_done_callback(lambda done: self._settle(done, mark, answer))
        return answer

    def _settle(self, task: Any, mark: str, answer: Future[Answer | Unequal | None]) -> None:
        """Called in a thread of Dask's."""
        self._pending.discard(task)
        scheduler, seconds = self._client.scheduler, {"callback_timeout": self.patience}
        try:
            if task.cancelled():
                raise CancelledError  # its result would be waited for, and reported
            found = task.result(timeout=self.patience)
            if found == _DIED:
                raise WorkerDiedError
            answer.set_result(found)
        except BaseException as error:
            died = isinstance(error, WorkerDiedError)
            if type(error).__name__ == "KilledWorker":  # four workers died that had it: it may have begun on one
                with contextlib.suppress(Exception):
                    died = self._client.sync(scheduler.event_is_set, name=mark, **seconds)
            answer.set_exception(WorkerDiedError() if died else error)
        with contextlib.suppress(Exception):
            self._client.sync(scheduler.event_clear, name=mark, **seconds)

    def check(self) -> None:
        now = time.monotonic()
        if self.home or now - self._checked < min(2.0, self.patience / 4):  # at home trials may keep it busy
            return
        self._checked = now
        try:
            able = self._with_resources(self._known(self.patience / 2))
        except Exception:
            if time.monotonic() - self._answered >= self.patience:
                self.lost = self._silent
                raise ExecutorLostError(self.lost) from None
            return
        if able:
            self._peopled = self._answered
        elif self._answered - self._peopled > self.patience:
            raise ExecutorLostError(
                f"no Dask worker has taken trials for {self.patience:g} s (patience=). Resume the search when there "
                "are workers, or with another executor"
            )

    def alive(self) -> bool:
        if self.lost:
            return False
        try:
            self._client.sync(self._client.scheduler.identity, callback_timeout=min(5.0, self.patience))
        except Exception:
            return False
        return str(self._client.status) == "running"

    def abandon(self) -> None:
        tasks, self._pending = list(self._pending), set()
        if tasks and str(self._client.status) == "running":
            with contextlib.suppress(Exception):
                within(self.patience, partial(self._client.cancel, tasks))


def _as_it_is(argument: Any) -> Any:
    return argument


def _run_once(parcel: Parcel, trials: tuple[Trial, ...], manners: Manners, mark: str) -> Any:
    """On a worker: run trials, but not when they have begun on a worker that has died since.

    Dask runs the tasks of a dead worker again, those too that had not begun there.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    if sync(worker.loop, partial(_begin, worker.scheduler, mark)):
        return _DIED
    return run_trials(parcel, trials, manners)


async def _begin(scheduler: Any, mark: str) -> bool:
    if await scheduler.event_is_set(name=mark):
        return True
    await scheduler.event_set(name=mark)
    return False
