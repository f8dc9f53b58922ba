"""The worker's side of a trial that joblib sends somewhere: load the job once, be quiet, answer with an outcome.

A scheduler shows the name of a task and, in logs and error messages, the `repr` of its arguments. So the key and the
job travel inside objects whose `repr` says nothing.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from dpselect.privacy.boundary import SharedPatch, silence
from dpselect.randomness.process import this_process
from dpselect.tuning.executors import Attempt, limited_threads
from dpselect.tuning.orphans import end_with_parent, leave_interrupts_to_the_tuner
from dpselect.tuning.supervised import ChildDiedError, check_child, perform, stop_children
from dpselect.tuning.trial import Job
from dpselect.tuning.worker_check import Unequal, UnequalWorkerError, unpacked

__all__ = ["Manners", "Parcel", "Trial", "forget", "greet", "quietly", "run_trial"]


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

    def __init__(self, content: bytes) -> None:
        self.name = secrets.token_bytes(16)
        self.content = content
        _made_here[self.name] = this_process()  # copies: whether this process made a parcel

    def __repr__(self) -> str:
        return "<job>"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.content)


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


def run_trial(parcel: Parcel, trial: Trial, manners: Manners) -> Attempt | Unequal | None:
    """Run one trial. None: this worker cannot load the job, which says nothing about the trial. A text: what differs.

    Anything else the objective raises to get out (`SystemExit`, say) means here what it means in a process of its own:
    the attempt is lost.
    """
    if _at_home(parcel) and not manners.home:
        return None
    with quietly(manners):
        try:
            job = _job(parcel)
            if job is None:
                return None
            return Attempt(trial.index, perform(job, trial.index, trial.key))
        except UnequalWorkerError as error:
            return Unequal(error)
        except BaseException:
            return Attempt(trial.index, lost=True)


def forget(name: bytes) -> None:
    """Drop the job of a parcel, and with it the data that the objective holds. Other searches continue."""
    with _loading:
        job = _jobs.pop(name, None)
    if job is not None:
        stop_children(job)


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
