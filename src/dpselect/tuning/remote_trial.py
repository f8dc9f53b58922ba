"""The worker's side of a trial that joblib sends somewhere: load the job once, be quiet, answer with an outcome.

A scheduler shows the name of a task and, in logs and error messages, the `repr` of its arguments. So the key and the
job travel inside objects whose `repr` says nothing.
"""

from __future__ import annotations

import os
import pickle
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from dpselect.privacy.boundary import SharedPatch, silence
from dpselect.randomness.process import this_process
from dpselect.tuning.executors import Attempt, limited_threads
from dpselect.tuning.orphans import end_with_parent, leave_interrupts_to_the_tuner
from dpselect.tuning.supervised import ChildDiedError, check_child, perform, stop_children
from dpselect.tuning.trial import Job
from dpselect.tuning.worker_check import Unequal, UnequalWorkerError, unpacked

__all__ = ["Answer", "Manners", "Parcel", "Trial", "forget", "greet", "kept_for", "quietly", "run_trial", "run_trials"]


@dataclass(frozen=True)
class Manners:
    """How a worker behaves. `own` means that the process serves this search only, so nothing needs to be undone.

    `home`: it may be a thread of the tuner's process, as its caller has chosen.
    """

    quiet: bool
    threads: int | None
    own: bool
    home: bool = False


_made_here: Final[dict[bytes, object]] = {}
"""The parcels of this process, with its identity, which a forked child does not have."""


class Parcel:
    """A pickled job, named by random bytes. Its `repr` is a constant. It is made in the process of the tuner."""

    def __init__(self, content: bytes | memoryview, name: bytes | None = None) -> None:
        self.name = secrets.token_bytes(16) if name is None else name
        self._content = content
        if name is None:
            _made_here[self.name] = this_process()  # copies: whether this process made a parcel

    @property
    def content(self) -> bytes | memoryview:
        """The packed job."""
        return self._content

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:  # copies: data that travel
        """Without copies where pickles have buffers of their own, as those of Dask and Ray."""
        content = self._content if protocol < 5 else pickle.PickleBuffer(self._content)
        return Parcel, (content, self.name)

    def __repr__(self) -> str:
        return "<job>"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self._content)


@dataclass(frozen=True, repr=False)
class Trial:
    """An index and a key. Its `repr` is a constant."""

    index: int
    key: bytes

    def __repr__(self) -> str:
        return "<trial>"


_jobs: Final[dict[bytes, Job]] = {}
_proven: Final[set[bytes]] = set()
"""Parcels that this process is equal for: searches that take turns are not compared each time."""
_loading: Final = threading.Lock()


def greet(parcel: Parcel, manners: Manners) -> Unequal | None:
    """Load the job and return what differs here, the empty text if nothing does. None: it cannot be loaded."""
    if _at_home(parcel) and not manners.home:
        return None
    with quietly(manners):
        try:
            job = _job(parcel)
            if job is not None:
                check_child(job)
        except UnequalWorkerError as error:
            return Unequal(error)
        except (Exception, ChildDiedError):
            return None
        return None if job is None else Unequal()


@dataclass(frozen=True, repr=False)
class Answer:
    """The results of some trials, and the seconds that all of them took."""

    attempts: tuple[Attempt, ...]
    seconds: float


def run_trial(parcel: Parcel, trial: Trial, manners: Manners) -> Attempt | Unequal | None:
    """Run one trial, see `run_trials`."""
    answer = run_trials(parcel, (trial,), manners)
    return answer.attempts[0] if isinstance(answer, Answer) else answer


def run_trials(parcel: Parcel, trials: tuple[Trial, ...], manners: Manners) -> Answer | Unequal | None:
    """Run trials, one after another. None: this worker cannot load the job, which says nothing about them.

    Anything else the objective raises to get out (`SystemExit`, say) means here what it means in a process of its own:
    the attempt is lost.
    """
    if _at_home(parcel) and not manners.home:
        return None
    with quietly(manners):
        try:
            job = _job(parcel)
        except UnequalWorkerError as error:
            return Unequal(error)
        if job is None:
            return None
        started, attempts = time.monotonic(), []
        for trial in trials:
            try:
                attempts.append(Attempt(trial.index, perform(job, trial.index, trial.key)))
            except UnequalWorkerError as error:
                return Unequal(error)
            except BaseException:
                attempts.append(Attempt(trial.index, lost=True))
        return Answer(tuple(attempts), time.monotonic() - started)


def forget(name: bytes) -> None:
    """Drop the job of a parcel, and with it the data that the objective holds. Other searches continue."""
    with _loading:
        job = _jobs.pop(name, None)
    if job is not None:
        stop_children(job)


_idle_since: Final[dict[bytes, float]] = {}
"""When the last task of a job ended here, 0 while one runs."""
_idling: Final = threading.Lock()


@contextmanager
def kept_for(seconds: float, name: bytes) -> Iterator[None]:
    """Drop the job that is used within when it has not been used again for so many seconds."""
    with _idling:
        first = name not in _idle_since
        _idle_since[name] = 0.0
    try:
        yield
    finally:
        _idle_since[name] = time.monotonic()
        if first:
            threading.Thread(target=_drop_when_idle, args=(name, seconds), name="dpselect-idle", daemon=True).start()


def _drop_when_idle(name: bytes, seconds: float) -> None:
    while True:
        time.sleep(seconds / 4)
        with _idling:
            since = _idle_since[name]
            if since and time.monotonic() >= since + seconds:
                del _idle_since[name]
                forget(name)
                return


def _at_home(parcel: Parcel) -> bool:
    """Whether this is the tuner's own process, where a trial that dies takes the search with it.

    joblib runs tasks there whenever it thinks that nothing is gained by sending them away.
    """
    return _made_here.get(parcel.name) == this_process()  # copies: whether this process made a parcel


def _job(parcel: Parcel) -> Job | None:
    with _loading:
        if parcel.name not in _jobs:
            _jobs.clear()  # one search at a time, so that the data of an earlier one do not stay
            try:
                _jobs[parcel.name] = unpacked(parcel.content, proven=parcel.name in _proven)
                _proven.add(parcel.name)
            except UnequalWorkerError:
                raise
            except BaseException:
                return None
        return _jobs[parcel.name]


def _behave(manners: Manners) -> Callable[[], None]:
    undo = ExitStack()
    if manners.threads is not None:
        if manners.own:
            for library in ("OMP", "OPENBLAS", "MKL"):  # for libraries that the objective loads later
                os.environ[f"{library}_NUM_THREADS"] = str(manners.threads)
        undo.enter_context(limited_threads(manners.threads))
    if manners.own:
        leave_interrupts_to_the_tuner()
        end_with_parent()
    if manners.quiet:
        undo.enter_context(silence(descriptors=not manners.home))
    return undo.close


_patch: Final = SharedPatch(_behave)
_settled: Final = threading.Event()


@contextmanager
def quietly(manners: Manners) -> Iterator[None]:
    """Apply a worker's manners: for good where the process is its own, else while any trial runs in it."""
    if manners.own and _settled.is_set():
        yield
        return
    _patch.begin(manners)
    if manners.own:
        _settled.set()
    try:
        yield
    finally:
        if not manners.own:
            _patch.end()
