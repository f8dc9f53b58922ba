"""Options of a search: its place, the execution of its runs, the request, and the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, SupportsFloat

from dpselect.errors import expect, flag, integer, number
from dpselect.privacy import Guarantee, Release
from dpselect.repetitions import Repetitions
from dpselect.tuning.limits import Limits
from dpselect.tuning.proposals import AdaptiveProposal
from dpselect.tuning.space import Space
from dpselect.tuning.trial import T

__all__ = ["Execution", "SearchRequest", "SearchStore", "TuneResult"]


@dataclass(frozen=True, kw_only=True)
class SearchStore:
    """The place of a search, and the public room that it has there.

    Args:
        path: the file of the sealed store, so that a killed search can be resumed. None keeps all in memory.
        resume: continue with the search that is there, or begin if a kill came before it was made.
        key_variable: an environment variable with the store's key (32 bytes in base64). By default the key is a file in
            the per-user state folder.
        payload_bytes: the room for a run's value, `len(encode_value(value))`. A larger one counts as a failed run.
        example: a value like those that runs return but made without the data. It is checked against `payload_bytes` at
            once.
        slots: the room for trials. By default it is the limit of the number of runs, or its 0.999 quantile if the limit
            is above 10,000 or missing. More runs than slots take another round of slots, which the number of writes
            then shows.
        fingerprint: public text, such as a study file, that must not change before a resume. Or several texts by name:
            a refused resume then names those that changed. It must hold nothing drawn from data.
        rows_digest: a digest of the private rows (SHA-256, say), kept sealed and shown nowhere. A resume on other rows
            then makes every run again, with noise of its own. Without it you must ensure that the rows are the same at
            a resume: noise that two sets of rows share can be subtracted.

    Raises:
        ArgumentError: for `payload_bytes` or `slots` below 1, or if `resume` is not a boolean.
        TypeError: for values of another type.

    >>> SearchStore(path="digits.sealed", resume=True).payload_bytes
    65536
    """

    path: str | os.PathLike[str] | None = None
    resume: bool = False
    key_variable: str | None = None
    payload_bytes: int = 1 << 16
    example: Any = None
    slots: int | None = None
    fingerprint: str | Mapping[str, str] = ""
    rows_digest: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        flag("resume", self.resume)
        integer("payload_bytes", self.payload_bytes, at_least=1)
        if self.slots is not None:
            integer("slots", self.slots, at_least=1)
        if self.rows_digest is not None:
            expect("rows_digest", self.rows_digest, bytes)

    @property
    def marks(self) -> dict[str, str]:
        """The texts that must not change, by name."""
        return dict(self.fingerprint) if isinstance(self.fingerprint, Mapping) else {"fingerprint": self.fingerprint}

    @classmethod
    def of(cls, store: str | os.PathLike[str] | SearchStore | None) -> SearchStore:
        """The store that `tune(store=)` means. A path is a store there with default options."""
        if store is not None:
            expect("store", store, str, os.PathLike, SearchStore)
        return store if isinstance(store, SearchStore) else cls(path=store)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The way in which the runs of a search execute, and the observers of its progress.

    Args:
        limits: the limits of one trial, by default none. See `Limits`.
        constant_runs: always run the largest number of runs and count only the first K, so that K does not show in
            running time.
        pad_seconds: release at an integer multiple of this many seconds after the search was priced. This public number
            keeps the moment of the release from telling the running time. A search that takes longer than one multiple
            is released at the next, and the moment then tells which. After a resume the time counts from the resume. By
            default there is no wait.
        progress: `progress(seconds)` is called about once a second from a thread of its own, with public facts only.
        operator_progress: `operator_progress(done, total)` gets counts that reveal K, for the operator's eyes only. A
            search with it warns with `OperatorProgressWarning`.
        reads: files and folders that the objective reads by itself. Every worker must hold the same content. A search
            whose workers do not is refused before it is charged (one with a `SharedRelease`, after that). By default
            dpselect looks for names of files in the objective, and workers must have those. With `()` it does not.

    Raises:
        ArgumentError: for `pad_seconds` out of range, or if `constant_runs` is not a boolean.
        TypeError: for values of another type, or for one path in place of a list of paths.

    >>> Execution(constant_runs=True, pad_seconds=3600).pad_seconds
    3600.0
    """

    limits: Limits | None = None
    constant_runs: bool = False
    pad_seconds: SupportsFloat | None = None
    progress: Callable[[float], None] | None = None
    operator_progress: Callable[[int, int], None] | None = None
    reads: Sequence[str | os.PathLike[str]] | None = None

    def __post_init__(self) -> None:
        flag("constant_runs", self.constant_runs)
        if self.reads is not None:
            if isinstance(self.reads, (str, os.PathLike)):
                raise TypeError("reads must be a list of paths, not one")
            object.__setattr__(self, "reads", tuple(os.fspath(path) for path in self.reads))
        if self.limits is not None:
            expect("limits", self.limits, Limits)
        if self.pad_seconds is not None:
            object.__setattr__(self, "pad_seconds", number("pad_seconds", self.pad_seconds, above=0.0))


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The search and its total: the arguments of these names that `tune` takes.

    `beside` is a guarantee about the same rows that is paid for with the search, that of a `SharedRelease`.
    """

    space: Space | Mapping[str, Any]
    base: Guarantee | Sequence[Guarantee] | Callable[[float], Guarantee | Sequence[Guarantee]]
    repetitions: Repetitions | None = None
    epsilon: SupportsFloat | None = None
    delta: SupportsFloat | None = None
    max_runs: int = 100
    proposal: AdaptiveProposal | None = None
    declare_score: bool = False
    beside: Guarantee | None = None


@dataclass(frozen=True, kw_only=True)
class TuneResult(Release, Generic[T]):
    """The released winner of a search, or nothing.

    It is a `Release`: it has a `value`, its `guarantee`, the ledger's `receipt`, and `replayable`. `params` and `value`
    are None when no run succeeded or none was made. A type checker knows it as `TuneResult[T]` if the objective returns
    a score and a `T`.

    Args:
        params: the parameters of the winner, by name.
        score: the private score of the winner. None unless you asked for it with `declare_score`.
        key_variable: the environment variable that held the key of the sealed store. You must now drop it. None if the
            key was in a file or in memory.
    """

    value: T | None
    params: Mapping[str, Any] | None = None
    score: float | None = None
    key_variable: str | None = None

    if TYPE_CHECKING:

        def processed(self, function: Callable[[Any], Any]) -> TuneResult[Any]: ...

    def notebook_rows(self) -> list[tuple[str, Any]]:
        """The winner's parameters, and its score where that was declared."""
        if self.params is None:
            return super().notebook_rows()
        declared = [] if self.score is None else [("score", self.score)]
        return [("parameters", dict(self.params)), *super().notebook_rows(), *declared]
